//! Payouts: each against its work, claim and reservation, from a single snapshot.

use super::answers::{self, Expected};
use super::claims::{Makers, is_open};
use super::report::VerifyReport;
use super::rows::Rows;
use super::timelines;
use counterfoil_core::audit::AuditRecord;
use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState};
use counterfoil_core::ledger::account::AccountCode;
use counterfoil_core::ledger::chart::{Role, peer_code};
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::outbox::{Flow, Outbox, Payment};
use counterfoil_core::payments::payout::{Payout, PayoutStatus};
use counterfoil_core::types::id::HoldId;
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::peer::PeerName;
use counterfoil_core::types::reference::References;
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store};
use std::collections::HashSet;

/// Payouts per snapshot.
const CHUNK: usize = 64;

/// Checks all payouts.
pub(super) async fn check<S: Store>(
    store: &S,
    claims: &Makers,
    references: &References,
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    let (mut after, mut seen) = (None, HashSet::new());
    loop {
        let page: Vec<Payout> = store
            .scan(Scan::Payouts { after, limit: SCAN_MAX })
            .await?
            .into_iter()
            .filter_map(|row| if let Row::Payout(payout) = row { Some(payout) } else { None })
            .collect();
        let Some(last) = page.last() else { return Ok(()) };
        after = Some((last.tenant, last.id));
        for chunk in page.chunks(CHUNK) {
            let claim = |payout: &Payout| claims.of_payout(payout.id);
            let asked = chunk.iter().flat_map(|payout| keys(payout, claim(payout))).collect();
            let rows = Rows::read(store, asked).await?;
            for listed in chunk {
                let Some(view) = View::of(&rows, listed, claim(listed)) else { continue };
                let late = view.unlisted();
                let again =
                    Rows::read(store, late.map_or(Vec::new(), |late| keys(listed, Some(late)))).await?;
                let view = if late.is_some() { View::of(&again, listed, late) } else { Some(view) };
                if let Some(view) = view {
                    view.check(references, &mut seen, report);
                    let records = timelines::of(store, listed.tenant, listed.id.into()).await?;
                    view.check_timeline(&records, references, report);
                }
            }
        }
    }
}

/// Keys of the rows a payout is checked against.
fn keys(payout: &Payout, claim: Option<ClaimId>) -> Vec<RowKey> {
    let tenant = payout.tenant;
    let mut keys = vec![
        RowKey::Payout(tenant, payout.id),
        RowKey::Outbox(tenant, payout.id.into()),
        RowKey::Hold(tenant, HoldId::from_i64(payout.id.to_i64())),
    ];
    keys.extend(claim.map(|claim| RowKey::Claim(tenant, claim)));
    keys.extend(credited(payout).map(|code| RowKey::Name(tenant, code)));
    keys
}

/// The account a payout credits: the receivable from providers, or the debt to the peer.
fn credited(payout: &Payout) -> Option<AccountCode> {
    let asset = payout.order.amount.asset();
    match payout.provider.peer() {
        None => Role::Receivable.code(asset).ok(),
        Some(name) => peer_code(&PeerName::parse(name).ok()?, asset).ok(),
    }
}

/// Rows of a payout, from a single snapshot.
struct View<'a> {
    rows: &'a Rows,
    payout: &'a Payout,
    outbox: Option<&'a Outbox>,
    claim: Option<&'a Claim>,
}

impl<'a> View<'a> {
    fn of(rows: &'a Rows, listed: &Payout, claim: Option<ClaimId>) -> Option<View<'a>> {
        let subject = listed.id.into();
        Some(View {
            rows,
            payout: rows.payout(listed.id)?,
            outbox: rows.outbox(subject),
            claim: claim.and_then(|claim| rows.claim(claim, subject)),
        })
    }

    /// The claim of a payout that was made after the claims were listed. Its work names it.
    fn unlisted(&self) -> Option<ClaimId> {
        let unseen = !self.payout.status.is_final() && self.claim.is_none();
        self.outbox.filter(|_| unseen).map(|outbox| outbox.claim)
    }

    fn check(&self, references: &References, seen: &mut HashSet<String>, report: &mut VerifyReport) {
        let name = Payment::Payout(self.payout.id).reference(references).to_string();
        let named = |what: Option<String>| what.map(|what| format!("{name} {what}"));
        report.note("payout_has_work", named(self.disorder()));
        report.note("payouts_are_posted", named(self.misbooked()));
        if self.payout.status == PayoutStatus::Paid {
            let broken = match &self.payout.provider_reference {
                None => Some("has no provider reference".to_owned()),
                Some(reference) if !seen.insert(reference.clone()) => Some(format!("shares {reference}")),
                Some(_) => None,
            };
            report.note("provider_effect_is_single", named(broken));
        }
        if let Some(claim) = self.claim {
            answers::check(claim, Expected::payout(&name, self.payout), report);
        }
    }

    fn check_timeline(&self, records: &[AuditRecord], references: &References, report: &mut VerifyReport) {
        let status = self.payout.status;
        let name = Payment::Payout(self.payout.id).reference(references);
        let broken = timelines::disorder(records, !status.is_final(), status.name());
        report.note("timeline_is_lawful", broken.map(|what| format!("{name} {what}")));
    }

    /// The disagreement between the payout and its work and claim.
    fn disorder(&self) -> Option<String> {
        let status = self.payout.status;
        match (status.is_final(), self.outbox) {
            (false, None) => return Some(format!("is {} and has no work", status.name())),
            (true, Some(_)) => return Some(format!("is {} and has work left", status.name())),
            (false, Some(outbox)) if !self.is_worked_on_by(outbox) => {
                return Some(format!("is {} and its work is for something else", status.name()));
            }
            (true, None) | (false, Some(_)) => {}
        }
        let agrees = match self.claim.map(|claim| &claim.state) {
            // A claim outlives its work by far, so only a final payout may have none.
            None | Some(ClaimState::Expired { .. }) => status.is_final(),
            Some(ClaimState::Completed(_)) => status == PayoutStatus::Paid,
            Some(ClaimState::FailedTerminal(_)) => status == PayoutStatus::Failed,
            Some(state) => is_open(state) && !status.is_final(),
        };
        let claim = self.claim.map_or("gone", |claim| claim.state.name());
        (!agrees).then(|| format!("is {} and its claim is {claim}", status.name()))
    }

    fn is_worked_on_by(&self, outbox: &Outbox) -> bool {
        let Payout { id, tenant, status, provider, .. } = self.payout;
        outbox.payment == Payment::Payout(*id)
            && outbox.tenant == *tenant
            && outbox.provider == *provider
            && outbox.saga.flow == Flow::Payout
            && outbox.hold == Some(HoldId::from_i64(id.to_i64()))
            && outbox.parked.is_some() == (*status == PayoutStatus::Parked)
            && self.claim.is_none_or(|claim| claim.id == outbox.claim)
    }

    /// The disagreement between the payout and its reservation.
    fn misbooked(&self) -> Option<String> {
        let Payout { id, order, status, .. } = self.payout;
        let Some(hold) = self.rows.hold(HoldId::from_i64(id.to_i64())) else {
            return Some("has nothing reserved under its number".to_owned());
        };
        if !self.is_its_own(hold) {
            return Some("has something else reserved under its number".to_owned());
        }
        let right = match (status, hold.state) {
            (PayoutStatus::Processing | PayoutStatus::Parked, HoldState::Pending)
            | (PayoutStatus::Failed, HoldState::Voided { .. }) => true,
            (PayoutStatus::Paid, HoldState::Posted { amount, .. }) => amount == order.amount.minor(),
            (
                PayoutStatus::Processing | PayoutStatus::Parked | PayoutStatus::Failed | PayoutStatus::Paid,
                HoldState::Pending
                | HoldState::Posted { .. }
                | HoldState::Voided { .. }
                | HoldState::Lapsed { .. },
            ) => false,
        };
        let state = hold.state.name();
        (!right).then(|| format!("is {} and what it reserved is {state}", status.name()))
    }

    /// Whether the hold is the payout's own reservation, between its accounts.
    fn is_its_own(&self, hold: &Hold) -> bool {
        let Payout { tenant, order, .. } = self.payout;
        let credited = credited(self.payout).and_then(|code| self.rows.named(hold.tenant, &code));
        hold.is_a_payments()
            && (hold.tenant, hold.from) == (*tenant, order.account)
            && (hold.amount, hold.asset) == (order.amount.minor(), order.amount.asset())
            && credited.is_some_and(|name| name.account == hold.to)
    }
}

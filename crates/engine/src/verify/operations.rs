//! Operations: each against its charge, work, claim and reservation, from a single snapshot. All
//! operations on a charge against the charge's sums, status and lock.

use super::answers::{self, Expected};
use super::claims::{Makers, is_open};
use super::report::VerifyReport;
use super::rows::Rows;
use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState};
use counterfoil_core::ledger::chart::Role;
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::outbox::{Outbox, Payment};
use counterfoil_core::payments::charge::{Charge, ChargeStatus, ChargeSums};
use counterfoil_core::payments::operation::{Operation, OperationKind, OperationStatus};
use counterfoil_core::types::id::{AccountId, ChargeId, HoldId, OperationId, TenantId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store};
use std::collections::HashMap;

/// Operations per snapshot.
const CHUNK: usize = 64;

/// Reads of a charge that keeps changing, before it is left unjudged.
const LOOKS_MAX: u32 = 64;

/// Sums of the listed operations on each charge.
#[derive(Default)]
pub(super) struct Tallies(HashMap<ChargeId, Tally>);

/// Sums of the operations on one charge.
#[derive(Default)]
struct Tally {
    refunded: i64,
    refunding: i64,
    captures: u32,
    voids: u32,
    /// Unfinished captures and voids.
    open: Vec<(OperationId, OperationStatus)>,
}

impl Tallies {
    /// The difference between a charge and its listed operations.
    pub(super) fn difference(&self, charge: &Charge) -> Option<String> {
        self.0.get(&charge.id).unwrap_or(&Tally::default()).difference(charge)
    }
}

impl Tally {
    fn add(&mut self, operation: &Operation) {
        let amount = operation.amount.minor();
        match (operation.kind, operation.status) {
            (_, OperationStatus::Failed) => {}
            (OperationKind::Refund, OperationStatus::Succeeded) => {
                self.refunded = self.refunded.saturating_add(amount);
            }
            (OperationKind::Refund, OperationStatus::Processing | OperationStatus::Parked) => {
                self.refunding = self.refunding.saturating_add(amount);
            }
            (OperationKind::Capture, OperationStatus::Succeeded) => {
                self.captures = self.captures.saturating_add(1);
            }
            (OperationKind::Void, OperationStatus::Succeeded) => self.voids = self.voids.saturating_add(1),
            (
                OperationKind::Capture | OperationKind::Void,
                OperationStatus::Processing | OperationStatus::Parked,
            ) => {
                self.open.push((operation.id, operation.status));
            }
        }
    }

    fn difference(&self, charge: &Charge) -> Option<String> {
        let ChargeSums { captured, refunded, refunding } = charge.sums;
        if (refunded, refunding) != (self.refunded, self.refunding) {
            return Some(format!(
                "says {refunded} given back and {refunding} on the way, its refunds say {} and {}",
                self.refunded, self.refunding
            ));
        }
        if !charge.sums.are_sound() {
            return Some(format!("took {captured} and gives back {refunded} and {refunding}"));
        }
        if self.captures.saturating_add(self.voids) > 1 {
            return Some(format!("has {} captures and {} voids that were done", self.captures, self.voids));
        }
        // Only an authorized charge is captured by an operation.
        if (self.captures == 1) != (captured > 0 && !charge.order.capture) {
            return Some(format!("took {captured} and has {} captures that were done", self.captures));
        }
        let lock: Vec<OperationId> = self.open.iter().map(|(id, _)| *id).collect();
        if lock != charge.working.as_slice() {
            return Some("is not locked by the one capture or void that is under way".to_owned());
        }
        (!self.allows(charge)).then(|| {
            let status = charge.status.name();
            format!("is {status}, which its {captured} taken and {refunded} given back do not make it")
        })
    }

    /// Whether the charge's status follows from its operations.
    fn allows(&self, charge: &Charge) -> bool {
        let ChargeSums { captured, refunded, .. } = charge.sums;
        let untouched = captured == 0 && self.voids == 0;
        match charge.status {
            ChargeStatus::Processing | ChargeStatus::Failed => untouched && self.open.is_empty(),
            ChargeStatus::RequiresCapture => untouched && !self.has_parked(),
            // Parked during creation, or by a parked operation.
            ChargeStatus::Parked => untouched && (self.open.is_empty() || self.has_parked()),
            ChargeStatus::Voided => captured == 0 && self.voids == 1 && self.open.is_empty(),
            ChargeStatus::Succeeded => captured > 0 && refunded == 0 && self.open.is_empty(),
            ChargeStatus::PartiallyRefunded => refunded > 0 && refunded < captured,
            ChargeStatus::Refunded => refunded > 0 && refunded == captured,
        }
    }

    fn has_parked(&self) -> bool {
        self.open.iter().any(|(_, status)| *status == OperationStatus::Parked)
    }
}

/// The difference between a charge and its operations at one moment. Each operation that begins or
/// ends also changes the charge. Operations read between two reads of the same charge revision are
/// therefore those of one moment.
pub(super) async fn look_again<S: Store>(
    store: &S,
    tenant: TenantId,
    id: ChargeId,
) -> Result<Option<String>, ReadError> {
    for _ in 0..LOOKS_MAX {
        let before = Rows::read(store, vec![RowKey::Charge(tenant, id)]).await?;
        let mut tally = Tally::default();
        let mut after = None;
        loop {
            let next = Scan::OperationsOn { tenant, charge: id, after, limit: SCAN_MAX };
            let page = operations(store.scan(next).await?);
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            page.iter().filter(|one| one.charge == id).for_each(|one| tally.add(one));
        }
        let rows = Rows::read(store, vec![RowKey::Charge(tenant, id)]).await?;
        match (before.charge(id), rows.charge(id)) {
            (Some(before), Some(now)) if before.revision == now.revision => return Ok(tally.difference(now)),
            _ => {}
        }
    }
    Ok(None)
}

fn operations(page: Vec<Row>) -> Vec<Operation> {
    page.into_iter()
        .filter_map(|row| if let Row::Operation(operation) = row { Some(operation) } else { None })
        .collect()
}

/// Checks all operations; returns their sums.
pub(super) async fn check<S: Store>(
    store: &S,
    claims: &Makers,
    references: &References,
    report: &mut VerifyReport,
) -> Result<Tallies, ReadError> {
    let (mut tallies, mut after) = (Tallies::default(), None);
    loop {
        let page = operations(store.scan(Scan::Operations { after, limit: SCAN_MAX }).await?);
        let Some(last) = page.last() else { return Ok(tallies) };
        after = Some((last.tenant, last.id));
        for chunk in page.chunks(CHUNK) {
            let asked = chunk.iter().flat_map(|one| keys(one, claims.of_operation(one.id))).collect();
            let rows = Rows::read(store, asked).await?;
            for listed in chunk {
                tallies.0.entry(listed.charge).or_default().add(listed);
                let Some(view) = View::of(&rows, listed.id, claims.of_operation(listed.id)) else { continue };
                let Some(late) = view.unlisted() else {
                    view.check(references, report);
                    continue;
                };
                let rows = Rows::read(store, keys(listed, Some(late))).await?;
                if let Some(view) = View::of(&rows, listed.id, Some(late)) {
                    view.check(references, report);
                }
            }
        }
    }
}

/// Keys of the rows an operation is checked against.
fn keys(operation: &Operation, claim: Option<ClaimId>) -> Vec<RowKey> {
    let Operation { id, tenant, charge, .. } = *operation;
    let mut keys = vec![
        RowKey::Operation(tenant, id),
        RowKey::Outbox(tenant, id.into()),
        RowKey::Charge(tenant, charge),
    ];
    keys.extend(claim.map(|claim| RowKey::Claim(tenant, claim)));
    if operation.kind == OperationKind::Refund {
        keys.push(RowKey::Hold(tenant, hold_of(id)));
        let codes = [Role::Receivable, Role::Suspense].map(|role| role.code(operation.amount.asset()));
        keys.extend(codes.into_iter().flatten().map(|code| RowKey::Name(tenant, code)));
    }
    keys
}

/// The hold of a refund has the refund's id.
fn hold_of(refund: OperationId) -> HoldId {
    HoldId::from_i64(refund.to_i64())
}

/// Rows of an operation, from a single snapshot.
struct View<'a> {
    rows: &'a Rows,
    operation: &'a Operation,
    charge: Option<&'a Charge>,
    outbox: Option<&'a Outbox>,
    claim: Option<&'a Claim>,
}

impl<'a> View<'a> {
    fn of(rows: &'a Rows, id: OperationId, claim: Option<ClaimId>) -> Option<View<'a>> {
        let operation = rows.operation(id)?;
        Some(View {
            rows,
            operation,
            charge: rows.charge(operation.charge).filter(|charge| charge.tenant == operation.tenant),
            outbox: rows.outbox(id.into()),
            claim: claim.and_then(|claim| rows.claim(claim, id.into())),
        })
    }

    /// The claim of an operation that was made after the claims were listed. Its work names it.
    fn unlisted(&self) -> Option<ClaimId> {
        let unseen = !self.operation.status.is_final() && self.claim.is_none();
        self.outbox.filter(|_| unseen).map(|outbox| outbox.claim)
    }

    fn check(&self, references: &References, report: &mut VerifyReport) {
        let Operation { id, kind, charge, .. } = *self.operation;
        let seal = |kind, id| references.seal(kind, id).to_string();
        let charge = seal(ReferenceKind::Charge, charge.to_i64());
        let refund = (kind == OperationKind::Refund).then(|| seal(ReferenceKind::Refund, id.to_i64()));
        let name = match &refund {
            Some(refund) => format!("{refund} of {charge}"),
            None => format!("the {} of {charge}", kind.name()),
        };
        report.note("operation_has_work", self.disorder().map(|what| format!("{name} {what}")));
        if let Some(claim) = self.claim {
            let expected = match (&refund, self.charge) {
                (Some(id), _) => {
                    let amount = self.operation.amount.minor();
                    Some(Expected { id, about: ("charge", &charge), amount, asset: None })
                }
                (None, Some(row)) => Some(Expected::charge(&charge, row)),
                (None, None) => None,
            };
            if let Some(expected) = expected {
                answers::check(claim, expected, report);
            }
        }
        if kind == OperationKind::Refund {
            report.note("refunds_are_posted", self.misbooked().map(|what| format!("{name} {what}")));
        }
    }

    /// The disagreement between the operation and its charge, work and claim.
    fn disorder(&self) -> Option<String> {
        let status = self.operation.status.name();
        if self.charge.is_none() {
            return Some("has no charge of its tenant".to_owned());
        }
        match (self.operation.status.is_final(), self.outbox) {
            (false, None) => return Some(format!("is {status} and has no work")),
            (true, Some(_)) => return Some(format!("is {status} and has work left")),
            (false, Some(outbox)) if !self.is_worked_on_by(outbox) => {
                return Some(format!("is {status} and its work is for something else"));
            }
            (true, None) | (false, Some(_)) => {}
        }
        let agrees = match self.claim.map(|claim| &claim.state) {
            // A claim outlives its work by far, so only a final operation may have none.
            None | Some(ClaimState::Expired { .. }) => self.operation.status.is_final(),
            Some(ClaimState::Completed(_)) => self.operation.status == OperationStatus::Succeeded,
            Some(ClaimState::FailedTerminal(_)) => self.operation.status == OperationStatus::Failed,
            Some(state) => is_open(state) && !self.operation.status.is_final(),
        };
        let claim = self.claim.map_or("gone", |claim| claim.state.name());
        (!agrees).then(|| format!("is {status} and its claim is {claim}"))
    }

    fn is_worked_on_by(&self, outbox: &Outbox) -> bool {
        let Operation { id, tenant, charge, kind, status, .. } = *self.operation;
        let hold = (kind == OperationKind::Refund).then(|| hold_of(id));
        outbox.payment == Payment::Charge(charge)
            && outbox.tenant == tenant
            && outbox.saga.flow == kind.flow()
            && outbox.hold == hold
            && outbox.parked.is_some() == (status == OperationStatus::Parked)
            && self.claim.is_none_or(|claim| claim.id == outbox.claim)
    }

    /// The disagreement between the refund and its reservation.
    fn misbooked(&self) -> Option<String> {
        let Operation { id, tenant, amount, status, .. } = *self.operation;
        let Some(hold) = self.rows.hold(hold_of(id)) else {
            return Some("has nothing reserved under its number".to_owned());
        };
        let terms = hold.is_a_payments()
            && (hold.tenant, hold.amount, hold.asset) == (tenant, amount.minor(), amount.asset())
            && self.is_between_its_accounts(hold);
        if !terms {
            return Some("has something else reserved under its number".to_owned());
        }
        let right = match (status, hold.state) {
            (OperationStatus::Processing | OperationStatus::Parked, HoldState::Pending)
            | (OperationStatus::Failed, HoldState::Voided { .. }) => true,
            (OperationStatus::Succeeded, HoldState::Posted { amount, .. }) => amount == hold.amount,
            (
                OperationStatus::Processing
                | OperationStatus::Parked
                | OperationStatus::Failed
                | OperationStatus::Succeeded,
                HoldState::Pending
                | HoldState::Posted { .. }
                | HoldState::Voided { .. }
                | HoldState::Lapsed { .. },
            ) => false,
        };
        let state = hold.state.name();
        (!right).then(|| format!("is {} and what it reserved is {state}", status.name()))
    }

    /// Whether the refund debits the account credited by the charge: the destination or suspense.
    fn is_between_its_accounts(&self, hold: &Hold) -> bool {
        let account = |role: Role| -> Option<AccountId> {
            Some(self.rows.named(hold.tenant, &role.code(hold.asset).ok()?)?.account)
        };
        let credited = self.charge.map(|charge| charge.order.destination);
        account(Role::Receivable) == Some(hold.to)
            && (credited == Some(hold.from) || account(Role::Suspense) == Some(hold.from))
    }
}

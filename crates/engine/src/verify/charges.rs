//! Charges against their claims, work, operations and timelines. Each charge is read from a single
//! snapshot.

use super::answers::{self, Expected};
use super::claims::Makers;
use super::ledger::{Captured, Captures};
use super::operations::{self, Tallies};
use super::report::VerifyReport;
use super::timelines;
use counterfoil_core::audit::AuditRecord;
use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::charge::{Charge, ChargeStatus};
use counterfoil_core::types::id::{ChargeId, TenantId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store};
use std::collections::HashSet;

/// Rows of a charge, from a single snapshot.
struct View {
    charge: Charge,
    claim: Option<Claim>,
    outbox: Option<Outbox>,
    reference: String,
}

/// Charges per snapshot.
const CHUNK: usize = 64;

/// Checks all charges; returns the expected postings of the captured ones.
pub(super) async fn check<S: Store>(
    store: &S,
    (claims, tallies): (&Makers, &Tallies),
    references: &References,
    report: &mut VerifyReport,
    progress: &impl Fn(u64),
) -> Result<Captures, ReadError> {
    let mut captured = Captures::new();
    let mut provider_references = HashSet::new();
    let (mut after, mut seen) = (None, 0_u64);
    loop {
        let page = store.scan(Scan::Charges { after, limit: SCAN_MAX }).await?;
        let ids: Vec<(TenantId, ChargeId)> = page
            .iter()
            .filter_map(|row| match row {
                Row::Charge(charge) => Some((charge.tenant, charge.id)),
                _ => None,
            })
            .collect();
        let Some(last) = ids.last() else { break };
        after = Some(*last);
        for chunk in ids.chunks(CHUNK) {
            for view in views(store, chunk, claims, references).await? {
                check_view(&view, report);
                check_provider(&view, &mut provider_references, report);
                check_operations(store, &view, tallies, report).await?;
                check_timeline(
                    &view,
                    &timelines::of(store, view.charge.tenant, view.charge.id.into()).await?,
                    report,
                );
                captured.extend(Captured::of(&view.charge).map(|posting| (view.charge.id, posting)));
                seen = seen.saturating_add(1);
            }
            progress(seen);
        }
    }
    Ok(captured)
}

async fn views<S: Store>(
    store: &S,
    ids: &[(TenantId, ChargeId)],
    claims: &Makers,
    references: &References,
) -> Result<Vec<View>, ReadError> {
    let mut keys = Vec::with_capacity(ids.len().saturating_mul(3));
    for (tenant, id) in ids {
        keys.extend([RowKey::Charge(*tenant, *id), RowKey::Outbox(*tenant, (*id).into())]);
        keys.extend(claims.of_charge(*id).map(|claim| RowKey::Claim(*tenant, claim)));
    }
    let mut views: Vec<View> = Vec::with_capacity(ids.len());
    for row in store.read(keys).await?.into_iter().flatten() {
        match row {
            Row::Charge(charge) => {
                let reference = references.seal(ReferenceKind::Charge, charge.id.to_i64()).to_string();
                views.push(View { charge, claim: None, outbox: None, reference });
            }
            Row::Outbox(outbox) => views
                .iter_mut()
                .filter(|view| outbox.id == view.charge.id.into())
                .for_each(|view| view.outbox = Some(outbox.clone())),
            Row::Claim(claim) => views
                .iter_mut()
                .filter(|view| view.charge.id == claim.subject.into())
                .for_each(|view| view.claim = Some(claim.clone())),
            _ => {}
        }
    }
    Ok(views)
}

fn check_view(view: &View, report: &mut VerifyReport) {
    let name = &view.reference;
    let open = is_being_made(&view.charge);
    // The claim of a charge made after the claims were listed is unknown here.
    if let Some(claim) = &view.claim {
        let settled = claim.state.settled().is_some() || matches!(claim.state, ClaimState::Expired { .. });
        let broken = match (settled, &view.outbox) {
            (false, None) => Some(format!("{name} is {} and has no work", claim.state.name())),
            (true, Some(_)) => Some(format!("{name} is {} and has work left", claim.state.name())),
            (true, None) | (false, Some(_)) => None,
        };
        report.note("claim_has_work", broken);
        report.note("charge_agrees_with_claim", disagreement(view, claim));
        answers::check(claim, Expected::charge(name, &view.charge), report);
    } else if open {
        let guarded = view.outbox.is_some();
        report.note("charge_has_claim", (!guarded).then(|| format!("{name} is open and nothing guards it")));
    }
    if let Some(outbox) = &view.outbox {
        let strange = !open || view.claim.as_ref().is_some_and(|claim| claim.id != outbox.claim);
        report.note(
            "work_has_payment",
            strange.then(|| format!("{name} is {} and has work", view.charge.status.name())),
        );
    }
}

/// Whether the charge is still being made. A charge that is parked later is locked by an operation.
fn is_being_made(charge: &Charge) -> bool {
    charge.status == ChargeStatus::Processing
        || (charge.status == ChargeStatus::Parked && charge.working.is_none())
}

fn disagreement(view: &View, claim: &Claim) -> Option<String> {
    let status = view.charge.status;
    let agrees = match &claim.state {
        ClaimState::Completed(_) => !is_being_made(&view.charge) && status != ChargeStatus::Failed,
        ClaimState::FailedTerminal(_) => status == ChargeStatus::Failed,
        ClaimState::InFlight(_) | ClaimState::FailedRetry { .. } => status == ChargeStatus::Processing,
        ClaimState::Uncertain(_) => is_being_made(&view.charge),
        ClaimState::Expired { .. } => !is_being_made(&view.charge),
    };
    (!agrees)
        .then(|| format!("{} is {} but its claim is {}", view.reference, status.name(), claim.state.name()))
}

/// Checks the charge against the operations. On a live store the two may have been read at
/// different times. A difference counts only if both show the difference at the same moment.
async fn check_operations<S: Store>(
    store: &S,
    view: &View,
    tallies: &Tallies,
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    let mut broken = tallies.difference(&view.charge);
    if broken.is_some() {
        broken = operations::look_again(store, view.charge.tenant, view.charge.id).await?;
    }
    report.note("operations_add_up", broken.map(|how| format!("{} {how}", view.reference)));
    Ok(())
}

fn check_provider(view: &View, seen: &mut HashSet<String>, report: &mut VerifyReport) {
    let executed = !is_being_made(&view.charge) && view.charge.status != ChargeStatus::Failed;
    if let (true, Some(reference)) = (executed, &view.charge.provider_reference) {
        let fresh = seen.insert(reference.clone());
        report.note(
            "provider_effect_is_single",
            (!fresh).then(|| format!("{} shares {reference}", view.reference)),
        );
    }
}

fn check_timeline(view: &View, records: &[AuditRecord], report: &mut VerifyReport) {
    let (name, status) = (&view.reference, view.charge.status);
    let open = is_being_made(&view.charge);
    let nameless = !open && status != ChargeStatus::Failed && view.charge.provider_reference.is_none();
    report.note("provider_effect_is_single", nameless.then(|| format!("{name} has no provider reference")));
    let broken = timelines::disorder(records, open, status.name());
    report.note("timeline_is_lawful", broken.map(|what| format!("{name} {what}")));
}

//! Charges, claims, work and timelines, each charge from one snapshot.

use super::ledger::{Captured, Captures};
use super::report::Report;
use counterfoil_core::audit::{Kind, Record};
use counterfoil_core::idempotency::claim::{Claim, ClaimId, Resource, Settled, State};
use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::charge::{Charge, Status};
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::reference::{Kind as ReferenceKind, References};
use counterfoil_store::{ReadError, Row, RowKey, Scan, Store};
use std::collections::{HashMap, HashSet};

/// Rows of one charge, all from one moment.
struct View {
    charge: Charge,
    claim: Option<Claim>,
    outbox: Option<Outbox>,
    reference: String,
}

/// Charges whose rows are read in one snapshot.
const CHUNK: usize = 64;

/// Checks all charges; gives what the captured ones should have posted.
pub(super) async fn check<S: Store>(
    store: &S,
    references: &References,
    report: &mut Report,
    progress: &impl Fn(u64),
) -> Result<Captures, ReadError> {
    let mut captured = Captures::new();
    let claims = claims_by_subject(store).await?;
    let mut provider_references = HashSet::new();
    let (mut after, mut seen) = (None, 0_u64);
    loop {
        let page = store.scan(Scan::Charges { after, limit: SCAN_MAX }).await?;
        let ids: Vec<ChargeId> = page
            .iter()
            .filter_map(|row| if let Row::Charge(charge) = row { Some(charge.id) } else { None })
            .collect();
        let Some(last) = ids.last() else { break };
        after = Some(*last);
        for chunk in ids.chunks(CHUNK) {
            for view in views(store, chunk, &claims, references).await? {
                check_view(&view, report);
                check_provider(&view, &mut provider_references, report);
                check_timeline(&view, &timeline(store, view.charge.id).await?, report);
                captured.extend(Captured::of(&view.charge).map(|posting| (view.charge.id, posting)));
                seen = seen.saturating_add(1);
            }
            progress(seen);
        }
    }
    check_orphans(store, &claims, report).await?;
    check_work(store, references, report).await?;
    Ok(captured)
}

/// Which claim made which charge. Claims that were made after this look are found by their charges' snapshots.
async fn claims_by_subject<S: Store>(store: &S) -> Result<HashMap<ChargeId, ClaimId>, ReadError> {
    let (mut all, mut after) = (HashMap::new(), None);
    loop {
        let page = store.scan(Scan::Claims { after, limit: SCAN_MAX }).await?;
        let claims =
            page.into_iter().filter_map(|row| if let Row::Claim(claim) = row { Some(claim) } else { None });
        let last = after;
        for claim in claims {
            after = Some(claim.subject);
            if claim.makes == Resource::Charge {
                all.insert(ChargeId::from(claim.subject), claim.id);
            }
        }
        if after == last {
            return Ok(all);
        }
    }
}

async fn views<S: Store>(
    store: &S,
    ids: &[ChargeId],
    claims: &HashMap<ChargeId, ClaimId>,
    references: &References,
) -> Result<Vec<View>, ReadError> {
    let mut keys = Vec::with_capacity(ids.len().saturating_mul(3));
    for id in ids {
        keys.extend([RowKey::Charge(*id), RowKey::Outbox(*id)]);
        keys.extend(claims.get(id).map(|claim| RowKey::Claim(*claim)));
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
                .filter(|view| view.charge.id == outbox.charge)
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

fn check_view(view: &View, report: &mut Report) {
    let name = &view.reference;
    let open = matches!(view.charge.status, Status::Processing | Status::Parked);
    // A charge made after the claims were listed is not judged by a claim this look cannot see.
    if let Some(claim) = &view.claim {
        let settled = claim.state.settled().is_some() || matches!(claim.state, State::Expired { .. });
        let broken = match (settled, &view.outbox) {
            (false, None) => Some(format!("{name} is {} and has no work", claim.state.name())),
            (true, Some(_)) => Some(format!("{name} is {} and has work left", claim.state.name())),
            (true, None) | (false, Some(_)) => None,
        };
        report.note("claim_has_work", broken);
        report.note("charge_agrees_with_claim", disagreement(view, claim));
        if let Some(settled) = claim.state.settled() {
            report.note("answer_is_whole", damage(view, settled));
            let ordered = settled.windows.replay_until <= settled.windows.tombstone_until
                && claim.created_at <= settled.windows.replay_until;
            report
                .note("windows_in_order", (!ordered).then(|| format!("{name} has its windows out of order")));
        }
    } else if open {
        let guarded = view.outbox.is_some();
        report.note("charge_has_claim", (!guarded).then(|| format!("{name} is open and nothing guards it")));
    }
    if let Some(outbox) = &view.outbox {
        let strange = !open || view.claim.as_ref().is_some_and(|claim| claim.id != outbox.claim);
        report.note(
            "work_has_charge",
            strange.then(|| format!("{name} is {} and has work", view.charge.status.name())),
        );
    }
}

fn disagreement(view: &View, claim: &Claim) -> Option<String> {
    let status = view.charge.status;
    let agrees = match &claim.state {
        State::Completed(_) => matches!(status, Status::Succeeded | Status::RequiresCapture),
        State::FailedTerminal(_) => status == Status::Failed,
        State::InFlight(_) | State::FailedRetry { .. } => status == Status::Processing,
        State::Uncertain(_) => matches!(status, Status::Processing | Status::Parked),
        State::Expired { .. } => !matches!(status, Status::Processing | Status::Parked),
    };
    (!agrees)
        .then(|| format!("{} is {} but its claim is {}", view.reference, status.name(), claim.state.name()))
}

fn damage(view: &View, settled: &Settled) -> Option<String> {
    let Ok(Json::Object(body)) = Json::parse(&settled.reply.body) else {
        return Some(format!("{}: the stored answer cannot be read", view.reference));
    };
    let own = |field: &str| matches!(body.get(field), Some(Json::String(id)) if *id == view.reference);
    if settled.reply.status >= 400 {
        return (!own("charge"))
            .then(|| format!("{}: the stored refusal names another charge", view.reference));
    }
    let amount = match body.get("amount") {
        Some(Json::Number(amount)) => amount.to_i64(),
        Some(_) | None => None,
    };
    let currency = matches!(body.get("currency"), Some(Json::String(code)) if code == view.charge.order.amount.asset().code());
    let whole = own("id") && currency && amount == Some(view.charge.order.amount.minor());
    (!whole).then(|| format!("{}: the stored answer names another charge or amount", view.reference))
}

fn check_provider(view: &View, seen: &mut HashSet<String>, report: &mut Report) {
    if let (Status::Succeeded | Status::RequiresCapture, Some(reference)) =
        (view.charge.status, &view.charge.provider_reference)
    {
        let fresh = seen.insert(reference.clone());
        report.note(
            "provider_effect_is_single",
            (!fresh).then(|| format!("{} shares {reference}", view.reference)),
        );
    }
}

/// All audit records of a charge: one that was in doubt for hours has more than a page of them.
async fn timeline<S: Store>(store: &S, charge: ChargeId) -> Result<Vec<Record>, ReadError> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let before = all.len();
        let page = store.scan(Scan::Timeline { subject: charge.into(), after, limit: SCAN_MAX }).await?;
        let records =
            page.into_iter().filter_map(|row| if let Row::Audit(record) = row { Some(record) } else { None });
        all.extend(records);
        if all.len().saturating_sub(before) < SCAN_MAX {
            return Ok(all);
        }
        after = all.last().map(|record: &Record| record.id);
    }
}

fn check_timeline(view: &View, records: &[Record], report: &mut Report) {
    let name = &view.reference;
    let begins = records.first().is_some_and(|first| first.kind == Kind::Claimed);
    let falls =
        records.iter().zip(records.iter().skip(1)).any(|(earlier, later)| later.fence < earlier.fence);
    let settled = records.iter().filter(|record| record.kind == Kind::Settled).count();
    let open = matches!(view.charge.status, Status::Processing | Status::Parked);
    let nameless = matches!(view.charge.status, Status::Succeeded | Status::RequiresCapture)
        && view.charge.provider_reference.is_none();
    report.note("provider_effect_is_single", nameless.then(|| format!("{name} has no provider reference")));
    let broken = if !begins {
        Some(format!("{name} has no beginning"))
    } else if falls {
        Some(format!("{name}: a fence falls"))
    } else if settled > 1 || (!open && settled == 0) {
        Some(format!("{name} was settled {settled} times"))
    } else {
        None
    };
    report.note("timeline_is_lawful", broken);
}

/// Outbox rows whose charge is not there at all.
async fn check_work<S: Store>(
    store: &S,
    references: &References,
    report: &mut Report,
) -> Result<(), ReadError> {
    let mut after = None;
    loop {
        let page = store.scan(Scan::Outbox { after, limit: SCAN_MAX }).await?;
        let work: Vec<ChargeId> = page
            .iter()
            .filter_map(|row| if let Row::Outbox(outbox) = row { Some(outbox.charge) } else { None })
            .collect();
        let Some(last) = work.last() else { return Ok(()) };
        after = Some(*last);
        let charges = store.read(work.iter().map(|id| RowKey::Charge(*id)).collect()).await?;
        for (id, charge) in work.iter().zip(charges) {
            let name = || references.seal(ReferenceKind::Charge, id.to_i64());
            report.note(
                "work_has_charge",
                charge.is_none().then(|| format!("{} has work and no charge", name())),
            );
        }
    }
}

/// Claims whose charge is not there at all.
async fn check_orphans<S: Store>(
    store: &S,
    claims: &HashMap<ChargeId, ClaimId>,
    report: &mut Report,
) -> Result<(), ReadError> {
    let subjects: Vec<ChargeId> = claims.keys().copied().collect();
    for chunk in subjects.chunks(SCAN_MAX) {
        let rows = store.read(chunk.iter().map(|id| RowKey::Charge(*id)).collect()).await?;
        for (id, row) in chunk.iter().zip(rows) {
            if row.is_none() {
                report.note(
                    "claim_has_work",
                    Some(format!("a claim made charge {} which is not there", id.to_i64())),
                );
            }
        }
    }
    Ok(())
}

//! The history of commits: dense positions, and rows that only move forward.

use super::{Evidence, Violation};
use crate::store::Applied;
use counterfoil_core::idempotency::claim::{Claim, ClaimState, Resource};
use counterfoil_core::payments::charge::{Charge, ChargeStatus};
use counterfoil_core::payments::operation::{Operation, OperationKind, OperationStatus};
use counterfoil_core::types::id::{ChargeId, OperationId, SetId, SubjectId, TenantId};
use counterfoil_store::{Row, RowKey};
use std::collections::{BTreeMap, BTreeSet};

/// The rows at one prefix of the history. Operations are never removed.
#[derive(Default)]
struct Rows<'a> {
    all: BTreeMap<&'a RowKey, &'a Row>,
    operations: BTreeMap<ChargeId, BTreeMap<OperationId, &'a Operation>>,
}

impl<'a> Rows<'a> {
    fn put(&mut self, key: &'a RowKey, row: &'a Row) {
        self.all.insert(key, row);
        if let Row::Operation(operation) = row {
            self.operations.entry(operation.charge).or_default().insert(operation.id, operation);
        }
    }
}

/// Checks the history.
pub fn check(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut sets: BTreeSet<SetId> = BTreeSet::new();
    let mut minted: BTreeMap<i64, u64> = BTreeMap::new();
    let mut open: BTreeMap<SubjectId, bool> = BTreeMap::new();
    let mut rows = Rows::default();
    let mut last_at = None;
    for (expected, applied) in (1_u64..).zip(&evidence.history) {
        let receipt = applied.committed.receipt;
        let mut say = |check, invariant, what: String| {
            found.push(Violation::new(check, invariant, format!("commit {expected}: {what}")));
        };
        if receipt.position.0 != expected {
            say("order", "I11", format!("has the position {}", receipt.position.0));
        }
        if last_at.is_some_and(|last| receipt.at < last) {
            say("order", "I11", "is older than the one before".to_owned());
        }
        last_at = Some(receipt.at);
        if !sets.insert(applied.committed.set) {
            say("order", "I14", "has the id of an earlier set".to_owned());
        }
        let changes = applied.committed.touched.iter().zip(applied.changes());
        for (key, (before, after)) in changes {
            if rows.all.get(key).copied() != before {
                say("order", "I19", format!("{key:?} changed without a commit"));
            }
            if let Some(broken) = forward(before, after) {
                say("order", "I10", format!("{key:?} {broken}"));
            }
            if before.is_none() && after.is_some() {
                count(&mut minted, key);
            }
            match after {
                Some(row) => rows.put(key, row),
                None => drop(rows.all.remove(key)),
            }
            track(&mut open, key, after);
        }
        if let Some(missing) = unaudited(applied) {
            say("order", "I11", missing);
        }
        for (subject, has_work) in pairs(applied, &open, &rows) {
            say("order", "I9", format!("{} is open: {}, has work: {has_work}", subject.to_i64(), !has_work));
        }
        for what in sums(applied, &rows) {
            say("order", "I10", what);
        }
    }
    if !rows.all.into_iter().eq(evidence.rows.iter().map(|(key, row)| (key, row.as_ref()))) {
        found.push(Violation::new("order", "I19", "the rows are not what the commits made".to_owned()));
    }
    for (id, times) in minted.into_iter().filter(|(_, times)| *times > 1) {
        found.push(Violation::new("order", "I14", format!("the id {id} was used {times} times")));
    }
}

/// Ids are unique within a kind. A hold shares its id with its transaction, a charge with its
/// posting.
fn count(minted: &mut BTreeMap<i64, u64>, key: &RowKey) {
    let kind_and_id = match key {
        RowKey::Charge(_, id) => (1, id.to_i64()),
        RowKey::Account(_, id) => (2, id.to_i64()),
        RowKey::Hold(_, id) => (3, id.to_i64()),
        RowKey::Transaction(_, id) => (4, id.to_i64()),
        RowKey::Operation(_, id) => (5, id.to_i64()),
        RowKey::Payout(_, id) => (6, id.to_i64()),
        _ => return,
    };
    let place = kind_and_id.1.wrapping_mul(8).wrapping_add(kind_and_id.0);
    let times = minted.entry(place).or_default();
    *times = times.saturating_add(1);
}

/// The reason why a change does not move a row forward, or `None`.
fn forward(before: Option<&Row>, after: Option<&Row>) -> Option<String> {
    let (before, after) = (before?, after?);
    if after.revision() <= before.revision() && !matches!(after, Row::Slot(_)) {
        return Some(format!("has revision {} after {}", after.revision(), before.revision()));
    }
    match (before, after) {
        (Row::Claim(old), Row::Claim(new)) => claim_moved(old, new),
        (Row::Charge(old), Row::Charge(new)) => charge_moved(old, new),
        (Row::Operation(old), Row::Operation(new)) => {
            let same = (old.kind, old.amount, old.charge) == (new.kind, new.amount, new.charge);
            (old.status.is_final() || !same)
                .then(|| format!("went from {} to {}", old.status.name(), new.status.name()))
        }
        (Row::Payout(old), Row::Payout(new)) => {
            let fixed = old.order == new.order && old.provider == new.provider && old.tenant == new.tenant;
            (old.status.is_final() || !fixed)
                .then(|| format!("went from {} to {}", old.status.name(), new.status.name()))
        }
        (Row::Outbox(old), Row::Outbox(new)) => {
            let older = old.saga == new.saga && new.history.generation < old.history.generation;
            let other = new.provider != old.provider || new.payment != old.payment || new.hold != old.hold;
            (older || other).then(|| "went back to an older key, or to another payment".to_owned())
        }
        (Row::Transaction(_) | Row::Audit(_) | Row::Reversal(_) | Row::Name(_), _) => {
            Some("is history and was changed".to_owned())
        }
        _ => None,
    }
}

fn charge_moved(old: &Charge, new: &Charge) -> Option<String> {
    let lawful: &[ChargeStatus] = match old.status {
        ChargeStatus::Processing => &[
            ChargeStatus::Processing,
            ChargeStatus::Parked,
            ChargeStatus::RequiresCapture,
            ChargeStatus::Succeeded,
            ChargeStatus::Failed,
        ],
        ChargeStatus::Parked => &[
            ChargeStatus::Processing,
            ChargeStatus::Parked,
            ChargeStatus::RequiresCapture,
            ChargeStatus::Succeeded,
            ChargeStatus::Voided,
            ChargeStatus::Failed,
        ],
        ChargeStatus::RequiresCapture => &[
            ChargeStatus::RequiresCapture,
            ChargeStatus::Succeeded,
            ChargeStatus::Voided,
            ChargeStatus::Parked,
        ],
        ChargeStatus::Succeeded => {
            &[ChargeStatus::Succeeded, ChargeStatus::PartiallyRefunded, ChargeStatus::Refunded]
        }
        ChargeStatus::PartiallyRefunded => &[ChargeStatus::PartiallyRefunded, ChargeStatus::Refunded],
        ChargeStatus::Voided => &[ChargeStatus::Voided],
        ChargeStatus::Refunded => &[ChargeStatus::Refunded],
        ChargeStatus::Failed => &[ChargeStatus::Failed],
    };
    let fixed = old.order == new.order && old.provider == new.provider;
    let taken = old.sums.captured == 0 || old.sums.captured == new.sums.captured;
    (!lawful.contains(&new.status) || !fixed || !taken)
        .then(|| format!("went from {} to {}", old.status.name(), new.status.name()))
}

/// A charge agrees with its operations after every commit. Running refunds are reserved, refunded
/// sums were requested, and a capture or void locks the charge.
fn sums(applied: &Applied, rows: &Rows<'_>) -> Vec<String> {
    let touched: BTreeSet<(TenantId, ChargeId)> = applied
        .rows()
        .filter_map(|row| match row {
            Row::Charge(charge) => Some((charge.tenant, charge.id)),
            Row::Operation(operation) => Some((operation.tenant, operation.charge)),
            _ => None,
        })
        .collect();
    let mut broken = Vec::new();
    for (tenant, id) in touched {
        let Some(Row::Charge(charge)) = rows.all.get(&RowKey::Charge(tenant, id)) else { continue };
        let own: Vec<&Operation> =
            rows.operations.get(&id).into_iter().flat_map(|own| own.values().copied()).collect();
        let refunds = |done: bool| -> i64 {
            let refunds = own.iter().filter(|one| one.kind == OperationKind::Refund);
            let wanted = refunds.filter(|one| match one.status {
                OperationStatus::Succeeded => done,
                OperationStatus::Processing | OperationStatus::Parked => !done,
                OperationStatus::Failed => false,
            });
            wanted.map(|one| one.amount.minor()).sum()
        };
        let open: Vec<OperationId> = own
            .iter()
            .filter(|one| one.kind != OperationKind::Refund && !one.status.is_final())
            .map(|one| one.id)
            .collect();
        let sums = charge.sums;
        let right = (sums.refunding, sums.refunded) == (refunds(false), refunds(true))
            && sums.refunding.saturating_add(sums.refunded) <= sums.captured
            && open == charge.working.into_iter().collect::<Vec<_>>();
        if !right {
            broken.push(format!(
                "charge {} says {sums:?} and {:?}, its operations {} and {}, open {open:?}",
                id.to_i64(),
                charge.working,
                refunds(false),
                refunds(true)
            ));
        }
    }
    broken
}

fn claim_moved(old: &Claim, new: &Claim) -> Option<String> {
    let settled =
        |claim: &Claim| matches!(claim.state, ClaimState::Completed(_) | ClaimState::FailedTerminal(_));
    let restarted = old.subject != new.subject;
    let lawful = match (&old.state, &new.state) {
        (ClaimState::Completed(_) | ClaimState::FailedTerminal(_) | ClaimState::Expired { .. }, _)
            if restarted =>
        {
            new.fence > old.fence
        }
        (_, _) if restarted => false,
        (ClaimState::Completed(_) | ClaimState::FailedTerminal(_), next) => {
            matches!(next, ClaimState::Expired { .. })
        }
        (ClaimState::Expired { .. }, _) => false,
        // Doubt ends only with a settlement.
        (ClaimState::Uncertain(_), next) => {
            matches!(
                next,
                ClaimState::Uncertain(_) | ClaimState::Completed(_) | ClaimState::FailedTerminal(_)
            )
        }
        (ClaimState::InFlight(_) | ClaimState::FailedRetry { .. }, next) => {
            !matches!(next, ClaimState::Expired { .. })
        }
    };
    let holders = (old.state.lease().map(|lease| lease.holder), new.state.lease().map(|lease| lease.holder));
    let handed = matches!(holders, (Some(old), Some(new)) if old != new);
    let fenced = new.fence >= old.fence && (!handed || new.fence > old.fence);
    (!lawful || !fenced || (settled(old) && settled(new) && !restarted)).then(|| {
        format!(
            "went from {} to {} with fence {} after {}",
            old.state.name(),
            new.state.name(),
            new.fence,
            old.fence
        )
    })
}

/// Payments and operations with open claims.
fn track(open: &mut BTreeMap<SubjectId, bool>, key: &RowKey, after: Option<&Row>) {
    if let (RowKey::Claim(..), Some(Row::Claim(claim))) = (key, after)
        && matches!(
            claim.makes,
            Resource::Charge | Resource::Capture | Resource::Void | Resource::Refund | Resource::Payout
        )
    {
        open.insert(
            claim.subject,
            claim.state.settled().is_none() && !matches!(claim.state, ClaimState::Expired { .. }),
        );
    }
}

/// Payments and operations whose claim and work disagree after this commit.
fn pairs(applied: &Applied, open: &BTreeMap<SubjectId, bool>, rows: &Rows<'_>) -> Vec<(SubjectId, bool)> {
    let touched = applied.committed.touched.iter().filter_map(|key| match key {
        RowKey::Charge(of, id) => Some((*of, (*id).into())),
        RowKey::Operation(of, id) => Some((*of, (*id).into())),
        RowKey::Payout(of, id) => Some((*of, (*id).into())),
        RowKey::Outbox(of, id) => Some((*of, *id)),
        _ => None,
    });
    let touched: BTreeSet<(TenantId, SubjectId)> = touched.collect();
    let broken = touched.into_iter().filter_map(|(of, id)| {
        let has_work = rows.all.contains_key(&RowKey::Outbox(of, id));
        (open.get(&id).copied().unwrap_or(false) != has_work).then_some((id, has_work))
    });
    broken.collect()
}

/// Every start, end and takeover of a claim has an audit record in the same commit.
fn unaudited(applied: &Applied) -> Option<String> {
    let changes = applied.changes();
    for (before, after) in changes {
        let Some(Row::Claim(new)) = after else { continue };
        let old = match before {
            Some(Row::Claim(old)) if old.subject == new.subject => Some(old),
            _ => None,
        };
        let needs_record = match old {
            None => true,
            Some(old) => {
                let aged = matches!(new.state, ClaimState::Expired { .. });
                let bulk = new.makes == Resource::Bulk && new.fence > old.fence;
                !aged && !bulk && (new.fence != old.fence || new.state.name() != old.state.name())
            }
        };
        let subjects: Vec<SubjectId> = applied
            .rows()
            .filter_map(|row| if let Row::Audit(record) = row { Some(record.subject) } else { None })
            .collect();
        // The records of an operation are in the charge's history.
        let about_ledger = new.makes != Resource::Charge && !subjects.is_empty();
        if needs_record && !subjects.contains(&new.subject) && !about_ledger {
            return Some(format!("a claim became {} without an audit record", new.state.name()));
        }
    }
    None
}

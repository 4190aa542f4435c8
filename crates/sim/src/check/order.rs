//! The history of commits: dense, and every row only moves forward.

use super::{Evidence, Violation};
use crate::store::Applied;
use counterfoil_core::idempotency::claim::{Claim, Resource, State};
use counterfoil_core::payments::charge::Status;
use counterfoil_core::types::id::{ChargeId, SetId, SubjectId};
use counterfoil_store::{Row, RowKey};
use std::collections::{BTreeMap, BTreeSet};

/// Checks the history.
pub fn check(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut sets: BTreeSet<SetId> = BTreeSet::new();
    let mut minted: BTreeMap<i64, u64> = BTreeMap::new();
    let mut open: BTreeMap<ChargeId, bool> = BTreeMap::new();
    let mut rows: BTreeMap<RowKey, Row> = BTreeMap::new();
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
        let changes = applied.committed.touched.iter().zip(applied.before.iter().zip(&applied.after));
        for (key, (before, after)) in changes {
            if rows.get(key) != before.as_ref() {
                say("order", "I19", format!("{key:?} changed without a commit"));
            }
            if let Some(broken) = forward(before.as_ref(), after.as_ref()) {
                say("order", "I10", format!("{key:?} {broken}"));
            }
            if let (None, Some(Row::Charge(_) | Row::Transaction(_) | Row::Account(_) | Row::Hold(_))) =
                (before, after)
            {
                count(&mut minted, key);
            }
            match after {
                Some(row) => drop(rows.insert(key.clone(), row.clone())),
                None => drop(rows.remove(key)),
            }
            track(&mut open, key, after.as_ref());
        }
        if let Some(missing) = unaudited(applied) {
            say("order", "I11", missing);
        }
        for (charge, has_work) in pairs(applied, &open, &rows) {
            say(
                "order",
                "I9",
                format!("charge {} is open: {}, has work: {has_work}", charge.to_i64(), !has_work),
            );
        }
    }
    if rows != evidence.rows {
        found.push(Violation::new("order", "I19", "the rows are not what the commits made".to_owned()));
    }
    for (id, times) in minted.into_iter().filter(|(_, times)| *times > 1) {
        found.push(Violation::new(
            "order",
            "I14",
            format!("the id {id} was given to {times} things of one kind"),
        ));
    }
}

/// Ids of one kind are made once; a hold and its transaction, a charge and its posting share theirs on purpose.
fn count(minted: &mut BTreeMap<i64, u64>, key: &RowKey) {
    let kind_and_id = match key {
        RowKey::Charge(id) => (1, id.to_i64()),
        RowKey::Account(id) => (2, id.to_i64()),
        RowKey::Hold(id) => (3, id.to_i64()),
        RowKey::Transaction(id) => (4, id.to_i64()),
        _ => return,
    };
    let place = kind_and_id.1.wrapping_mul(8).wrapping_add(kind_and_id.0);
    let times = minted.entry(place).or_default();
    *times = times.saturating_add(1);
}

/// Why a row did not move forward, if it did not.
fn forward(before: Option<&Row>, after: Option<&Row>) -> Option<String> {
    let (before, after) = (before?, after?);
    if after.revision() <= before.revision() && !matches!(after, Row::Slot(_)) {
        return Some(format!("has revision {} after {}", after.revision(), before.revision()));
    }
    match (before, after) {
        (Row::Claim(old), Row::Claim(new)) => claim_moved(old, new),
        (Row::Charge(old), Row::Charge(new)) => {
            let ended = matches!(old.status, Status::Succeeded | Status::RequiresCapture | Status::Failed);
            (ended && old.status != new.status || old.order != new.order)
                .then(|| format!("went from {} to {}", old.status.name(), new.status.name()))
        }
        (Row::Outbox(old), Row::Outbox(new)) => (new.history.generation < old.history.generation
            || new.provider != old.provider)
            .then(|| "went back to an older key or another provider".to_owned()),
        (Row::Transaction(_) | Row::Audit(_) | Row::Reversal(_) | Row::Name(_), _) => {
            Some("is history and was changed".to_owned())
        }
        _ => None,
    }
}

fn claim_moved(old: &Claim, new: &Claim) -> Option<String> {
    let settled = |claim: &Claim| matches!(claim.state, State::Completed(_) | State::FailedTerminal(_));
    let anew = old.subject != new.subject;
    let lawful = match (&old.state, &new.state) {
        (State::Completed(_) | State::FailedTerminal(_) | State::Expired { .. }, _) if anew => {
            new.fence > old.fence
        }
        (_, _) if anew => false,
        (State::Completed(_) | State::FailedTerminal(_), next) => matches!(next, State::Expired { .. }),
        (State::Expired { .. }, _) => false,
        // Doubt leaves only with an end.
        (State::Uncertain(_), next) => {
            matches!(next, State::Uncertain(_) | State::Completed(_) | State::FailedTerminal(_))
        }
        (State::InFlight(_) | State::FailedRetry { .. }, next) => !matches!(next, State::Expired { .. }),
    };
    let holders = (old.state.lease().map(|lease| lease.holder), new.state.lease().map(|lease| lease.holder));
    let handed = matches!(holders, (Some(old), Some(new)) if old != new);
    let fenced = new.fence >= old.fence && (!handed || new.fence > old.fence);
    (!lawful || !fenced || (settled(old) && settled(new) && !anew)).then(|| {
        format!(
            "went from {} to {} with fence {} after {}",
            old.state.name(),
            new.state.name(),
            new.fence,
            old.fence
        )
    })
}

/// Which charges are open, as far as claims tell.
fn track(open: &mut BTreeMap<ChargeId, bool>, key: &RowKey, after: Option<&Row>) {
    if let (RowKey::Claim(_), Some(Row::Claim(claim))) = (key, after)
        && claim.makes == Resource::Charge
    {
        open.insert(
            claim.subject.into(),
            claim.state.settled().is_none() && !matches!(claim.state, State::Expired { .. }),
        );
    }
}

/// Charges whose claim and work do not go together after this commit.
fn pairs(
    applied: &Applied,
    open: &BTreeMap<ChargeId, bool>,
    rows: &BTreeMap<RowKey, Row>,
) -> Vec<(ChargeId, bool)> {
    let touched = applied.committed.touched.iter().filter_map(|key| match key {
        RowKey::Charge(id) | RowKey::Outbox(id) => Some(*id),
        _ => None,
    });
    let touched: BTreeSet<ChargeId> = touched.collect();
    let broken = touched.into_iter().filter_map(|id| {
        let has_work = rows.contains_key(&RowKey::Outbox(id));
        (open.get(&id).copied().unwrap_or(false) != has_work).then_some((id, has_work))
    });
    broken.collect()
}

/// A claim that began, ended or changed hands without an audit record in the same commit.
fn unaudited(applied: &Applied) -> Option<String> {
    let changes = applied.before.iter().zip(&applied.after);
    for (before, after) in changes {
        let Some(Row::Claim(new)) = after else { continue };
        let old = match before {
            Some(Row::Claim(old)) if old.subject == new.subject => Some(old),
            _ => None,
        };
        let told = match old {
            None => true,
            Some(old) => {
                let aged = matches!(new.state, State::Expired { .. });
                let bulk = new.makes == Resource::Bulk && new.fence > old.fence;
                !aged && !bulk && (new.fence != old.fence || new.state.name() != old.state.name())
            }
        };
        let subjects: Vec<SubjectId> = applied
            .after
            .iter()
            .flatten()
            .filter_map(|row| if let Row::Audit(record) = row { Some(record.subject) } else { None })
            .collect();
        let about_books = new.makes != Resource::Charge && !subjects.is_empty();
        if told && !subjects.contains(&new.subject) && !about_books {
            return Some(format!("a claim became {} without a record of it", new.state.name()));
        }
    }
    None
}

//! Waits after unknown outcomes: full jitter, so that requests that met one outage do not all come
//! back together.

use super::{Evidence, Violation};
use counterfoil_core::audit::{AuditKind, AuditRecord};
use counterfoil_core::payments::provider::Cause;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::Row;
use std::collections::{BTreeMap, BTreeSet};

/// This many waits are never all equal by chance.
const ENOUGH: usize = 12;

/// Outcomes after which only chance determines the wait.
const UNKNOWN: [Cause; 5] =
    [Cause::Timeout, Cause::Cut, Cause::ServerError, Cause::InProgress, Cause::Unreadable];

/// Checks waits.
pub fn check(evidence: &Evidence, found: &mut Vec<Violation>) {
    let records: BTreeMap<Ulid, &AuditRecord> = evidence
        .each()
        .filter_map(|row| if let Row::Audit(record) = row { Some((record.id, record)) } else { None })
        .collect();
    let (mut waits, mut count) = (BTreeSet::new(), 0_usize);
    for answered in records.values().filter(|it| it.kind == AuditKind::ProviderAnswered && is_unknown(it)) {
        // The record of the consequence follows the record of the answer.
        let follows = records.get(&answered.id.after(1)).filter(|it| it.kind == AuditKind::Pending);
        let Some(wait) = follows else { continue };
        waits.insert(wait.detail.as_str());
        count = count.saturating_add(1);
    }
    if count >= ENOUGH && waits.len() == 1 {
        let what = format!("all {count} waits after an unknown outcome are the same: {waits:?}");
        found.push(Violation::new("waits", "R26", what));
    }
}

fn is_unknown(record: &AuditRecord) -> bool {
    let outcome = record.detail.split_whitespace().find_map(|word| word.strip_prefix("outcome="));
    outcome.is_some_and(|outcome| UNKNOWN.iter().any(|cause| cause.name() == outcome))
}

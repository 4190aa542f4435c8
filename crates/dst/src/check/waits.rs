//! How long is waited before a provider that did not answer is asked again: full jitter, so that a crowd that met one
//! outage does not come back as a crowd.

use super::{Evidence, Violation};
use counterfoil_core::audit::{AuditKind, AuditRecord};
use counterfoil_core::payments::provider::Cause;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::Row;
use std::collections::{BTreeMap, BTreeSet};

/// So many waits are never all the same by chance.
const ENOUGH: usize = 12;

/// Outcomes after which nothing but chance says how long is waited.
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
        // What follows from an answer is its sibling.
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

//! Dependencies between settings.
//!
//! Defaults adapt to given values. Contradictions between two given values are refused.

use super::problem::Problem;
use super::{Settings, Source};

/// Adapts defaults and lists contradictions. Skips pairs with a setting that could not be read.
pub(super) fn settle(settings: &mut Settings, unsure: impl Fn(&str) -> bool) -> Vec<Problem> {
    let fine = |a: &str, b: &str| !unsure(a) && !unsure(b);
    let mut problems = Vec::new();
    if fine(HEARTBEAT, LEASE) {
        problems.extend(heartbeat_within_lease(settings));
    }
    if fine(LEASE, CEILING) {
        problems.extend(lease_within_ceiling(settings));
    }
    if fine(BACKOFF_BASE, BACKOFF_CAP) {
        problems.extend(backoff_base_within_cap(settings));
    }
    problems
}

const LEASE: &str = "idempotency.lease_ms";
const HEARTBEAT: &str = "idempotency.heartbeat_ms";
const CEILING: &str = "idempotency.lease_ceiling_ms";
const BACKOFF_BASE: &str = "outbox.backoff_base_ms";
const BACKOFF_CAP: &str = "outbox.backoff_cap_ms";

fn heartbeat_within_lease(settings: &mut Settings) -> Option<Problem> {
    let (heartbeat, lease) = (settings.idempotency.heartbeat_ms, settings.idempotency.lease_ms);
    if !is_given(settings, HEARTBEAT) {
        // A third leaves time for one or two lost heartbeats before the lease expires.
        if lease / 3 < heartbeat {
            settings.idempotency.heartbeat_ms = lease / 3;
            settings.sources.derived(HEARTBEAT, "a third of `idempotency.lease_ms`");
        }
        return None;
    }
    (heartbeat >= lease).then(|| contradiction(settings, (HEARTBEAT, heartbeat), "less than", (LEASE, lease)))
}

fn lease_within_ceiling(settings: &mut Settings) -> Option<Problem> {
    let (lease, ceiling) = (settings.idempotency.lease_ms, settings.idempotency.lease_ceiling_ms);
    if lease <= ceiling {
        return None;
    }
    if !is_given(settings, CEILING) {
        settings.idempotency.lease_ceiling_ms = lease;
        settings.sources.derived(CEILING, "raised to `idempotency.lease_ms`");
        return None;
    }
    Some(contradiction(settings, (CEILING, ceiling), "at least", (LEASE, lease)))
}

fn backoff_base_within_cap(settings: &mut Settings) -> Option<Problem> {
    let (base, cap) = (settings.outbox.backoff_base_ms, settings.outbox.backoff_cap_ms);
    if base <= cap {
        return None;
    }
    if !is_given(settings, BACKOFF_CAP) {
        settings.outbox.backoff_cap_ms = base;
        settings.sources.derived(BACKOFF_CAP, "raised to `outbox.backoff_base_ms`");
        return None;
    }
    if !is_given(settings, BACKOFF_BASE) {
        settings.outbox.backoff_base_ms = cap;
        settings.sources.derived(BACKOFF_BASE, "lowered to `outbox.backoff_cap_ms`");
        return None;
    }
    Some(contradiction(settings, (BACKOFF_CAP, cap), "at least", (BACKOFF_BASE, base)))
}

fn is_given(settings: &Settings, setting: &str) -> bool {
    settings.source(setting).is_some_and(Source::is_given)
}

/// Reports the problem at the place of `named`, which was given; the sentence names the source of
/// `other`.
fn contradiction(settings: &Settings, named: (&str, u64), relation: &str, other: (&str, u64)) -> Problem {
    let source_of = |setting: &str| settings.source(setting).cloned().unwrap_or(Source::Default);
    let sentence = format!(
        "`{}` is {} but must be {relation} `{}`, which is {} ({})",
        named.0,
        named.1,
        other.0,
        other.1,
        source_of(other.0)
    );
    Problem { source: source_of(named.0), sentence }
}

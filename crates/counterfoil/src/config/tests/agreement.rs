use super::super::Source;
use super::{file, nothing};

const LEASE: &str = "COUNTERFOIL_IDEMPOTENCY__LEASE_MS";
const HEARTBEAT: &str = "COUNTERFOIL_IDEMPOTENCY__HEARTBEAT_MS";
const CEILING: &str = "COUNTERFOIL_IDEMPOTENCY__LEASE_CEILING_MS";

#[test]
fn a_short_lease_shortens_the_default_heartbeat() {
    let settings = nothing().env(LEASE, "500").load();
    assert_eq!(settings.idempotency.heartbeat_ms, 166);
    let source = settings.source("idempotency.heartbeat_ms").map(ToString::to_string);
    assert_eq!(source.as_deref(), Some("default, a third of `idempotency.lease_ms`"));
}

#[test]
fn the_shortest_lease_still_has_a_heartbeat_within_it() {
    assert_eq!(nothing().env(LEASE, "50").load().idempotency.heartbeat_ms, 16);
}

#[test]
fn a_long_lease_raises_the_default_ceiling() {
    let settings = nothing().env(LEASE, "200000").load();
    assert_eq!(settings.idempotency.lease_ceiling_ms, 200_000);
    assert_eq!(settings.idempotency.heartbeat_ms, 10_000);
}

#[test]
fn a_given_heartbeat_stays_as_given() {
    let settings = nothing().env(LEASE, "500").env(HEARTBEAT, "499").load();
    assert_eq!(settings.idempotency.heartbeat_ms, 499);
}

#[test]
fn a_given_heartbeat_that_outlasts_the_lease_is_refused() {
    file("[idempotency]\nlease_ms = 500\nheartbeat_ms = 500\n").refused(&[
        "FILE:3:16: `idempotency.heartbeat_ms` is 500 but must be less than `idempotency.lease_ms`, which is 500 (FILE:2:12).",
    ]);
    nothing().env(HEARTBEAT, "40000").refused(&[
        "COUNTERFOIL_IDEMPOTENCY__HEARTBEAT_MS: `idempotency.heartbeat_ms` is 40000 but must be less than `idempotency.lease_ms`, which is 30000 (default).",
    ]);
}

#[test]
fn a_given_ceiling_below_the_lease_is_refused() {
    nothing().env(CEILING, "400").env(LEASE, "500").refused(&[
        "COUNTERFOIL_IDEMPOTENCY__LEASE_CEILING_MS: `idempotency.lease_ceiling_ms` is 400 but must be at least `idempotency.lease_ms`, which is 500 (COUNTERFOIL_IDEMPOTENCY__LEASE_MS).",
    ]);
}

#[test]
fn a_default_backoff_adapts_and_two_given_values_must_agree() {
    assert_eq!(file("[outbox]\nbackoff_base_ms = 40_000\n").load().outbox.backoff_cap_ms, 40_000);
    let lowered = file("[outbox]\nbackoff_cap_ms = 100\n").load();
    assert_eq!(lowered.outbox.backoff_base_ms, 100);
    assert_ne!(lowered.source("outbox.backoff_base_ms"), Some(&Source::Default));
    file("[outbox]\nbackoff_base_ms = 2\nbackoff_cap_ms = 1\n").refused(&[
        "FILE:3:18: `outbox.backoff_cap_ms` is 1 but must be at least `outbox.backoff_base_ms`, which is 2 (FILE:2:19).",
    ]);
}

#[test]
fn the_provider_may_take_longer_than_the_lease() {
    assert_eq!(nothing().env(LEASE, "500").load().gateway.timeout_ms, 20_000);
}

#[test]
fn a_value_that_could_not_be_read_is_not_compared() {
    nothing().env(LEASE, "soon").env(HEARTBEAT, "40000").refused(&[
        "COUNTERFOIL_IDEMPOTENCY__LEASE_MS: `idempotency.lease_ms` must be a whole number from 50 to 3600000, not `soon`.",
    ]);
}

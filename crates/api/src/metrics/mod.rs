//! The program's metrics, by their Prometheus names. All metrics exist from the start, so that an
//! alerting rule about an event that never happened sees zero, not a missing series.
//!
//! The labels are bounded: words of closed lists, at most [`tenants::TENANTS_MAX`] tenants and at
//! most [`hot_accounts::ACCOUNTS_MAX`] accounts.

mod hot_accounts;
pub(crate) mod scrape;
mod tenants;
mod watch;

use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::reference::References;
use counterfoil_engine::service::Principal;
use counterfoil_store::Tally;
use hot_accounts::HotAccounts;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tenants::Tenants;

/// Buckets from a tenth of a millisecond to a minute, fine enough to read p99.
const SECONDS_BUCKETS: [f64; 18] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0,
];
/// Buckets of change sets per durable write, up to the largest group.
const BATCH_BUCKETS: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
/// The route that creates charges; its series exist before the first request.
const CHARGES: &str = "/v1/charges";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GatewayLabels {
    provider: &'static str,
    step: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabel {
    provider: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// The program's metrics.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Histogram,
    cache_hits: Counter,
    cache_misses: Counter,
    gateway_fence_bypass: Counter,
    tenants: Tenants,
    inflight_wait_seconds: Histogram,
    stuck_in_flight: Gauge,
    outbox_pending: Gauge,
    outbox_lag_seconds: Gauge<f64, AtomicU64>,
    fail_closed: Counter,
    gateway_calls: Family<GatewayLabels, Counter>,
    gateway_seconds: Histogram,
    breaker_state: Family<ProviderLabel, Gauge>,
    store_commit_seconds: Histogram,
    store_commit_batch: Histogram,
    store_write_seconds: Histogram,
    store_conflicts: Counter,
    parked: Gauge,
    dead_letters: Gauge,
    projection_lag_seconds: Gauge<f64, AtomicU64>,
    hot_accounts: HotAccounts,
}

impl Metrics {
    /// All metrics at zero.
    pub fn new() -> Metrics {
        let mut registry = PrefixedRegistry(Registry::default());
        let seconds = || Histogram::new(SECONDS_BUCKETS);
        let requests = registry.add("requests", "Requests answered", Family::default());
        let request_seconds =
            registry.add("request_seconds", "Time from a request's headers to its answer", seconds());
        let claims = registry.add(
            "claims",
            "Requests at the idempotency layer, by what came of them",
            Family::default(),
        );
        let key_missing = registry.add("key_missing", "Writes without an idempotency key", Family::default());
        let inflight_wait_seconds = registry.add(
            "inflight_wait_seconds",
            "Time requests waited for another with the same key",
            seconds(),
        );
        let fail_closed = registry.add(
            "fail_closed",
            "Requests refused because the store could not be written",
            Counter::default(),
        );
        let cache: Family<ResultLabel, Counter> =
            registry.add("cache_requests", "Look-ups in the cache of answers", Family::default());
        let counter = |result| cache.get_or_create(&ResultLabel { result }).clone();
        let (cache_hits, cache_misses) = (counter("hit"), counter("miss"));
        let gateway_fence_bypass = registry.add(
            "gateway_fence_bypass",
            "Provider calls made without the gateway fence",
            Counter::default(),
        );
        let hot_accounts = registry.add(
            "hot_account_writes_per_second",
            "Writes of guarded accounts that should have more shards",
            Family::default(),
        );
        drop(requests.get_or_create(&RequestLabels { route: CHARGES.to_owned(), status: 201 }));
        Metrics {
            requests,
            request_seconds,
            cache_hits,
            cache_misses,
            gateway_fence_bypass,
            tenants: Tenants::new(claims, key_missing),
            inflight_wait_seconds,
            stuck_in_flight: registry.add(
                "stuck_in_flight",
                "Work overdue by more than a minute",
                Gauge::default(),
            ),
            outbox_pending: registry.add("outbox_pending", "Outbox rows to be worked off", Gauge::default()),
            outbox_lag_seconds: registry.add(
                "outbox_lag_seconds",
                "How late the most overdue row is",
                Gauge::default(),
            ),
            fail_closed,
            gateway_calls: registry.add("gateway_calls", "Calls to the provider", Family::default()),
            gateway_seconds: registry.add("gateway_seconds", "Time of calls to the provider", seconds()),
            breaker_state: registry.add(
                "breaker_state",
                "Circuit breaker: 0 closed, 1 probing, 2 open",
                Family::default(),
            ),
            store_commit_seconds: registry.add(
                "store_commit_seconds",
                "Time of commits, as their callers see it",
                seconds(),
            ),
            store_commit_batch: registry.add(
                "store_commit_batch",
                "Change sets per durable write",
                Histogram::new(BATCH_BUCKETS),
            ),
            store_write_seconds: registry.add(
                "store_write_seconds",
                "Time of one durable write, whatever it carried",
                seconds(),
            ),
            store_conflicts: registry.add(
                "store_conflicts",
                "Commits that met another writer and were tried again",
                Counter::default(),
            ),
            parked: registry.add("parked", "Payments that need a human", Gauge::default()),
            dead_letters: registry.add(
                "dead_letters",
                "Entries of the queue a human works off",
                Gauge::default(),
            ),
            projection_lag_seconds: registry.add(
                "projection_lag_seconds",
                "How far the balance projection is behind",
                Gauge::default(),
            ),
            hot_accounts: HotAccounts::new(hot_accounts),
            registry: registry.0,
        }
    }

    /// Records one durable write of the store: the number of change sets in it, and its time.
    pub fn observe_commit_batch(&self, sets: usize, seconds: f64) {
        // f64 represents every u32 exactly, and a group has at most a few hundred sets.
        self.store_commit_batch.observe(u32::try_from(sets).map_or(f64::MAX, f64::from));
        self.store_write_seconds.observe(seconds);
    }

    /// Counts an answered request.
    pub(crate) fn count_request(&self, route: &str, status: u16, took: Duration) {
        self.request_seconds.observe(took.as_secs_f64());
        self.requests.get_or_create(&RequestLabels { route: route.to_owned(), status }).inc();
    }

    /// Sets the references that name accounts in labels.
    pub(crate) fn set_references(&self, references: &References) {
        self.hot_accounts.set_references(references);
    }

    /// Labels the tenant's metrics with its name from now on.
    pub(crate) fn name_tenant(&self, principal: &Principal) {
        self.tenants.set_name(principal.tenant, &principal.name);
    }

    /// Counts a write without an idempotency key.
    pub(crate) fn key_missing(&self, tenant: TenantId, route: &str) {
        self.tenants.key_missing(tenant, route);
    }

    fn set_tally(&self, tally: Tally) {
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.stuck_in_flight.set(whole(tally.stuck));
        self.outbox_pending.set(whole(tally.pending));
        self.outbox_lag_seconds.set(Duration::from_millis(tally.lag_ms).as_secs_f64());
        self.parked.set(whole(tally.parked));
        self.dead_letters.set(whole(tally.parked));
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

struct PrefixedRegistry(Registry);

impl PrefixedRegistry {
    /// Registers a metric under the program's prefix and returns it.
    fn add<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(format!("counterfoil_{name}"), help, metric.clone());
        metric
    }
}

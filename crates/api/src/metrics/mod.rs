//! The numbers of the program, by their Prometheus names. All exist from the start, so that a rule about one that
//! never moved is a rule about zero, not about nothing.
//!
//! The labels are bounded: routes and words of closed lists, at most [`tenants::TENANTS_MAX`] tenants and at most
//! [`hot::ACCOUNTS_MAX`] accounts. Handles of the hot path are kept, so that counting a request looks no label up.

mod hot;
pub(crate) mod scrape;
mod tenants;
mod watch;

use crate::route::Route;
use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::reference::References;
use counterfoil_engine::service::Principal;
use counterfoil_store::Tally;
use hot::Hot;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tenants::Tenants;

/// From a tenth of a millisecond to a minute, in steps that keep p99 readable.
const SECONDS: [f64; 18] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0,
];
/// Change sets per durable write, up to the largest group.
const SETS: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
/// The statuses HTTP has room for: 100 to 599.
const STATUSES: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
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

/// The numbers of the program.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    /// One handle per route and status, found once.
    request_handles: Vec<OnceLock<Counter>>,
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
    hot: Hot,
}

impl Metrics {
    /// All numbers at zero.
    pub fn new() -> Metrics {
        let mut book = Book(Registry::default());
        let seconds = || Histogram::new(SECONDS);
        let requests = book.add("requests", "Requests answered", Family::default());
        let request_seconds =
            book.add("request_seconds", "Time from a request's headers to its answer", seconds());
        let claims =
            book.add("claims", "Requests at the idempotency layer, by what came of them", Family::default());
        let key_missing = book.add("key_missing", "Writes without an idempotency key", Family::default());
        let inflight_wait_seconds = book.add(
            "inflight_wait_seconds",
            "Time requests waited for another with the same key",
            seconds(),
        );
        let fail_closed = book.add(
            "fail_closed",
            "Requests refused because the store could not be written",
            Counter::default(),
        );
        let cache: Family<ResultLabel, Counter> =
            book.add("cache_requests", "Look-ups in the cache of answers", Family::default());
        let counter = |result| cache.get_or_create(&ResultLabel { result }).clone();
        let (cache_hits, cache_misses) = (counter("hit"), counter("miss"));
        let gateway_fence_bypass = book.add(
            "gateway_fence_bypass",
            "Provider calls made without the gateway fence",
            Counter::default(),
        );
        let hot = book.add(
            "hot_account_writes_per_second",
            "Writes of guarded accounts that should have more shards",
            Family::default(),
        );
        drop(requests.get_or_create(&RequestLabels { route: Route::Charges.template(), status: 201 }));
        Metrics {
            requests,
            request_handles: (0..Route::ALL.len() * STATUSES).map(|_| OnceLock::new()).collect(),
            request_seconds,
            cache_hits,
            cache_misses,
            gateway_fence_bypass,
            tenants: Tenants::new(claims, key_missing),
            inflight_wait_seconds,
            stuck_in_flight: book.add(
                "stuck_in_flight",
                "Work overdue by more than a minute",
                Gauge::default(),
            ),
            outbox_pending: book.add("outbox_pending", "Outbox rows to be worked off", Gauge::default()),
            outbox_lag_seconds: book.add(
                "outbox_lag_seconds",
                "How late the most overdue row is",
                Gauge::default(),
            ),
            fail_closed,
            gateway_calls: book.add("gateway_calls", "Calls to the provider", Family::default()),
            gateway_seconds: book.add("gateway_seconds", "Time of calls to the provider", seconds()),
            breaker_state: book.add(
                "breaker_state",
                "Circuit breaker: 0 closed, 1 probing, 2 open",
                Family::default(),
            ),
            store_commit_seconds: book.add(
                "store_commit_seconds",
                "Time of commits, as their callers see it",
                seconds(),
            ),
            store_commit_batch: book.add(
                "store_commit_batch",
                "Change sets per durable write",
                Histogram::new(SETS),
            ),
            store_write_seconds: book.add(
                "store_write_seconds",
                "Time of one durable write, whatever it carried",
                seconds(),
            ),
            store_conflicts: book.add(
                "store_conflicts",
                "Commits that met another writer and were tried again",
                Counter::default(),
            ),
            parked: book.add("parked", "Payments that need a human", Gauge::default()),
            dead_letters: book.add(
                "dead_letters",
                "Entries of the queue a human works off",
                Gauge::default(),
            ),
            projection_lag_seconds: book.add(
                "projection_lag_seconds",
                "How far the balance projection is behind",
                Gauge::default(),
            ),
            hot: Hot::new(hot),
            registry: book.0,
        }
    }

    /// One durable write of the store: how many sets it carried, and how long it took.
    pub fn observe_commit_batch(&self, sets: usize, seconds: f64) {
        // A group has at most a few hundred sets, and f64 holds every u32.
        self.store_commit_batch.observe(u32::try_from(sets).map_or(f64::MAX, f64::from));
        self.store_write_seconds.observe(seconds);
    }

    /// A request was answered.
    pub(crate) fn answered(&self, route: Route, status: u16, took: Duration) {
        self.request_seconds.observe(took.as_secs_f64());
        let slot = usize::from(status).checked_sub(100).filter(|slot| *slot < STATUSES);
        let place = Route::ALL.iter().position(|known| *known == route);
        let (Some(slot), Some(place)) = (slot, place) else {
            return;
        };
        if let Some(handle) = self.request_handles.get(place * STATUSES + slot) {
            handle
                .get_or_init(|| {
                    let labels = RequestLabels { route: route.template(), status };
                    self.requests.get_or_create_owned(&labels)
                })
                .inc();
        }
    }

    /// From now on accounts are named by these references.
    pub(crate) fn name_accounts_by(&self, references: &References) {
        self.hot.name_by(references);
    }

    /// A tenant showed itself: from now on its numbers carry its name.
    pub(crate) fn meet(&self, principal: &Principal) {
        self.tenants.meet(principal.tenant, &principal.name);
    }

    /// A write came without a key.
    pub(crate) fn key_missing(&self, tenant: TenantId, route: Route) {
        self.tenants.key_missing(tenant, route.template());
    }

    /// The work at hand, as the store counts it.
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

/// Registers under the program's prefix and hands the metric back.
struct Book(Registry);

impl Book {
    fn add<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(format!("counterfoil_{name}"), help, metric.clone());
        metric
    }
}

//! The table of settings: type, default, range and explanation of each.
//!
//! To add a setting, add it here and replace `docs/configuration.md` with the output of its test.

use std::net::SocketAddr;

use counterfoil_core::types::mask::Masked;

use super::choice::{KeyPolicy, LogFormat, RequestLog, Reuse};
use super::declare::settings;
use super::rule::{Address, CredentialUrl, OneOf, SecretList, StoreUrl, Text, Whole};
use super::secret::SecretUrl;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

settings! {
    /// The HTTP server: its address and the limits for clients.
    server: Server {
        /// The IP address and port to listen on.
        listen: Option<SocketAddr> = Address;
        /// The largest request body accepted, in bytes; a larger one is refused before it is read.
        body_limit_bytes: usize = Whole::new(MIB, KIB, 64 * MIB);
        /// How long a client may take to send the headers of a request, in milliseconds.
        header_timeout_ms: u64 = Whole::new(10_000, 100, 10 * MINUTE_MS);
        /// How long one request may take from its headers to its answer, in milliseconds.
        request_timeout_ms: u64 = Whole::new(MINUTE_MS, 100, 10 * MINUTE_MS);
        /// How many client connections may be open at once; more wait to be accepted.
        connections_max: usize = Whole::new(10_000, 1, 1_000_000);
        /// How many threads work on requests; 0 means one less than the machine has cores, and at least one, so that a
        /// core is left to the store. The embedded store's own threads come on top.
        threads: usize = Whole::new(0, 0, 1_024);
        /// How long a stopping server lets work in flight finish, in milliseconds;
        /// it has to exit within 30 seconds.
        drain_ms: u64 = Whole::new(25_000, 0, 29_999);
        /// Which requests are logged: none, those answered with an error, or all.
        request_log: RequestLog = OneOf::new(RequestLog::Errors);
    }

    /// The store.
    store: Store {
        /// The store: a path or `file:PATH` (embedded), `postgres://user@host/db`,
        /// or `memory:`, which forgets at exit.
        url: SecretUrl = StoreUrl { default: "./counterfoil-data" };
    }

    /// How idempotency keys are claimed, waited for, replayed and forgotten.
    idempotency: Idempotency {
        /// How long a claim is held without a heartbeat before another server may take it over,
        /// in milliseconds.
        lease_ms: u64 = Whole::new(30_000, 50, HOUR_MS);
        /// How often a running request renews its claim, in milliseconds; less than `lease_ms`,
        /// and at most a third of it unless given.
        heartbeat_ms: u64 = Whole::new(10_000, 1, HOUR_MS);
        /// How long heartbeats can hold a claim in total, in milliseconds; at least `lease_ms`,
        /// and raised to it unless given.
        lease_ceiling_ms: u64 = Whole::new(180_000, 50, DAY_MS);
        /// How long a retry waits for the first request to finish before it is answered 409, in milliseconds.
        wait_ms: u64 = Whole::new(5_000, 0, MINUTE_MS);
        /// How long a finished request is replayed to retries with the same key, in milliseconds.
        replay_window_ms: u64 = Whole::new(DAY_MS, 1, 366 * DAY_MS);
        /// How long after the replay window a key is answered 410 before it may be reused, in milliseconds.
        tombstone_ms: u64 = Whole::new(DAY_MS, 0, 366 * DAY_MS);
        /// How many calls that certainly had no effect (refused connections, 429) are made before a charge fails. An
        /// outcome that may have charged is never counted.
        attempts_max: u32 = Whole::new(8, 1, 100);
        /// Whether a writing request without an idempotency key is refused or accepted.
        key_policy: KeyPolicy = OneOf::new(KeyPolicy::Required);
        /// Whether a key becomes free again once its tombstone is over.
        reuse: Reuse = OneOf::new(Reuse::AfterTombstone);
    }

    /// The payment provider and how calls to it are bounded.
    gateway: Gateway {
        /// The provider: `stripe+http://KEY@host:port` or `stripe+https://KEY@host`;
        /// its key is never printed.
        url: Option<SecretUrl> = CredentialUrl::GATEWAY;
        /// How long one call to the provider may take, in milliseconds; it may exceed `idempotency.lease_ms`,
        /// because heartbeats renew the claim.
        timeout_ms: u64 = Whole::new(20_000, 10, 10 * MINUTE_MS);
        /// The name of the provider's contract: its abilities and the meaning of its errors.
        profile: String = Text { default: "stripe" };
        /// How long the provider remembers keys, in milliseconds, if its promise differs from its
        /// profile; 0 means the profile's value. With a value longer than the truth, a card may be
        /// charged twice.
        dedup_window_ms: u64 = Whole::new(0, 0, 366 * DAY_MS);
        /// How long after it was sent a request may still be executed, in milliseconds; 0 means the
        /// profile's value. With a value shorter than the truth, a card may be charged twice.
        late_delivery_ms: u64 = Whole::new(0, 0, DAY_MS);
        /// How far the provider's queries may lag, in milliseconds; 0 means the profile's value.
        /// With a value shorter than the truth, a card may be charged twice.
        query_lag_ms: u64 = Whole::new(0, 0, DAY_MS);
        /// How many connections to the provider may be open at once.
        connections_max: usize = Whole::new(512, 1, 65_535);
        /// How many failures in a row open the circuit breaker.
        breaker_failures: u32 = Whole::new(20, 1, 1_000_000);
        /// How long an open circuit breaker refuses calls before it lets one try, in milliseconds.
        breaker_open_ms: u64 = Whole::new(1_000, 1, 10 * MINUTE_MS);
        /// The secrets of the provider's webhooks (`whsec_…`), never printed; two during a
        /// rotation. Without any, `/v1/webhooks` refuses all deliveries.
        webhook_secrets: Vec<Masked<String>> = SecretList;
    }

    /// How calls to peers are bounded; the circuit breaker of each is set with the provider's.
    peering: Peering {
        /// How long one call to a peer may take, in milliseconds.
        timeout_ms: u64 = Whole::new(20_000, 10, 10 * MINUTE_MS);
        /// How long every peer remembers keys, in milliseconds: the shortest
        /// `idempotency.replay_window_ms` among them. A payment still in doubt after half of it
        /// needs a human. With a value longer than the truth, money may be sent twice.
        retention_ms: u64 = Whole::new(DAY_MS, 1, 366 * DAY_MS);
        /// How many connections to one peer may be open at once.
        connections_max: usize = Whole::new(64, 1, 10_000);
    }

    /// Redis or Valkey, optionally shared by several servers: a first fence around each payment,
    /// and a cache of answers that all servers can replay. Losing it costs latency, never
    /// correctness; when it fails, requests go on and the bypass is counted.
    redis: Redis {
        /// The URL: `redis://host:6379`, `rediss://:PASSWORD@host:6379/0`; its password is never
        /// printed.
        url: Option<SecretUrl> = CredentialUrl::REDIS;
        /// How long one call to Redis may take, in milliseconds.
        timeout_ms: u64 = Whole::new(250, 10, 10_000);
        /// How long a payment is fenced without renewal, in milliseconds; cut to
        /// `idempotency.lease_ms`, so that a dead server's fence does not outlive its lease.
        fence_ttl_ms: u64 = Whole::new(10_000, 100, HOUR_MS);
    }

    /// How recorded effects (webhooks, recoveries) are picked up and retried.
    outbox: Outbox {
        /// How often the outbox is polled when nothing wakes it, in milliseconds.
        poll_ms: u64 = Whole::new(500, 10, 10 * MINUTE_MS);
        /// How many outbox rows are taken at a time.
        batch: usize = Whole::new(64, 1, 1_000);
        /// The wait after the first failed delivery, in milliseconds; every further failure
        /// lengthens it.
        backoff_base_ms: u64 = Whole::new(500, 1, HOUR_MS);
        /// The longest wait between two deliveries of one row, in milliseconds; at least `backoff_base_ms`.
        backoff_cap_ms: u64 = Whole::new(30_000, 1, DAY_MS);
    }

    /// Limits for one tenant.
    limits: Limits {
        /// How many requests per second one tenant may send; 0 means no limit.
        tenant_requests_per_second: u32 = Whole::new(0, 0, 1_000_000);
        /// How many requests one tenant may send at once before the rate counts; 0 means the same
        /// as the rate.
        tenant_burst: u32 = Whole::new(0, 0, 1_000_000);
    }

    /// The logs of the process.
    log: Log {
        /// The form of a log line; `auto` is `text` on a terminal and `json` elsewhere.
        format: LogFormat = OneOf::new(LogFormat::Auto);
        /// The lowest level that is logged, or a filter such as `info,hyper=warn`.
        level: String = Text { default: "info" };
    }
}

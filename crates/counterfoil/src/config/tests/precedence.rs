use super::super::{KeyPolicy, LogFormat, RequestLog, Reuse, Source};
use super::{file, nothing};

const LEASE: &str = "COUNTERFOIL_IDEMPOTENCY__LEASE_MS";

#[test]
fn every_setting_has_its_default_if_nothing_is_given() {
    let settings = nothing().load();
    assert_eq!(settings.server.listen, None);
    assert_eq!(settings.server.body_limit_bytes, 1_048_576);
    assert_eq!(settings.server.header_timeout_ms, 10_000);
    assert_eq!(settings.server.request_timeout_ms, 60_000);
    assert_eq!(settings.server.connections_max, 10_000);
    assert_eq!(settings.server.threads, 0);
    assert_eq!(settings.server.drain_ms, 25_000);
    assert_eq!(settings.server.request_log, RequestLog::Errors);
    assert_eq!(settings.store.url.reveal(), "./counterfoil-data");
    assert_eq!(settings.idempotency.lease_ms, 30_000);
    assert_eq!(settings.idempotency.heartbeat_ms, 10_000);
    assert_eq!(settings.idempotency.lease_ceiling_ms, 180_000);
    assert_eq!(settings.idempotency.wait_ms, 5_000);
    assert_eq!(settings.idempotency.replay_window_ms, 86_400_000);
    assert_eq!(settings.idempotency.tombstone_ms, 86_400_000);
    assert_eq!(settings.idempotency.attempts_max, 8);
    assert_eq!(settings.idempotency.key_policy, KeyPolicy::Required);
    assert_eq!(settings.idempotency.reuse, Reuse::AfterTombstone);
    assert_eq!(settings.gateway.url, None);
    assert_eq!(settings.gateway.timeout_ms, 20_000);
    assert_eq!(settings.gateway.profile, "stripe");
    assert_eq!(settings.gateway.connections_max, 512);
    assert_eq!(settings.gateway.breaker_failures, 20);
    assert_eq!(settings.gateway.breaker_open_ms, 1_000);
    assert_eq!(settings.outbox.poll_ms, 500);
    assert_eq!(settings.outbox.batch, 64);
    assert_eq!(settings.outbox.backoff_base_ms, 500);
    assert_eq!(settings.outbox.backoff_cap_ms, 30_000);
    assert_eq!(settings.limits.tenant_requests_per_second, 0);
    assert_eq!(settings.limits.tenant_burst, 0);
    assert_eq!(settings.log.format, LogFormat::Auto);
    assert_eq!(settings.log.level, "info");
    assert_eq!(settings.source("idempotency.heartbeat_ms"), Some(&Source::Default));
    assert_eq!(settings.source("idempotency.nothing"), None);
}

#[test]
fn the_file_wins_over_the_default() {
    let settings = file("[idempotency]\nlease_ms = 40_000\n").load();
    assert_eq!(settings.idempotency.lease_ms, 40_000);
    let source = settings.source("idempotency.lease_ms").map(ToString::to_string).unwrap_or_default();
    assert!(source.ends_with(".toml:2:12"), "{source}");
}

#[test]
fn the_environment_wins_over_the_file() {
    let settings = file("[idempotency]\nlease_ms = 40_000\n").env(LEASE, "50000").load();
    assert_eq!(settings.idempotency.lease_ms, 50_000);
    assert_eq!(settings.source("idempotency.lease_ms"), Some(&Source::Environment(LEASE.to_owned())));
}

#[test]
fn a_flag_wins_over_the_environment() {
    let settings = file("[idempotency]\nlease_ms = 40_000\n")
        .flag("--lease-ms", "idempotency", "lease_ms", "60000")
        .env(LEASE, "50000")
        .load();
    assert_eq!(settings.idempotency.lease_ms, 60_000);
    assert_eq!(settings.source("idempotency.lease_ms"), Some(&Source::Flag("--lease-ms".to_owned())));
}

#[test]
fn every_kind_of_value_can_come_from_the_file_and_from_the_environment() {
    let from_file = file(concat!(
        "[server]\nlisten = \"127.0.0.1:8080\"\nrequest_log = \"all\"\nconnections_max = 0x10\n",
        "[store]\nurl = \"memory:\"\n[gateway]\nurl = \"stripe+https://KEY@host\"\n[log]\nlevel = \"debug\"\n",
    ));
    let from_environment = nothing()
        .env("COUNTERFOIL_SERVER__LISTEN", "127.0.0.1:8080")
        .env("COUNTERFOIL_SERVER__REQUEST_LOG", "all")
        .env("COUNTERFOIL_SERVER__CONNECTIONS_MAX", "16")
        .env("COUNTERFOIL_STORE__URL", "memory:")
        .env("COUNTERFOIL_GATEWAY__URL", "stripe+https://KEY@host")
        .env("COUNTERFOIL_LOG__LEVEL", "debug");
    for settings in [from_file.load(), from_environment.load()] {
        assert_eq!(settings.server.listen, Some(([127, 0, 0, 1], 8080).into()));
        assert_eq!(settings.server.request_log, RequestLog::All);
        assert_eq!(settings.server.connections_max, 16);
        assert_eq!(settings.store.url.reveal(), "memory:");
        assert_eq!(
            settings.gateway.url.map(|url| url.reveal().to_owned()),
            Some("stripe+https://KEY@host".into())
        );
        assert_eq!(settings.log.level, "debug");
    }
}

#[test]
fn an_empty_file_and_foreign_variables_change_nothing() {
    let settings = file("").env("COUNTERFOIL_API_KEY", "x").env("PATH__X", "y").load();
    assert_eq!(settings.idempotency.lease_ms, 30_000);
}

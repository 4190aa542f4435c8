//! Real servers with a real Redis: it saves time, and payments are correct without it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use counterfoil_provider_simulator::Faults;
use counterfoil_testkit::redis;
use std::time::Duration;
use support::*;

const URL: &str = "COUNTERFOIL_REDIS__URL";

/// The value of a metric at a server; zero if absent.
fn metric(server: &Server, name: &str) -> u64 {
    let page = exchange(server.port, "GET", "/metrics", "", "").unwrap().body;
    let lines = page.lines().filter(|line| line.starts_with(name) && !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

fn bypasses(server: &Server) -> u64 {
    metric(server, "counterfoil_gateway_fence_bypass_total")
}

/// The number of effects at the provider.
fn effects(bench: &Bench) -> usize {
    bench.provider.effects().len()
}

#[test]
fn a_malformed_url_is_refused_without_repeating_it() {
    for url in ["http://:CANARYpassword@host", "redis://", "localhost:6379"] {
        let listen = format!("127.0.0.1:{}", free_port());
        let gateway = "stripe+http://k@127.0.0.1:9";
        let arguments =
            ["serve", "--listen", &listen, "--gateway", gateway, "--store", "memory:", "--redis", url];
        let output = run(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("redis") && !said.contains("CANARY"), "{said}");
    }
}

#[test]
fn an_unreachable_redis_stops_neither_the_start_nor_a_charge() {
    let url = format!("redis://127.0.0.1:{}", free_port());
    let bench = Bench::new(&[(URL, &url)]);
    let server = bench.serve();
    assert_eq!(bench.charge("k").status, 201);
    assert!(bypasses(&server) >= 1, "the bypass is counted");
    assert_eq!(effects(&bench), 1);
    bench.verified();
}

#[test]
fn charges_stay_single_while_redis_is_killed_paused_and_restarted() {
    let mut redis_server = redis::Server::start(&[]).unwrap();
    let bench = Bench::new(&[(URL, &redis_server.url())]);
    let server = bench.serve();
    let charge = |turn: &str| {
        for number in 0..5 {
            let key = format!("{turn}-{number}");
            let first = bench.charge(&key);
            assert_eq!(first.status, 201, "{turn}: {}", first.body);
            assert_eq!(bench.charge(&key).body, first.body, "{turn}");
        }
    };
    charge("well");
    assert_eq!(bypasses(&server), 0);
    redis_server.pause().unwrap();
    charge("paused");
    redis_server.resume().unwrap();
    redis_server.kill().unwrap();
    charge("killed");
    assert!(bypasses(&server) >= 1);
    redis_server.restart().unwrap();
    until("the fence is asked again", || {
        let before = bypasses(&server);
        bench.charge(&format!("back-{before}-{}", effects(&bench)));
        bypasses(&server) == before
    });
    let single: std::collections::HashSet<_> =
        bench.provider.effects().into_iter().map(|effect| effect.payment).collect();
    assert_eq!(single.len(), effects(&bench), "no payment twice");
    bench.verified();
}

#[test]
fn a_replica_that_takes_over_is_used_and_nothing_is_charged_twice() {
    let primary = redis::Server::start(&[]).unwrap();
    let replica = redis::Server::replica_of(&primary).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let relay = runtime.block_on(redis::Relay::to(primary.port())).unwrap();
    let bench = Bench::new(&[(URL, &format!("redis://127.0.0.1:{}", relay.port()))]);
    let server = bench.serve();
    assert_eq!(bench.charge("before").status, 201);
    primary.kill().unwrap();
    assert_eq!(bench.charge("between").status, 201);
    replica.promote().unwrap();
    relay.turn_to(replica.port());
    until("the new one is used", || {
        let before = bypasses(&server);
        assert_eq!(bench.charge(&format!("after-{}", effects(&bench))).status, 201);
        bypasses(&server) == before
    });
    let payments: Vec<_> = bench.provider.effects().into_iter().map(|effect| effect.payment).collect();
    let single: std::collections::HashSet<_> = payments.iter().collect();
    assert_eq!(single.len(), payments.len());
    bench.verified();
}

#[test]
fn another_server_replays_from_redis_and_stops_at_the_fence() {
    let redis_server = redis::Server::start(&[]).unwrap();
    let database = database::empty();
    let bench = Bench::at(database.url(), &[(URL, &redis_server.url())]);
    let servers = [bench.serve(), bench.serve_on(free_port())];
    let [first, second] = servers.each_ref().map(|server| bench.client(server));
    let answer = first.charge("k");
    assert_eq!(answer.status, 201);
    let hits = || metric(&servers[1], "counterfoil_cache_requests_total{result=\"hit\"");
    until("the answer is shared", || {
        let before = hits();
        let replay = second.charge("k");
        assert_eq!((replay.status, &replay.body), (201, &answer.body));
        hits() > before
    });

    let hold = r#"{"amount":1000,"currency":"USD","payment_method":"pm_card_visa","capture":false}"#;
    let held = first.post("/v1/charges", "hold", hold).unwrap();
    let id = field(&held.body, "id");
    bench.provider.set_faults(Faults { latency_ms: 1_500, ..Faults::default() }).unwrap();
    std::thread::scope(|scope| {
        let path = format!("/v1/charges/{id}/capture");
        let capture = scope.spawn(move || first.post(&path, "capture", "{}").unwrap());
        std::thread::sleep(Duration::from_millis(500));
        let void = second.post(&format!("/v1/charges/{id}/void"), "void", "{}").unwrap();
        assert_eq!(void.status, 409, "{}", void.body);
        assert!(void.body.contains("payment_in_progress"), "{}", void.body);
        assert_eq!(capture.join().unwrap().status, 200);
    });
    bench.verified();
}

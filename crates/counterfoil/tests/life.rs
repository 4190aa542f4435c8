//! The real server through crashes, stops, expiring windows and revocations.

mod support;

use counterfoil_provider_simulator::Faults;
use counterfoil_testkit::faketime;
use std::time::{Duration, Instant};
use support::*;

#[test]
fn a_killed_server_finishes_what_it_began() {
    let bench = Bench::new(&[]);
    let server = bench.serve();
    // The provider executes every charge and cuts off its answer.
    bench.provider.set_faults(Faults { drop_after: 1.0, ..Faults::default() }).unwrap();
    let first = bench.charge("k");
    assert_eq!((first.status, first.error()), (503, "outcome_pending".into()));
    assert!(first.body.contains("\"safe_new_key\":false") && first.headers.contains_key("retry-after"));
    server.kill();
    bench.provider.set_faults(Faults::default()).unwrap();
    let _server = bench.serve();
    let answered = bench.until_answered("k");
    assert_eq!(answered.status, 201);
    assert_eq!(bench.charge("k").declared(), answered.declared());
    assert_eq!(bench.provider.effects().len(), 1);
    bench.verified();
}

#[test]
fn acknowledged_answers_survive_kill_nine() {
    let bench = Bench::new(&[]);
    let mut first = Vec::new();
    for round in 0..3 {
        let server = bench.serve();
        for number in 0..20 {
            first.push((format!("k-{round}-{number}"), bench.charge(&format!("k-{round}-{number}"))));
        }
        server.kill();
    }
    let _server = bench.serve();
    for (key, answer) in &first {
        let again = bench.charge(key);
        assert_eq!((again.declared(), again.is_replay()), (answer.declared(), true), "{key}");
    }
    assert_eq!(bench.provider.effects().len(), 60);
    bench.verified();
}

#[test]
fn requests_run_on_the_configured_number_of_threads() {
    for asked in ["1", "3"] {
        let bench = Bench::new(&[("COUNTERFOIL_SERVER__THREADS", asked)]);
        let server = bench.serve();
        assert_eq!(bench.charge("k").status, 201);
        let threads = std::fs::read_dir(format!("/proc/{}/task", server.process.id())).unwrap();
        let names =
            threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("comm")).unwrap());
        assert_eq!(names.filter(|name| name.trim() == "requests").count().to_string(), asked);
    }
}

#[test]
fn a_server_with_a_wrong_clock_replays_the_same_answers() {
    let mut bench = Bench::new(&[]);
    let server = bench.serve();
    let first = bench.charge("before");
    server.kill();
    // Preloading also shows that the program tolerates a library loaded before its allocator.
    let library = faketime::find().unwrap().to_str().unwrap().to_owned();
    for moved in ["+3d", "-3d"] {
        bench.settings = vec![("LD_PRELOAD", library.clone()), ("FAKETIME", moved.to_owned())];
        let server = bench.serve();
        assert_eq!(bench.charge(moved).status, 201);
        for key in ["before", moved] {
            assert!(bench.charge(key).is_replay(), "{key} with {moved}");
        }
        assert_eq!(bench.charge("before").declared(), first.declared(), "{moved}");
        server.kill();
    }
    assert_eq!(bench.provider.effects().len(), 3);
    bench.verified();
}

#[test]
fn a_stopped_server_past_its_lease_charges_once() {
    let bench =
        Bench::new(&[("COUNTERFOIL_IDEMPOTENCY__LEASE_MS", "200"), ("COUNTERFOIL_OUTBOX__POLL_MS", "20")]);
    let server = bench.serve();
    bench.provider.set_faults(Faults { latency_ms: 400, ..Faults::default() }).unwrap();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            bench.try_post("k", r#"{"amount":1250,"currency":"USD","payment_method":"pm_card_visa"}"#)
        });
        std::thread::sleep(Duration::from_millis(100));
        server.signal("STOP");
        std::thread::sleep(Duration::from_millis(900));
        server.signal("CONT");
        let _ = client.join();
    });
    assert_eq!(bench.until_answered("k").status, 201);
    assert_eq!(bench.provider.effects().len(), 1);
    bench.verified();
}

#[test]
fn sigterm_finishes_work_under_way_and_exits_zero() {
    let bench = Bench::new(&[]);
    let server = bench.serve();
    bench.provider.set_faults(Faults { latency_ms: 700, ..Faults::default() }).unwrap();
    std::thread::scope(|scope| {
        let client = scope.spawn(|| bench.charge("k"));
        // The claim is committed once its key can be looked up.
        while bench.get("/v1/idempotency-keys/k").status != 200 {
            assert!(!client.is_finished(), "the charge ended before it was seen");
        }
        let begun = Instant::now();
        assert_eq!(server.terminate(), Some(0));
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert_eq!(client.join().unwrap().status, 201);
    });
    bench.verified();
}

#[test]
fn a_revoked_key_is_refused_within_a_second() {
    let bench = Bench::new(&[]);
    let _server = bench.serve();
    let store = bench.store();
    let made = run(&["tenant", "key", "create", "acme", "--json", "--store", store.to_str().unwrap()]);
    assert!(made.status.success(), "a live store is asked through its server: {}", text(&made.stderr));
    let (secret, id) = (field(&text(&made.stdout), "secret"), field(&text(&made.stdout), "key_id"));
    let get = || {
        exchange(bench.port, "GET", "/v1/charges", &format!("Authorization: Bearer {secret}\r\n"), "")
            .unwrap()
    };
    assert_eq!(get().status, 200);
    assert!(run(&["tenant", "key", "revoke", &id, "--store", store.to_str().unwrap()]).status.success());
    let revoked = Instant::now();
    while get().status == 200 {
        assert!(revoked.elapsed() < Duration::from_secs(1), "still accepted a second after its revocation");
    }
    assert_eq!(get().error(), "unauthorized");
    assert_eq!(bench.get("/v1/charges").status, 200, "the tenant's other key still works");
}

#[test]
fn another_tenants_charge_looks_absent_everywhere() {
    let bench = Bench::new(&[]);
    let _server = bench.serve();
    let id = field(&bench.charge("k").body, "id");
    let made = run(&["tenant", "create", "other", "--json", "--store", bench.store().to_str().unwrap()]);
    let other = format!("Authorization: Bearer {}\r\n", field(&text(&made.stdout), "secret"));
    let get = |path: &str| exchange(bench.port, "GET", path, &other, "").unwrap();
    for path in ["/v1/charges/ID", "/v1/charges/ID/timeline", "/v1/charges?starting_after=ID"] {
        let absent = get(&path.replace("ID", "ch_00000000000000000000000000"));
        let foreign = get(&path.replace("ID", &id));
        assert_eq!((foreign.status, foreign.error()), (absent.status, absent.error()), "{path}");
        assert!(matches!(foreign.status, 400 | 404), "{path}");
    }
    assert_eq!(get("/v1/idempotency-keys/k").status, 404);
}

#[test]
fn a_request_without_a_key_is_not_advised_to_retry() {
    let bench = Bench::new(&[("COUNTERFOIL_IDEMPOTENCY__KEY_POLICY", "optional")]);
    let _server = bench.serve();
    bench.provider.set_faults(Faults { drop_after: 1.0, ..Faults::default() }).unwrap();
    let headers = format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", bench.api_key);
    let body = r#"{"amount":1250,"currency":"USD","payment_method":"pm_card_visa"}"#;
    let told = exchange(bench.port, "POST", "/v1/charges", &headers, body).unwrap();
    assert_eq!((told.status, told.error()), (503, "outcome_pending".into()));
    assert!(field(&told.body, "detail").contains("Do not send the request again"), "{}", told.body);
    let with_key = bench.charge("k");
    assert!(field(&with_key.body, "detail").contains("same key"), "{}", with_key.body);
}

#[test]
fn a_restart_waits_for_its_dying_predecessor() {
    let bench = Bench::new(&[]);
    let mut server = bench.serve();
    // Not awaited: the kernel may still be releasing its port and its lock.
    server.process.kill().unwrap();
    let _next = bench.serve();
    assert_eq!(bench.charge("k").status, 201);
}

#[test]
fn short_windows_replay_then_expire_then_free_the_key() {
    let bench = Bench::new(&[
        ("COUNTERFOIL_IDEMPOTENCY__REPLAY_WINDOW_MS", "1500"),
        ("COUNTERFOIL_IDEMPOTENCY__TOMBSTONE_MS", "1500"),
    ]);
    let _server = bench.serve();
    let first = bench.charge("k");
    assert_eq!(bench.charge("k").declared(), first.declared());
    let until = |status: u16| {
        let begun = Instant::now();
        loop {
            let answer = bench.charge("k");
            if answer.status == status && !answer.is_replay() {
                return answer;
            }
            assert!(begun.elapsed() < Duration::from_secs(5), "never {status}: {answer:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let expired = until(410);
    assert_eq!(expired.error(), "idempotency_key_expired");
    assert_eq!(field(&expired.body, "original_request_at"), field(&first.body, "created_at"));
    let second = until(201);
    assert_ne!(second.body, first.body);
    assert_eq!(bench.provider.effects().len(), 2);
    bench.verified();
}

#[test]
fn logs_metrics_and_timelines_show_no_secrets_and_no_content() {
    let bench =
        Bench::new(&[("COUNTERFOIL_LOG__LEVEL", "trace"), ("COUNTERFOIL_SERVER__REQUEST_LOG", "all")]);
    let server = bench.serve();
    let body = r#"{"amount":1250,"currency":"USD","payment_method":"pm_CANARYmethod","description":"CANARYdescription","metadata":{"CANARYname":"CANARYvalue"}}"#;
    bench.post("CANARYkey", body);
    bench.post("CANARYkey2", &body.replace("pm_CANARYmethod", "pm_card_visa"));
    bench.post("CANARYkey3", r#"{"CANARYfield":"CANARYcontent"#);
    exchange(
        bench.port,
        "GET",
        "/v1/charges?CANARYquery=CANARYx",
        "Authorization: Bearer sk_CANARYsecret\r\n",
        "",
    )
    .unwrap();
    let metrics = exchange(bench.port, "GET", "/metrics", "", "").unwrap().body;
    let key = bench.get("/v1/idempotency-keys/CANARYkey2");
    let timeline = bench.get(&format!("/v1/charges/{}/timeline", field(&key.body, "id"))).body;
    server.terminate();
    let secret = bench.api_key.trim_start_matches("sk_live_");
    for (place, said) in [("log", bench.log_text()), ("metrics", metrics), ("timeline", timeline)] {
        assert!(!said.is_empty());
        assert!(
            !said.contains("CANARY"),
            "{place}: {}",
            said.lines().find(|line| line.contains("CANARY")).unwrap_or("")
        );
        assert!(!said.contains(secret), "{place} has the API key");
    }
}

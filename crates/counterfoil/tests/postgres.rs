//! Several real servers share a real database; any of them may die, and so may the database.

mod support;

use counterfoil_provider_simulator::Faults;
use counterfoil_testkit::postgres;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::*;

const NOWHERE: &str = "stripe+http://k@127.0.0.1:9";

/// `serve` must end with code 2 and one sentence.
#[track_caller]
fn refused_to_serve(url: &str, words: &[&str]) {
    let listen = format!("127.0.0.1:{}", free_port());
    refused(&["serve", "--listen", &listen, "--gateway", NOWHERE, "--store", url], words);
}

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let output = run(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{arguments:?} said more than a sentence: {said}");
    assert!(said.starts_with("counterfoil: "), "{said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?} said: {said}");
    }
}

#[test]
fn an_unreachable_database_is_refused_without_repeating_the_password() {
    let url = format!("postgres://u:CANARYpassword@127.0.0.1:{}/d", free_port());
    refused_to_serve(&url, &["PostgreSQL cannot be reached", "check that it runs"]);
    for command in [["tenant", "list"].as_slice(), &["verify"], &["migrate"]] {
        refused(&[command, &["--store", &url]].concat(), &["PostgreSQL cannot be reached"]);
        assert!(!text(&run(&[command, &["--store", &url]].concat()).stderr).contains("CANARY"));
    }
}

#[test]
fn a_database_of_another_schema_text_is_refused() {
    let database = database::empty();
    let url = database.url();
    assert!(run(&["migrate", "--store", &url]).status.success());
    database::execute(&url, "UPDATE counterfoil.schema_steps SET digest = 'of another text'");
    let words = ["schema step 1 of this database differs", "make a new database"];
    refused_to_serve(&url, &words);
    refused(&["tenant", "list", "--store", &url], &words);
    refused(&["verify", "--store", &url], &words);
    refused(&["migrate", "--store", &url], &words);
}

#[test]
fn migrate_is_for_databases_and_running_it_again_changes_nothing() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("store");
    refused(&["migrate", "--store", path.to_str().unwrap()], &["--store postgres://"]);
    refused(&["migrate", "--store", "memory:"], &["--store postgres://"]);
    assert!(!path.exists());
    let database = database::empty();
    let migrate = || {
        let done = run(&["migrate", "--json", "--store", &database.url()]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    let (first, second) = (migrate(), migrate());
    assert!(first.contains(r#""from":0"#) && !first.contains(r#""steps":[]"#), "{first}");
    assert!(second.contains(r#""steps":[]"#), "{second}");
    assert_eq!(client::number(&first, "to"), client::number(&second, "from"));
}

#[test]
fn an_empty_database_gets_its_tables_from_the_first_server() {
    let database = database::empty();
    refused(&["verify", "--store", &database.url()], &["counterfoil migrate"]);
    let bench = Bench::at(database.url(), &[]);
    let _server = bench.serve();
    assert_eq!(bench.charge("k").status, 201);
    bench.verified();
}

#[test]
fn serve_creates_the_tables_as_well() {
    let database = database::empty();
    let (listen, url) = (free_port(), database.url());
    let process = std::process::Command::new(BINARY)
        .args(["serve", "--listen", &format!("127.0.0.1:{listen}"), "--gateway", NOWHERE, "--store", &url])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let server = Server { process, port: listen };
    server.until_ready();
    assert!(run(&["verify", "--store", &url]).status.success());
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn one_key_at_both_servers_has_one_effect_and_one_answer() {
    let database = database::empty();
    let bench = Bench::at(database.url(), &[]);
    let servers = [bench.serve(), bench.serve_on(free_port())];
    let clients = [bench.client(&servers[0]), bench.client(&servers[1])];
    for number in 0..20 {
        let key = format!("k-{number}");
        let start = std::sync::Barrier::new(clients.len());
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let asking = clients.each_ref().map(|client| {
                scope.spawn(|| {
                    start.wait();
                    client.charge(&key)
                })
            });
            asking.into_iter().map(|asking| asking.join().unwrap()).collect()
        });
        assert_eq!(answers[0].status, 201, "{answers:?}");
        assert_eq!(answers[0].declared(), answers[1].declared());
        assert_ne!(answers[0].is_replay(), answers[1].is_replay(), "one made it, the other was told");
    }
    assert_eq!(bench.provider.effects().len(), 20);
    bench.verified();
}

#[test]
fn a_duplicate_at_the_other_server_waits() {
    let database = database::empty();
    let bench = Bench::at(database.url(), &[("COUNTERFOIL_IDEMPOTENCY__WAIT_MS", "30000")]);
    let servers = [bench.serve(), bench.serve_on(free_port())];
    let [one, other] = [bench.client(&servers[0]), bench.client(&servers[1])];
    bench.provider.set_faults(Faults { latency_ms: 2_000, ..Faults::default() }).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| one.charge("k"));
        until("the charge is seen by the other server", || other.key_state("k").is_some());
        assert_eq!(other.key_state("k").as_deref(), Some("in_flight"));
        let twin = other.charge("k");
        let first = first.join().unwrap();
        assert_eq!((first.status, first.is_replay()), (201, false));
        assert_eq!((twin.declared(), twin.is_replay()), (first.declared(), true));
    });
    assert_eq!(bench.provider.effects().len(), 1);
    bench.verified();
}

#[test]
fn another_server_finishes_what_a_killed_one_began() {
    const LEASE: Duration = Duration::from_secs(1);
    let database = database::empty();
    let bench = Bench::at(database.url(), &[("COUNTERFOIL_IDEMPOTENCY__LEASE_MS", "1000")]);
    let first = bench.serve();
    let second = bench.serve_on(free_port());
    let [one, other] = [bench.client(&first), bench.client(&second)];
    // The provider charges and never answers.
    bench.provider.set_faults(Faults { hang_after: 1.0, ..Faults::default() }).unwrap();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| one.try_charge("k"));
        until("the provider has charged", || bench.provider.effects().len() == 1);
        bench.provider.set_faults(Faults::default()).unwrap();
        first.kill();
        let killed = Instant::now();
        assert!(asking.join().unwrap().is_err(), "a killed server answers nobody");
        // No client retries the charge: the other server takes over without help.
        until("the charge is finished", || other.key_state("k").as_deref() == Some("completed"));
        assert!(killed.elapsed() < LEASE + Duration::from_secs(5), "taken over after {:?}", killed.elapsed());
    });
    let answer = other.charge("k");
    assert_eq!((answer.status, answer.is_replay()), (201, true));
    let _again = bench.serve();
    assert_eq!(one.charge("k").declared(), answer.declared());
    assert_eq!(bench.provider.effects().len(), 1);
    bench.verified();
}

#[test]
fn tenants_and_keys_change_under_running_servers() {
    let database = database::empty();
    let bench = Bench::at(database.url(), &[]);
    let servers = [bench.serve(), bench.serve_on(free_port())];
    let tenant = |arguments: &[&str]| {
        let done = run(&[&["tenant"], arguments, &["--json", "--store", bench.url()]].concat());
        assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
        text(&done.stdout)
    };
    refused(&["tenant", "create", "acme", "--store", bench.url()], &["taken"]);
    refused(&["tenant", "key", "revoke", "key_nobody", "--store", bench.url()], &["no such"]);
    tenant(&["create", "globex"]);
    let made = tenant(&["key", "create", "globex"]);
    let (secret, id) = (field(&made, "secret"), field(&made, "key_id"));
    let listed = tenant(&["list"]);
    assert!(listed.contains("globex") && listed.contains(&id) && !listed.contains("sk_live_"), "{listed}");
    let at = |server: &Server| Client::new(server.port, &secret).get("/v1/charges");
    assert_eq!(servers.each_ref().map(|server| at(server).status), [200, 200]);
    tenant(&["key", "revoke", &id]);
    let revoked = Instant::now();
    for server in &servers {
        while at(server).status == 200 {
            assert!(
                revoked.elapsed() < Duration::from_secs(1),
                "still accepted a second after its revocation"
            );
        }
        assert_eq!(at(server).error(), "unauthorized");
        assert_eq!(bench.client(server).get("/v1/charges").status, 200, "another tenant is not concerned");
    }
    assert!(tenant(&["list"]).contains(r#""revoked":true"#));
}

#[test]
fn a_dead_database_stops_charging_until_it_is_back() {
    let mut postgres = postgres::Server::start(&[]).unwrap();
    let database = database::empty_at(&postgres.address());
    let bench = Bench::at(database.url(), &[("COUNTERFOIL_IDEMPOTENCY__LEASE_MS", "2000")]);
    let servers = [bench.serve(), bench.serve_on(free_port())];
    let clients = servers.each_ref().map(|server| bench.client(server));
    // The database dies while both servers are under load.
    let (loaded, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (client, loaded, stop) = (&clients[worker % 2], &loaded, &stop);
            scope.spawn(move || {
                for number in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    let key = format!("load-{worker}-{number}");
                    let answer = client.charge(&key);
                    loaded.lock().unwrap().push((key, answer));
                }
            });
        }
        let answered =
            |status| loaded.lock().unwrap().iter().filter(|(_, told)| told.status == status).count();
        until("charges are made", || answered(201) >= 40);
        postgres.kill().unwrap();
        until("requests are refused", || answered(503) >= 16);
        stop.store(true, Ordering::Relaxed);
    });
    let mut loaded = loaded.into_inner().unwrap();
    // Calls for claims made so far have been sent by now; later requests must not cause any.
    let charged = bench.provider.effects().len();
    for (index, client) in clients.iter().enumerate() {
        for number in 0..5 {
            let key = format!("down-{index}-{number}");
            let told = client.charge(&key);
            assert_eq!((told.status, told.error()), (503, "store_unavailable".into()), "{told:?}");
            assert!(told.headers.contains_key("retry-after"), "{told:?}");
            loaded.push((key, told));
        }
    }
    assert_eq!(bench.provider.effects().len(), charged, "a charge without a claim");
    postgres.restart().unwrap();
    for server in &servers {
        server.until_ready();
    }
    for (index, (key, told)) in loaded.iter().enumerate() {
        // Every other request goes through the other server.
        let answer = clients[index % 2].until_charged(key);
        assert_eq!(answer.status, 201, "{key}: {answer:?}");
        if told.status == 201 {
            assert_eq!(answer.declared(), told.declared(), "{key}");
        } else {
            assert_eq!(told.status, 503, "{told:?}");
        }
    }
    let effects = bench.provider.effects();
    let payments: HashSet<_> = effects.iter().map(|effect| effect.payment.clone()).collect();
    assert_eq!((effects.len(), payments.len()), (loaded.len(), loaded.len()));
    bench.verified();
}

//! The command line refuses bad input with one sentence and exit code 2, before anything is
//! written.

mod support;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use support::*;

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let output = run(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?} said: {said}");
    }
}

#[test]
fn a_taken_port_is_refused_before_the_store_is_made() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = tempfile::TempDir::new().unwrap();
    let store = directory.path().join("store");
    let gateway = "stripe+http://sk_test_secret@127.0.0.1:9";
    refused(
        &["serve", "--listen", &address, "--store", store.to_str().unwrap(), "--gateway", gateway],
        &[&address],
    );
    assert!(files(directory.path()).is_empty());
}

#[test]
fn bad_settings_are_refused_and_secrets_are_not_repeated() {
    let store = "/nonexistent/store";
    let serve = |gateway: &str, words: &[&str]| {
        refused(&["serve", "--listen", "127.0.0.1:0", "--store", store, "--gateway", gateway], words);
        let said =
            text(&run(&["serve", "--listen", "127.0.0.1:0", "--store", store, "--gateway", gateway]).stderr);
        assert!(!said.contains("sk_live_CANARY"), "{said}");
    };
    serve("http://sk_live_CANARY@host", &["stripe+"]);
    serve("stripe+http://host:80", &[]);
    serve("stripe+http://sk_live_CANARY@:x", &[]);
    refused(
        &["serve", "--listen", "nowhere", "--store", store, "--gateway", "stripe+http://k@h:1"],
        &["--listen"],
    );
    refused(&["serve", "--store", store, "--gateway", "stripe+http://k@h:1"], &["--listen"]);
    refused(&["serve", "--listen", "127.0.0.1:0", "--store", store], &["--gateway"]);
    refused(
        &["serve", "--listen", "127.0.0.1:0", "--store", "dynamodb://t", "--gateway", "stripe+http://k@h:1"],
        &["DynamoDB"],
    );
}

#[test]
fn a_store_that_cannot_be_opened_is_refused() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "no store").unwrap();
    refused(&["verify", "--store", file.to_str().unwrap()], &[]);
    refused(&["verify", "--store", directory.path().join("absent").to_str().unwrap()], &[]);
    let corrupt = directory.path().join("corrupt");
    std::fs::create_dir(&corrupt).unwrap();
    std::fs::write(
        corrupt.join("counterfoil.db"),
        "this is not a database, it only looks like a file of one",
    )
    .unwrap();
    refused(&["tenant", "list", "--store", corrupt.to_str().unwrap()], &[]);
}

#[test]
fn dev_stays_on_this_machine() {
    refused(&["dev", "--listen", "0.0.0.0:0"], &["loopback", "serve"]);
    refused(&["dev", "--gateway-listen", "192.0.2.1:0"], &["loopback"]);
    refused(&["dev", "--listen", "here"], &["127.0.0.1:8080"]);
}

#[test]
fn tenants_are_made_listed_and_refused_twice() {
    let directory = tempfile::TempDir::new().unwrap();
    let store = directory.path().join("store");
    let store = store.to_str().unwrap();
    let made = run(&["tenant", "create", "acme", "--store", store]);
    assert!(made.status.success() && text(&made.stdout).contains("sk_live_"), "{}", text(&made.stderr));
    refused(&["tenant", "create", "acme", "--store", store], &["taken"]);
    refused(&["tenant", "create", "Not A Name", "--store", store], &["lower-case"]);
    refused(&["tenant", "key", "create", "nobody", "--store", store], &["no such tenant"]);
    refused(&["tenant", "key", "revoke", "key_nobody", "--store", store], &["no such"]);
    refused(
        &["tenant", "key", "create", "acme", "--scopes", "root", "--store", store],
        &["read, write and admin"],
    );
    let listed = text(&run(&["tenant", "list", "--store", store]).stdout);
    assert!(listed.contains("acme") && listed.contains("active") && !listed.contains("sk_live_"), "{listed}");
}

#[test]
fn a_mistyped_store_url_creates_no_store() {
    let directory = tempfile::TempDir::new().unwrap();
    let store = directory.path().join("typo");
    refused(&["tenant", "list", "--store", store.to_str().unwrap()], &["no store"]);
    refused(&["dead-letters", "list", "--store", store.to_str().unwrap()], &["no store"]);
    refused(&["tenant", "key", "revoke", "key_x", "--store", store.to_str().unwrap()], &["no store"]);
    assert!(!store.exists());
}

#[test]
fn two_servers_cannot_write_one_directory() {
    let bench = Bench::new(&[]);
    let _server = bench.serve();
    let port = format!("127.0.0.1:{}", free_port());
    let store = bench.store();
    refused(
        &[
            "serve",
            "--listen",
            &port,
            "--store",
            store.to_str().unwrap(),
            "--gateway",
            "stripe+http://k@127.0.0.1:9",
        ],
        &[],
    );
    assert_eq!(bench.charge("k").status, 201);
}

#[test]
fn a_store_is_for_its_owner_only() {
    let bench = Bench::new(&[]);
    let _server = bench.serve();
    for path in files(&bench.store()) {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} can be read by others", path.display());
    }
}

#[test]
fn help_and_config_explain() {
    let help = text(&run(&["--help"]).stdout);
    for command in ["dev", "serve", "simulator", "tenant", "dead-letters", "verify", "bench", "config"] {
        assert!(help.contains(command), "{help}");
    }
    assert!(text(&run(&["config", "idempotency.lease_ms"]).stdout).contains("30000"));
    refused(&["config", "idempotency.lease"], &["lease_ms"]);
}

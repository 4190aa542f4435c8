//! Imports of files without keys, against the real server: twice, concurrently, and across the edge
//! of a bucket.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use counterfoil_provider_simulator::Faults;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use support::*;

/// The last instant of a bucket, and the first of the next.
const BEFORE: &str = "2026-03-01T23:59:59.999Z";
const AFTER: &str = "2026-03-02T00:00:00Z";

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::TempDir::new().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A file with `count` charges, one per line.
    fn charges(&self, count: usize, amount: u32) -> String {
        let lines: Vec<String> = (1..=count)
            .map(|number| {
                format!(
                    r#"{{"order_id":"o-{number}","amount":{amount},"currency":"USD","payment_method":"pm_card_visa"}}"#
                )
            })
            .collect();
        self.write("charges.ndjson", &lines.join("\n"))
    }
}

fn import(bench: &Bench, file: &str, more: &[&str]) -> Command {
    let url = format!("http://127.0.0.1:{}", bench.port);
    let mut command = Command::new(BINARY);
    command.args(["import", file, "--url", &url, "--api-key", &bench.api_key, "--json"]).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The import's result for each line, and its exit code.
fn told(output: &Output) -> (Vec<Value>, Option<i32>) {
    let mut rows: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| row["line"].as_u64());
    (rows, output.status.code())
}

fn imported(bench: &Bench, file: &str, more: &[&str]) -> (Vec<Value>, Option<i32>) {
    told(&import(bench, file, more).output().unwrap())
}

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let output = run(&[&["import"], arguments].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty());
    for word in words {
        assert!(said.contains(word), "{arguments:?} said: {said}");
    }
}

#[test]
fn bad_files_are_refused_before_anything_is_sent() {
    let files = Files::new();
    let good = files.charges(2, 1_250);
    let there = ["--url", "http://127.0.0.1:9", "--api-key", "sk_test"];
    let bad = |file: &str, more: &[&str], words: &[&str]| {
        refused(&[&[file][..], &there, more].concat(), words);
    };
    let stable = ["--stable", "order_id"];
    bad("/nonexistent", &stable, &["cannot be read"]);
    bad(&good, &[], &["--stable"]);
    bad(&good, &["--stable", "order_id,amount"], &["`amount`", "belongs to the fingerprint"]);
    bad(&good, &["--stable", "order_id,,currency"], &["empty"]);
    bad(&good, &["--stable", "order_id", "--bucket", "soon"], &["24h", "none"]);
    bad(&good, &["--stable", "order_id", "--bucket", "15m"], &["twice --deadline"]);
    bad(&good, &["--stable", "order_id", "--as-of", AFTER, "--time-field", "at"], &["--time-field"]);
    bad(&good, &["--stable", "order_id", "--as-of", AFTER], &["--bucket"]);
    bad(&good, &["--stable", "order_id", "--time-field", "at"], &["--bucket"]);
    bad(&files.write("empty", "\n"), &stable, &["no command"]);
    for (url, words) in [
        ("ftp://host", "http://"),
        ("http://key@host", "--api-key"),
        ("http://host/v1/charges", "without a path"),
        ("nothing at all", "no URL"),
    ] {
        refused(&[&good, "--url", url, "--api-key", "k", "--stable", "order_id"], &[words]);
    }
    let table = files.write(
        "bad.csv",
        "order_id,amount,currency,payment_method\n1,12.50,USD,pm_card_visa\n2,5,USD,pm_card_visa\n,5,USD,pm_card_visa\n2,6,USD,pm_card_visa\n",
    );
    bad(
        &table,
        &stable,
        &[
            "line 2: ",
            "fraction",
            "line 4: ",
            "`order_id`",
            "line 5: ",
            "line 3",
            "differs",
            "nothing was sent",
        ],
    );
}

#[test]
fn a_key_the_server_does_not_accept_stops_the_import() {
    let bench = Bench::new(&[]);
    let _server = bench.serve();
    let files = Files::new();
    let file = files.charges(20, 1_250);
    let url = format!("http://127.0.0.1:{}", bench.port);
    for bucket in ["none", "24h"] {
        let output = run(&[
            "import",
            &file,
            "--url",
            &url,
            "--api-key",
            "sk_wrong",
            "--stable",
            "order_id",
            "--json",
            "--connections",
            "1",
            "--bucket",
            bucket,
        ]);
        let (rows, code) = told(&output);
        assert_eq!((rows.len(), code), (20, Some(1)));
        assert_eq!((&rows[0]["status"], &rows[0]["error"]), (&401.into(), &"unauthorized".into()));
        assert!(rows[1..].iter().all(|row| row["error"] == "not_sent" && row["status"].is_null()));
    }
    assert!(bench.provider.effects().is_empty());
}

#[test]
fn a_dead_server_leaves_every_command_unresolved() {
    let bench = Bench::new(&[]);
    let files = Files::new();
    let (rows, code) =
        imported(&bench, &files.charges(3, 1_250), &["--stable", "order_id", "--deadline", "1s"]);
    assert_eq!((rows.len(), code), (3, Some(1)));
    for row in rows {
        assert!(row["error"].as_str().unwrap().starts_with("unresolved: "), "{row}");
        assert!(row["key"].as_str().unwrap().starts_with("dk_") && row["status"].is_null());
    }
}

#[test]
fn a_command_with_another_amount_is_refused_on_both_sides_of_the_edge() {
    let bench = Bench::new(&[]);
    let _server = bench.serve();
    let files = Files::new();
    let day = |amount: u32, at: &str| {
        imported(
            &bench,
            &files.charges(3, amount),
            &["--stable", "order_id", "--bucket", "24h", "--as-of", at],
        )
    };
    assert_eq!(day(1_250, BEFORE).1, Some(0));
    for at in [BEFORE, AFTER, "2026-02-28T12:00:00Z"] {
        let (rows, code) = day(1_300, at);
        assert_eq!((rows.len(), code), (3, Some(1)));
        for row in rows {
            assert_eq!(row["error"], "idempotency_key_fingerprint_mismatch", "{at}");
        }
    }
    assert_eq!(bench.provider.effects().len(), 3);
}

#[test]
fn a_declined_card_fails_its_line_alone_and_bad_lines_can_be_skipped() {
    let bench = Bench::new(&[]);
    let _server = bench.serve();
    let files = Files::new();
    let file = files.write(
        "mixed.csv",
        "order_id,amount,currency,payment_method\n1,1250,USD,pm_card_visa\n2,x,USD,pm_card_visa\n3,1250,USD,pm_card_chargeDeclined\n",
    );
    for replayed in [false, true] {
        let (rows, code) = imported(&bench, &file, &["--stable", "order_id", "--skip-bad"]);
        assert_eq!((rows.len(), code), (3, Some(1)));
        assert_eq!((&rows[0]["status"], &rows[0]["replayed"]), (&201.into(), &replayed.into()));
        assert!(rows[1]["error"].as_str().unwrap().contains("amount") && rows[1]["key"].is_null());
        assert_eq!((&rows[2]["status"], &rows[2]["error"]), (&402.into(), &"card_declined".into()));
    }
    assert_eq!(bench.provider.effects().len(), 1);
}

fn both_at_once(bench: &Bench, file: &str) -> [Child; 2] {
    [BEFORE, AFTER].map(|at| {
        import(bench, file, &["--stable", "order_id", "--bucket", "24h", "--as-of", at]).spawn().unwrap()
    })
}

#[test]
fn two_imports_at_once_on_both_sides_of_an_edge_and_a_killed_server_charge_once() {
    const CHARGES: usize = 200;
    let bench = Bench::new(&[]);
    let server = bench.serve();
    let files = Files::new();
    let file = files.charges(CHARGES, 1_250);
    bench.provider.set_faults(Faults { latency_ms: 20, ..Faults::default() }).unwrap();
    let children = both_at_once(&bench, &file);
    until("some charges are made", || bench.provider.effects().len() >= CHARGES / 4);
    server.kill();
    let made = bench.provider.effects().len();
    assert!(made < CHARGES, "all {made} charges were made before the server was killed");
    bench.provider.set_faults(Faults::default()).unwrap();
    let _server = bench.serve();
    let [early, late] = children.map(|child| {
        let output = child.wait_with_output().unwrap();
        let (rows, code) = told(&output);
        assert_eq!((rows.len(), code), (CHARGES, Some(0)), "{rows:?}");
        rows
    });
    for (one, other) in early.iter().zip(&late) {
        assert_eq!(
            (&one["line"], &one["key"], &one["resource"]),
            (&other["line"], &other["key"], &other["resource"])
        );
    }
    assert_eq!(bench.provider.effects().len(), CHARGES);
    for at in [BEFORE, AFTER] {
        let (rows, code) =
            imported(&bench, &file, &["--stable", "order_id", "--bucket", "24h", "--as-of", at]);
        assert_eq!((rows.len(), code), (CHARGES, Some(0)));
        for (row, first) in rows.iter().zip(&early) {
            assert_eq!(
                (&row["replayed"], &row["key"], &row["resource"]),
                (&true.into(), &first["key"], &first["resource"])
            );
        }
    }
    assert_eq!(bench.provider.effects().len(), CHARGES);
    bench.verified();
}

#[test]
fn the_next_day_replays_and_the_day_after_is_a_new_command() {
    let bench = Bench::new(&[]);
    let _server = bench.serve();
    let files = Files::new();
    let file = files.charges(5, 1_250);
    for (at, effects) in [
        ("2026-03-01T00:00:00Z", 5),
        ("2026-03-02T23:59:59Z", 5),
        ("2026-02-28T00:00:00Z", 5),
        ("2026-03-03T00:00:00Z", 10),
    ] {
        let (_, code) = imported(&bench, &file, &["--stable", "order_id", "--bucket", "24h", "--as-of", at]);
        assert_eq!((code, bench.provider.effects().len()), (Some(0), effects), "{at}");
    }
    bench.verified();
}

#[test]
fn the_time_in_the_file_decides_its_bucket_even_if_it_moves_across_the_edge() {
    let bench = Bench::new(&[]);
    let _server = bench.serve();
    let files = Files::new();
    let charge = |at: &str| {
        files.write(
            "timed.csv",
            &format!("order_id,occurred_at,amount,currency,payment_method\n1,{at},1250,USD,pm_card_visa\n"),
        )
    };
    for (at, effects) in [(AFTER, 1), (BEFORE, 1), (AFTER, 1), ("2026-03-09T00:00:00Z", 2)] {
        let more = ["--stable", "order_id", "--bucket", "24h", "--time-field", "occurred_at"];
        let (rows, code) = imported(&bench, &charge(at), &more);
        assert_eq!((code, bench.provider.effects().len()), (Some(0), effects), "{at}: {rows:?}");
    }
}

#[test]
fn transfers_from_standard_input_move_money_once_and_duplicates_are_reported() {
    let bench = Bench::new(&[]);
    let server = bench.serve();
    let client = bench.client(&server);
    for code in ["from", "to"] {
        let body = format!(r#"{{"code":"{code}","asset":"USD"}}"#);
        assert_eq!(client.post("/v1/accounts", &format!("open-{code}"), &body).unwrap().status, 201);
    }
    let table =
        "payout,from,to,amount,currency\np-1,from,to,700,USD\np-2,from,to,5,USD\np-1,from,to,7e2,USD\n";
    let files = Files::new();
    let input = files.write("payouts.csv", table);
    for replayed in [false, true] {
        let mut command = import(&bench, "-", &["--stable", "payout", "--route", "transfers"]);
        let output = command.stdin(std::fs::File::open(&input).unwrap()).output().unwrap();
        let (rows, code) = told(&output);
        assert_eq!((rows.len(), code), (3, Some(0)), "{}", text(&output.stderr));
        assert!(rows.iter().all(|row| row["status"] == 201 && row["replayed"] == replayed), "{rows:?}");
        assert_eq!((&rows[2]["duplicate_of"], &rows[2]["resource"]), (&2.into(), &rows[0]["resource"]));
    }
    let balance = client.get("/v1/accounts/to/balance");
    assert_eq!(support::client::number(&balance.body, "available"), 705);
}

#[test]
fn a_dry_run_shows_the_keys_and_needs_no_server() {
    let files = Files::new();
    let file = files.charges(2, 1_250);
    let show = |more: &[&str]| {
        let output =
            run(&[&["import", &file, "--stable", "order_id", "--dry-run", "--json"][..], more].concat());
        let (rows, code) = told(&output);
        assert_eq!((rows.len(), code), (2, Some(0)), "{}", text(&output.stderr));
        rows[0]["key"].as_str().unwrap().to_owned()
    };
    assert_eq!(show(&[]), "dk_e6schwvktj33yp086ka8tbvvqkm4r9qn073vw1404jkm4em5ssbg");
    let daily = |at: &str| show(&["--bucket", "24h", "--as-of", at]);
    assert_eq!(daily("2026-03-01T00:00:00Z"), daily(BEFORE));
    assert_ne!(daily(BEFORE), daily(AFTER));
}

//! A short crash campaign: the built server, killed and stopped for real. The long one is `cargo
//! xtask crash`.

use std::process::Command;

/// Runs a campaign on the development build, checks its exit status, and returns its report.
fn campaign(arguments: &[&str], holds: bool) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["crash", "--json", "--profile", "dev"])
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("xtask was built with this test: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{stderr}"));
    assert_eq!(output.status.code(), Some(i32::from(!holds)), "{report:#}\n{stderr}");
    assert_eq!(report["holds"], holds, "{report:#}");
    report
}

#[test]
fn ten_kills_under_load_with_a_failing_provider_hold() {
    let arguments = ["--kills", "10", "--within-ms", "400", "--clients", "16", "--errors", "2"];
    let report = campaign(&arguments, true);
    assert_eq!(report["kills"], 10);
    assert_enough_work(&report);
}

#[test]
fn ten_kills_of_two_servers_and_their_database_hold() {
    let arguments = "--store postgres --kills 10 --within-ms 400 --database-every 4 --clients 16";
    let report = campaign(&arguments.split(' ').collect::<Vec<_>>(), true);
    assert_eq!((&report["kills"], &report["database_kills"]), (&10.into(), &2.into()));
    assert_enough_work(&report);
}

/// Checks that the campaign did enough work to prove something.
#[track_caller]
fn assert_enough_work(report: &serde_json::Value) {
    let figure = |name| report[name].as_u64().unwrap_or(0);
    let (charges, operations, transfers) = (figure("charges"), figure("operations"), figure("transfers"));
    assert!(charges > 20 && operations > 10 && transfers > 2, "{report:#}");
    let payouts = figure("payouts");
    assert!(payouts > 2 && figure("payouts_refused") < payouts, "{report:#}");
    assert!(["captures", "refunds"].into_iter().all(|name| figure(name) > 2), "{report:#}");
    assert_eq!(report["answered"], charges + operations + payouts + transfers);
    assert_eq!(report["replays"], charges + operations + payouts + transfers);
    assert!(report["effects"].as_u64() > Some(10), "{report:#}");
}

#[test]
fn a_server_stopped_past_its_leases_charges_once() {
    let report = campaign(&["--stop"], true);
    assert_eq!(report["stops"], 3);
    assert_eq!(report["answered"], report["charges"]);
    assert!(report["effects"].as_u64() > Some(20), "{report:#}");
}

#[test]
fn five_kills_of_a_server_with_moved_clocks_hold() {
    let arguments = "--clock --kills 5 --within-ms 400 --clients 16 --errors 2";
    let report = campaign(&arguments.split(' ').collect::<Vec<_>>(), true);
    assert_eq!((&report["kills"], &report["clock_moves"]), (&5.into(), &20.into()));
    assert_enough_work(&report);
}

#[test]
fn five_kills_of_two_servers_with_moved_clocks_hold() {
    let arguments = "--store postgres --clock --kills 5 --within-ms 400 --clients 16 --errors 2";
    let report = campaign(&arguments.split(' ').collect::<Vec<_>>(), true);
    assert_eq!(report["kills"], 5);
    assert!(report["clock_moves"].as_u64() >= Some(20), "{report:#}");
    assert_enough_work(&report);
}

#[test]
fn a_provider_that_charges_twice_is_found() {
    let report = campaign(&["--kills", "2", "--clients", "4", "--errors", "0", "--duplicates", "300"], false);
    assert!(report["wrong"]["double effects"].as_u64() > Some(0), "{report:#}");
    assert!(report["examples"].as_array().is_some_and(|examples| !examples.is_empty()));
}

/// Covers every provider once and every fault at least once; the whole matrix is `cargo xtask crash
/// --matrix`.
#[test]
fn twelve_providers_failing_within_their_contracts_hold() {
    let report = campaign(&["--matrix", "--cells", "12"], true);
    assert_eq!((&report["cells"], &report["kills"]), (&12.into(), &36.into()));
    let figure = |name| report[name].as_u64().unwrap_or(0);
    assert!(figure("charges") == 360 && figure("operations") > 100, "{report:#}");
    assert!(figure("executed_twice_by_the_provider") > 0 && figure("adopted_by_a_human") > 0, "{report:#}");
    assert!(report["reasons"]["answer_differs"].as_u64() > Some(0), "{report:#}");
}

#[test]
fn a_server_that_believes_in_every_promise_is_found() {
    let report = campaign(&["--matrix", "--cells", "12", "--blind"], false);
    assert!(report["wrong"]["double effects"].as_u64() > Some(0), "{report:#}");
}

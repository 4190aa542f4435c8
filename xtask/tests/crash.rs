//! The crash campaign in small: the built server, killed and stopped for real. The long one is `cargo xtask crash`.

use std::process::Command;

/// Runs a campaign on the development build and gives its report, after a look at how it ended.
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
fn ten_kills_under_load_with_a_failing_provider() {
    let report = campaign(&["--kills", "10", "--clients", "8", "--errors", "2"], true);
    assert_eq!(report["kills"], 10);
    lively(&report);
}

#[test]
fn ten_kills_of_two_servers_on_one_database_that_dies_too() {
    let arguments = ["--store", "postgres", "--kills", "10", "--database-every", "4", "--clients", "8"];
    let report = campaign(&arguments, true);
    assert_eq!((&report["kills"], &report["database_kills"]), (&10.into(), &2.into()));
    lively(&report);
}

/// A campaign that asked for nothing has proven nothing.
#[track_caller]
fn lively(report: &serde_json::Value) {
    let [charges, transfers] = ["charges", "transfers"].map(|name| report[name].as_u64().unwrap_or(0));
    assert!(charges > 20 && transfers > 5, "{report:#}");
    assert_eq!(report["answered"], charges + transfers);
    assert_eq!(report["replays"], charges + transfers);
    assert!(report["effects"].as_u64() > Some(10), "{report:#}");
}

#[test]
fn stopped_past_its_leases_while_the_provider_works() {
    let report = campaign(&["--stop"], true);
    assert_eq!(report["stops"], 3);
    assert_eq!(report["answered"], report["charges"]);
    assert!(report["effects"].as_u64() > Some(20), "{report:#}");
}

#[test]
fn a_provider_that_charges_twice_is_found() {
    let report = campaign(&["--kills", "2", "--clients", "4", "--errors", "0", "--duplicates", "300"], false);
    assert!(report["wrong"]["double effects"].as_u64() > Some(0), "{report:#}");
    assert!(report["examples"].as_array().is_some_and(|examples| !examples.is_empty()));
}

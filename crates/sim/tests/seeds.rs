//! Runs drawn from seeds: nothing goes wrong, everything ends, and the same seed is the same run.

use counterfoil_gateway::Profile;
use counterfoil_gateway::profile::PROFILES;
use counterfoil_sim::draw::draw;
use counterfoil_sim::exhaust::{Depth, exhaust};
use counterfoil_sim::faults::{FAULTS, Fault};
use counterfoil_sim::report::Report;
use counterfoil_sim::run::run;
use counterfoil_sim::script::Script;
use counterfoil_sim::shrink::listed;
use std::collections::BTreeSet;

fn seeds_hold(first: u64, count: u64) {
    let mut report = Report::default();
    let broken: Vec<String> = (first..first + count)
        .filter_map(|seed| {
            let outcome = run(&draw(seed, None), None);
            report.add(&outcome);
            let violation = outcome.violations.first()?;
            Some(format!(
                "seed {seed}: {violation}; run `cargo run -p counterfoil-sim -- --seed {seed} --shrink`"
            ))
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_eq!(report.runs, count);
}

#[test]
fn the_first_hundred_seeds_hold() {
    seeds_hold(1, 100);
}

#[test]
fn a_hundred_other_seeds_hold() {
    seeds_hold(40_000, 100);
}

#[test]
fn another_hundred_seeds_hold() {
    seeds_hold(50_000, 100);
}

#[test]
fn every_kind_of_fault_strikes_within_a_few_hundred_seeds() {
    let mut struck: BTreeSet<Fault> = BTreeSet::new();
    for seed in 60_000..60_400 {
        struck.extend(run(&draw(seed, None), None).struck.values());
        if struck.len() == FAULTS.len() {
            return;
        }
    }
    let missing: Vec<&str> = FAULTS.iter().filter(|it| !struck.contains(it)).map(|it| it.name()).collect();
    panic!("never struck: {missing:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 70_000..70_040 {
        let script = draw(seed, None);
        assert_eq!(draw(seed, None), script, "seed {seed}");
        assert_eq!(run(&script, None).trace, run(&script, None).trace, "seed {seed}");
    }
    let traces: BTreeSet<u64> = (70_000..70_010).map(|seed| run(&draw(seed, None), None).trace).collect();
    assert_eq!(traces.len(), 10, "other seeds are other runs");
}

#[test]
fn a_run_with_its_faults_listed_is_the_same_run() {
    for seed in 71_000..71_020 {
        let script = draw(seed, None);
        let outcome = run(&script, None);
        let text = listed(&script, &outcome).to_string();
        let again = Script::parse(&text).unwrap();
        assert_eq!(run(&again, None).trace, outcome.trace, "seed {seed}");
    }
}

#[test]
fn every_single_fault_at_every_place_of_a_charge_holds_on_every_profile() {
    for profile in &PROFILES {
        let tried = exhaust(profile, false, Depth::Singles);
        let broken: Vec<String> =
            tried.broken.iter().map(|(script, violation)| format!("{violation}\n{script}")).collect();
        assert!(broken.is_empty(), "{}: {}", profile.name, broken.join("\n"));
        assert!(tried.singles > 200, "{}: only {} places", profile.name, tried.singles);
    }
}

#[test]
fn every_single_fault_holds_where_nobody_else_can_write_the_store() {
    for name in ["stripe", "checkout", "braintree-classic"] {
        let tried = exhaust(Profile::named(name).unwrap(), true, Depth::Singles);
        assert!(tried.broken.is_empty(), "{name}: {:?}", tried.broken.first());
        assert!(tried.singles > 150);
    }
}

//! The whole state space of the protocol, for every provider contract; and that planted defects are found.

use counterfoil_model::{Bug, PROFILES, Profile, Protocol};
use stateright::{Checker, HasDiscoveries, Model};

fn profile(name: &str) -> Profile {
    let found = PROFILES.into_iter().find(|profile| profile.name == name);
    found.unwrap_or_else(|| panic!("there is no profile that {name}"))
}

/// One key, three workers, every crash.
fn one_key(profile: Profile, bug: Option<Bug>) -> Protocol {
    Protocol { keys: 1, profile, bug }
}

fn holds(protocol: Protocol) {
    let checker = protocol.checker().threads(2).spawn_bfs().join();
    println!("{}: {} states", protocol.profile.name, checker.unique_state_count());
    for (name, path) in checker.discoveries() {
        // What is sometimes true is told as found; what is always true must not be.
        assert_eq!(name, "every key is completed", "{name} is broken:\n{path}");
    }
    assert!(checker.discovery("every key is completed").is_some(), "no key is ever completed");
}

#[test]
fn one_key_on_every_profile() {
    for profile in PROFILES {
        holds(one_key(profile, None));
    }
}

fn is_found(bug: Bug, on: &str) {
    let checker = one_key(profile(on), Some(bug)).checker().threads(2);
    let checker =
        checker.finish_when(HasDiscoveries::AnyFailures).target_state_count(500_000).spawn_bfs().join();
    let broken: Vec<&str> =
        checker.discoveries().into_keys().filter(|name| *name != "every key is completed").collect();
    assert!(!broken.is_empty(), "{bug:?} on a provider that {on} goes unnoticed");
}

#[test]
fn planted_defects_are_found() {
    is_found(Bug::NoCompareAndSwap, "deduplicates");
    is_found(Bug::BlindRepetition, "does not deduplicate");
    is_found(Bug::HastyProof, "does not deduplicate");
    is_found(Bug::LeaseIgnored, "does not deduplicate");
    is_found(Bug::UnknownIsFailure, "deduplicates");
    is_found(Bug::FreshKeyPerAttempt, "deduplicates");
}

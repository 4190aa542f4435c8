//! The whole state space of the protocol for every provider contract, and the detection of planted
//! defects.

use counterfoil_model::{Bug, PROFILES, Profile, Protocol, pairs};
use stateright::{Checker, HasDiscoveries, Model};

fn profile(name: &str) -> Profile {
    let found = PROFILES.into_iter().find(|profile| profile.name == name);
    found.unwrap_or_else(|| panic!("there is no profile that {name}"))
}

/// One key, three workers, any number of crashes and of leases.
fn one_key(profile: Profile, bug: Option<Bug>) -> Protocol {
    Protocol { keys: 1, profile, bug }
}

fn holds(protocol: Protocol) {
    let checker = protocol.checker().threads(2).spawn_bfs().join();
    println!("{}: {} states", protocol.profile.name, checker.unique_state_count());
    for (name, path) in checker.discoveries() {
        // "Sometimes" properties are reported when they hold; "always" properties must not be
        // reported.
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

/// Two keys, three workers, any number of crashes and of leases.
#[test]
fn two_keys_on_every_profile() {
    let mut states = 0;
    for profile in PROFILES {
        let walked = pairs(&Protocol { keys: 2, ..one_key(profile, None) });
        assert!(walked.broken.is_empty() && walked.completes, "{}: {walked:?}", profile.name);
        states += walked.states;
    }
    assert!(states > 1_000_000, "{states}");
}

/// Checks the composition of pairs: a direct walk of two keys finds the same number of states.
#[test]
fn two_keys_walked_directly_have_as_many_states() {
    let name = "neither deduplicates nor answers";
    let two = Protocol { keys: 2, ..one_key(profile(name), None) };
    let checker = two.checker().threads(2).spawn_bfs().join();
    assert_eq!(u64::try_from(checker.unique_state_count()), Ok(pairs(&two).states));
}

#[test]
fn two_keys_show_planted_defects() {
    let model = one_key(profile("neither deduplicates nor answers"), Some(Bug::BlindRepetition));
    let broken = pairs(&Protocol { keys: 2, ..model }).broken;
    assert!(broken.contains("at most one effect per key"), "{broken:?}");
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

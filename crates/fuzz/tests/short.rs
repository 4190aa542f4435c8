//! A short run of every target with one seed, and every input that once broke a promise.

#![allow(clippy::expect_used, reason = "a broken promise must stop the test")]

use counterfoil_fuzz::campaign::Campaign;
use counterfoil_fuzz::target::Target;
use counterfoil_fuzz::targets::TARGETS;

const SEED: u64 = 20_260_101;

fn target(name: &str) -> Target {
    *TARGETS.iter().find(|target| target.name == name).expect("a target of the list")
}

fn short(name: &str) {
    let target = target(name);
    let mut campaign = Campaign::new(target, SEED).unwrap_or_else(|failure| panic!("{failure}"));
    let seeds = campaign.executions();
    for _ in 0..target.short {
        campaign.step().unwrap_or_else(|failure| panic!("{failure}"));
    }
    assert_eq!(campaign.executions(), seeds + target.short);
    assert!(campaign.kinds() > 1, "every input got the same answer");
}

/// An input, as the long run prints it.
#[track_caller]
fn holds(name: &str, input: &[u8]) {
    let mut campaign = Campaign::new(target(name), SEED).unwrap_or_else(|failure| panic!("{failure}"));
    campaign.execute(input).unwrap_or_else(|failure| panic!("{failure}"));
}

macro_rules! short {
    ($($test:ident = $name:literal,)+) => {
        $(#[test]
        fn $test() {
            short($name);
        })+

        #[test]
        fn every_target_has_its_short_run() {
            let mut tested = [$($name),+];
            let mut known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            tested.sort_unstable();
            known.sort_unstable();
            assert_eq!(tested.as_slice(), known);
        }
    };
}

short! {
    no_header_is_read_as_another_key = "key",
    no_body_is_read_in_two_ways = "json",
    no_number_is_read_in_two_ways = "decimal",
    no_form_is_read_in_two_ways = "form",
    no_request_breaks_the_engine = "request",
    no_text_opens_that_was_not_sealed = "reference",
    no_time_is_read_in_two_ways = "time",
    no_name_changes_when_it_is_read = "names",
    no_answer_is_believed_beyond_what_it_says = "answer",
    no_peer_is_believed_beyond_what_it_says = "peer",
    no_event_is_taken_that_was_not_signed = "webhook",
    no_metadata_is_lost = "metadata",
    no_stored_bytes_stop_the_store = "record",
    no_configuration_stops_the_loader = "config",
}

#[test]
fn a_broken_promise_is_found_and_made_small() {
    let target = Target {
        name: "planted",
        seeds: || vec![b"abcdef".to_vec()],
        words: &["bug"],
        length_max: 64,
        short: 0,
        start: || {
            Box::new(|input| {
                assert!(!input.windows(3).any(|word| word == b"bug"), "found");
                counterfoil_fuzz::target::Kind::of(input.len())
            })
        },
    };
    let mut campaign = Campaign::new(target, 1).expect("sound seeds");
    let failure = (0..10_000).find_map(|_| campaign.step().err()).expect("the bug is found");
    assert_eq!(failure.input, b"bug");
    assert_eq!(failure.to_string(), "planted: found\nholds(\"planted\", b\"bug\");");
}

#[test]
fn one_seed_makes_one_sequence() {
    let run = || {
        let mut campaign = Campaign::new(target("decimal"), 7).expect("sound seeds");
        for _ in 0..2_000 {
            campaign.step().expect("no failure");
        }
        (campaign.corpus_size(), campaign.kinds())
    };
    assert_eq!(run(), run());
}

#[test]
fn inputs_that_once_failed_hold() {
    // A byte outside UTF-8, in an ignored field, was passed over.
    holds("answer", b"\x00\x00{\"id\":\"1\",\"\":\"\x80\",\"amount_received\":0,\"status\":\"succeeded\"}");
    // A reference that PostgreSQL cannot hold was believed.
    holds("answer", b"\x00\x00{\"id\":\"\\u0000\",\"amount_received\":0,\"status\":\"succeeded\"}");
}

//! Runs that once went wrong, or nearly: each is a story, and each must stay told.

#![expect(clippy::unwrap_used, reason = "a script that cannot be read has to fail")]

use counterfoil_core::payments::provider::ProviderStep;
use counterfoil_dst::bank::Bug;
use counterfoil_dst::run::{run, witnessed};
use counterfoil_dst::script::{Ask, Script};
use counterfoil_store::Row;

const STALE: &str = include_str!("scripts/a-stale-claim-meets-a-younger-record.txt");
const ASLEEP: &str = include_str!("scripts/a-process-sleeps-while-it-connects.txt");
const SWEPT: &str = include_str!("scripts/a-doubtful-claim-lands-when-an-old-record-is-swept.txt");
const VOIDED: &str = include_str!("scripts/an-operator-voids-a-capture-that-is-not-seen-yet.txt");

fn told(script: &str, bug: Option<Bug>) -> Vec<String> {
    let script = Script::parse(script).unwrap();
    run(&script, bug).violations.iter().map(ToString::to_string).collect()
}

#[test]
fn a_stale_claim_does_not_take_the_place_of_a_younger_record() {
    assert_eq!(told(STALE, None), Vec::<String>::new());
    assert!(!told(STALE, Some(Bug::NoFence)).is_empty(), "the script still reaches the place");
}

#[test]
fn a_process_that_slept_while_it_connected_does_not_send() {
    assert_eq!(told(ASLEEP, None), Vec::<String>::new());
    let broken = told(ASLEEP, Some(Bug::SendsLate));
    assert!(broken.iter().any(|what| what.contains("executed 2 times")), "{broken:?}");
}

/// Found by seed 516226: the client was told that the store was away, and was charged.
#[test]
fn a_doubtful_claim_over_an_old_record_is_not_told_as_a_store_that_was_away() {
    assert_eq!(told(SWEPT, None), Vec::<String>::new());
}

/// Found by seven of 6,000 seeds with operators (1076 was the first): the capture was done, the question still showed the hold, and a void was sent
/// under the capture's letter.
#[test]
fn an_operator_does_not_void_what_a_capture_may_have_taken() {
    let (outcome, evidence) = witnessed(&Script::parse(VOIDED).unwrap(), None);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    assert!(evidence.reply.iter().any(|reply| matches!(reply.ask, Ask::Resolve { how: 1, .. })));
    assert_eq!(evidence.sent.iter().filter(|sent| sent.step == ProviderStep::Void).count(), 0);
}

/// Found by seed 512: after a long sleep every request claimed a worker slot of its own, one after another through all
/// that were taken by then, and the last of them got no answer within a minute.
#[test]
fn a_crowd_that_finds_the_worker_slot_lapsed_claims_one_for_all() {
    let crowd: Vec<String> = (0..40).map(|key| format!("at 2000 charge {} 1 {key} 0", key % 2)).collect();
    let crowd = crowd.join("\n");
    let script = format!("set profile ideal\nset latency 400\nat 1000 freeze 100000\n{crowd}");
    let (outcome, evidence) = witnessed(&Script::parse(&script).unwrap(), None);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    let slots = evidence.each().filter(|row| matches!(row, Row::Slot(_))).count();
    assert_eq!(outcome.seen.charges, 40);
    assert!(slots <= 4, "{slots}: for each process the one it renews, and one for all who could not wait");
}

/// Found by seed 15005637: a refund that had its answer was opened anew in a process that did not remember it, its commit was in doubt, and
/// nobody could be asked.
#[test]
fn a_refund_that_was_answered_is_not_told_as_pending_when_it_is_sent_again() {
    let script = "set profile ideal\nset processes 2\nset latency 1\nat 1000 charge 0 2 101 0\nat 3000 operate 0 2 1623 0\n\
                  at 5000 operate 1 2 1623 0\nat 5010 store-down 5000\nfault commit 11 doubt-late";
    assert_eq!(told(script, None), Vec::<String>::new());
}

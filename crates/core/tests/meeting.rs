//! The answer to a request that finds a claim: every state, the same request and another, around
//! every window's end.

mod given;

use counterfoil_core::idempotency::claim::{Claim, ClaimState, Custody, Meeting, Settled};
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::types::time::{Span, Time};
use given::{at, claim_in, fingerprint, lease_until, settled, states};

/// Every edge of any state, one millisecond to each side, and the limits of time.
fn instants() -> Vec<Time> {
    let edges = [0, 500, 1_000, 2_000, 30_000, 180_000].map(at);
    let around =
        edges.into_iter().flat_map(|edge| [edge.minus(Span::from_ms(1)), edge, edge.plus(Span::from_ms(1))]);
    around.chain([Time::EPOCH, Time::MAX.minus(Span::from_ms(1))]).collect()
}

fn same(claim: &Claim, now: Time) -> Meeting<'_> {
    claim.meet(claim.fingerprint, now)
}

fn other(claim: &Claim, now: Time) -> Meeting<'_> {
    claim.meet(fingerprint(2), now)
}

#[test]
fn a_mismatch_precedes_every_other_answer() {
    for (name, state) in states() {
        let claim = claim_in(state);
        let remembers = matches!(name, "completed" | "failed_terminal" | "expired");
        for now in instants() {
            let expected = if remembers && now >= at(2_000) { Meeting::Free } else { Meeting::Mismatch };
            assert_eq!(other(&claim, now), expected, "{name} at {now:?}");
        }
    }
}

#[test]
fn a_request_in_flight_is_neither_free_nor_expired() {
    for now in instants() {
        // Even after the lease: the recovery worker takes over, not a client.
        let in_flight = claim_in(ClaimState::InFlight(lease_until(30_000)));
        assert_eq!(same(&in_flight, now), Meeting::InFlight, "{now:?}");
        for waiting in [
            ClaimState::FailedRetry { not_before: at(500) },
            ClaimState::Uncertain(Custody::Waiting { not_before: at(500) }),
        ] {
            let claim = claim_in(waiting);
            let expected = Meeting::Pending { not_before: at(500) };
            assert_eq!(same(&claim, now), expected, "{now:?}");
        }
        let held = claim_in(ClaimState::Uncertain(Custody::Held(lease_until(30_000))));
        assert_eq!(same(&held, now), Meeting::Pending { not_before: now }, "{now:?}");
    }
}

#[test]
fn an_answer_is_replayed_then_expired_then_free() {
    let gone = Meeting::Expired { original_request_at: at(0) };
    for build in [ClaimState::Completed, ClaimState::FailedTerminal] {
        let answer = settled(b"bytes");
        let claim = claim_in(build(answer.clone()));
        for (ms, expected) in [
            (0, Meeting::Replay(&answer)),
            (999, Meeting::Replay(&answer)),
            (1_000, gone.clone()),
            (1_999, gone.clone()),
            (2_000, Meeting::Free),
            (2_001, Meeting::Free),
        ] {
            assert_eq!(same(&claim, at(ms)), expected, "{} at {ms} ms", claim.state.name());
        }
    }
}

#[test]
fn a_tombstone_answers_until_its_end() {
    let claim = claim_in(ClaimState::Expired { tombstone_until: at(2_000) });
    let gone = Meeting::Expired { original_request_at: at(0) };
    for (ms, expected) in [(0, gone.clone()), (1_999, gone), (2_000, Meeting::Free), (2_001, Meeting::Free)] {
        assert_eq!(same(&claim, at(ms)), expected, "at {ms} ms");
    }
}

#[test]
fn dropping_the_answer_is_invisible_to_clients() {
    let kept = claim_in(ClaimState::Completed(settled(b"bytes")));
    let dropped = claim_in(ClaimState::Expired { tombstone_until: at(2_000) });
    for now in instants().into_iter().filter(|now| *now >= at(1_000)) {
        assert_eq!(same(&kept, now), same(&dropped, now), "{now:?}");
        assert_eq!(other(&kept, now), other(&dropped, now), "{now:?}");
    }
}

#[test]
fn without_a_tombstone_the_key_is_free_when_the_replay_ends() {
    let brief = Settled {
        windows: Windows { replay_until: at(1_000), tombstone_until: at(1_000) },
        ..settled(b"bytes")
    };
    let claim = claim_in(ClaimState::Completed(brief.clone()));
    assert_eq!(same(&claim, at(999)), Meeting::Replay(&brief));
    assert_eq!(same(&claim, at(1_000)), Meeting::Free);
}

#[test]
fn a_permanent_tombstone_never_frees_its_key() {
    let for_good = Settled {
        windows: Windows { replay_until: at(1_000), tombstone_until: Time::MAX },
        ..settled(b"bytes")
    };
    let gone = Meeting::Expired { original_request_at: at(0) };
    for state in [ClaimState::Completed(for_good), ClaimState::Expired { tombstone_until: Time::MAX }] {
        let claim = claim_in(state);
        let late = Time::MAX.minus(Span::from_ms(1));
        assert_eq!(same(&claim, late), gone);
        assert_eq!(other(&claim, late), Meeting::Mismatch);
    }
}

#[test]
fn the_sweeper_comes_at_the_end_of_a_window() {
    let expected = |name: &str| match name {
        "completed" | "failed_terminal" => Some(at(1_000)),
        "expired" => Some(at(2_000)),
        _ => None,
    };
    for (name, state) in states() {
        assert_eq!(claim_in(state).sweep_at(), expected(name), "{name}");
    }
    let for_good = claim_in(ClaimState::Expired { tombstone_until: Time::MAX });
    assert_eq!(for_good.sweep_at(), None);
}

#[test]
fn a_new_key_is_safe_only_after_a_certain_failure() {
    for (name, state) in states() {
        assert_eq!(claim_in(state).safe_new_key(), name == "failed_terminal", "{name}");
    }
}

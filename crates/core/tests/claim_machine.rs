//! The claim's state machine: every state with every event, and properties of random walks.

mod given;

use counterfoil_core::idempotency::claim::{
    Claim, ClaimEvent, ClaimId, ClaimState, Custody, IllegalMove, Lease, Resource,
};
use counterfoil_core::idempotency::request::{Outcome, Request};
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{ChargeId, Holder, SubjectId, TenantId};
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use given::{at, claim_in, fingerprint, lease_until, settled, states};
use proptest::prelude::*;

const TAKEN: Lease = Lease { holder: Holder { slot: 2, epoch: 1 }, until: at(70_000), ceiling: at(220_000) };

fn events() -> [(&'static str, ClaimEvent); 7] {
    [
        ("renewed", ClaimEvent::Renewed { until: at(60_000) }),
        ("taken_over", ClaimEvent::TakenOver(TAKEN)),
        ("completed", ClaimEvent::Completed(settled(b"done"))),
        ("failed", ClaimEvent::Failed(settled(b"refused"))),
        ("put_off", ClaimEvent::PutOff { not_before: at(900) }),
        ("doubted", ClaimEvent::Doubted { not_before: at(800) }),
        ("aged", ClaimEvent::Aged { tombstone_until: at(5_000) }),
    ]
}

/// The expected state after a legal pair and whether the holder changes; `None` for illegal pairs.
fn legal(state: &str, event: &str) -> Option<(ClaimState, bool)> {
    let renewed = lease_until(60_000);
    let put_off = ClaimState::FailedRetry { not_before: at(900) };
    let doubted = ClaimState::Uncertain(Custody::Waiting { not_before: at(800) });
    let aged = ClaimState::Expired { tombstone_until: at(5_000) };
    match (state, event) {
        ("in_flight", "renewed") => Some((ClaimState::InFlight(renewed), false)),
        ("in_flight" | "failed_retry", "taken_over") => Some((ClaimState::InFlight(TAKEN), true)),
        ("in_flight", "put_off") => Some((put_off, false)),
        ("in_flight" | "held", "doubted") => Some((doubted, false)),
        ("in_flight" | "waiting" | "held", "completed") => {
            Some((ClaimState::Completed(settled(b"done")), false))
        }
        ("in_flight" | "waiting" | "held", "failed") => {
            Some((ClaimState::FailedTerminal(settled(b"refused")), false))
        }
        ("waiting" | "held", "taken_over") => Some((ClaimState::Uncertain(Custody::Held(TAKEN)), true)),
        ("held", "renewed") => Some((ClaimState::Uncertain(Custody::Held(renewed)), false)),
        ("completed" | "failed_terminal", "aged") => Some((aged, false)),
        _ => None,
    }
}

#[test]
fn every_state_meets_every_event() {
    let mut legal_pairs = 0;
    for (state_name, state) in states() {
        for (event_name, event) in events() {
            let before = claim_in(state.clone());
            let expected = match legal(state_name, event_name) {
                Some((state, handed_over)) => {
                    legal_pairs += 1;
                    Ok(Claim {
                        state,
                        fence: before.fence + u64::from(handed_over),
                        attempts: before.attempts + u32::from(handed_over),
                        revision: before.revision + 1,
                        ..before.clone()
                    })
                }
                None => Err(IllegalMove { from: before.state.name(), event: event_name }),
            };
            assert_eq!(before.on(event), expected, "{state_name} on {event_name}");
        }
    }
    assert_eq!(legal_pairs, 17, "of 49 pairs");
}

#[test]
fn stores_admit_every_legal_transition() {
    for (name, state) in states() {
        let before = claim_in(state);
        for (event_name, event) in events() {
            if let Ok(after) = before.on(event) {
                assert!(before.may_become(&after), "{name} on {event_name}");
            }
        }
    }
}

/// The legal successors of each state, as stores enforce them. `waiting` and `held` count as one
/// state here.
#[test]
fn stores_refuse_every_illegal_transition() {
    let follows = |from: &str, to: &str| match from {
        "in_flight" => to != "expired",
        "failed_retry" => to == "in_flight",
        "waiting" | "held" => matches!(to, "waiting" | "held" | "completed" | "failed_terminal"),
        "completed" | "failed_terminal" => to == "expired",
        _ => false,
    };
    for (from_name, from) in states() {
        for (to_name, to) in states() {
            let before = claim_in(from.clone());
            let after =
                Claim { state: to, fence: before.fence + 1, attempts: before.attempts + 1, ..before.clone() };
            assert_eq!(before.may_become(&after), follows(from_name, to_name), "{from_name} to {to_name}");
        }
    }
}

#[test]
fn a_claim_keeps_its_fixed_fields() {
    let before = claim_in(ClaimState::InFlight(lease_until(30_000)));
    let after = before.on(ClaimEvent::Completed(settled(b"done"))).unwrap();
    assert!(before.may_become(&after));
    for forged in [
        Claim { fence: before.fence - 1, ..after.clone() },
        Claim { attempts: before.attempts - 1, ..after.clone() },
        Claim { created_at: at(1), ..after.clone() },
        Claim { fingerprint: fingerprint(2), ..after.clone() },
        Claim { tenant: TenantId::from_i64(2), ..after.clone() },
        Claim { makes: Resource::Transfer, ..after.clone() },
    ] {
        assert!(!before.may_become(&forged), "{forged:?}");
    }
}

#[test]
fn a_change_of_holder_needs_a_higher_fence() {
    let ours = lease_until(30_000);
    let held = |lease| ClaimState::Uncertain(Custody::Held(lease));
    for (name, from, to) in [
        ("taken from its holder", ClaimState::InFlight(ours), ClaimState::InFlight(TAKEN)),
        ("taken up again", ClaimState::FailedRetry { not_before: at(500) }, ClaimState::InFlight(ours)),
        ("taken from its holder in doubt", held(ours), held(TAKEN)),
        ("taken up in doubt", ClaimState::Uncertain(Custody::Waiting { not_before: at(500) }), held(ours)),
    ] {
        let before = claim_in(from);
        let after = |fence| Claim { state: to.clone(), fence, ..before.clone() };
        assert!(!before.may_become(&after(before.fence - 1)), "{name}");
        assert!(!before.may_become(&after(before.fence)), "{name}");
        assert!(before.may_become(&after(before.fence + 1)), "{name}");
    }
    let before = claim_in(ClaimState::InFlight(ours));
    let renewed = Claim { state: ClaimState::InFlight(lease_until(60_000)), ..before.clone() };
    assert!(before.may_become(&renewed), "the same holder needs no higher fence");
}

#[test]
fn only_an_ended_claim_has_an_answer_to_replay() {
    for (name, state) in states() {
        let answer = match name {
            "completed" => Some(settled(b"yes")),
            "failed_terminal" => Some(settled(b"no")),
            _ => None,
        };
        assert_eq!(state.settled(), answer.as_ref(), "{name}");
    }
}

#[test]
fn a_key_is_reused_only_after_its_end_and_under_a_higher_fence() {
    for (name, state) in states() {
        let before = claim_in(state);
        let next = |fence| Claim {
            subject: ChargeId::from_i64(8).into(),
            fingerprint: fingerprint(2),
            created_at: at(9_000),
            fence,
            attempts: 1,
            state: ClaimState::InFlight(TAKEN),
            ..before.clone()
        };
        let over = matches!(name, "completed" | "failed_terminal" | "expired");
        assert_eq!(before.may_become(&next(before.fence + 1)), over, "{name}");
        assert!(!before.may_become(&next(before.fence)), "{name} without a higher fence");
    }
}

/// A removed and re-created record counts revisions from 1. A writer with the old record in mind
/// may therefore expect the new record's revision. Only the new record is still valid.
#[test]
fn a_record_that_still_counts_is_never_reused() {
    for (name, state) in states() {
        let before = claim_in(state);
        let next = |created_at| Claim {
            subject: SubjectId::from_i64(8),
            created_at,
            fence: before.fence + 1,
            state: ClaimState::InFlight(TAKEN),
            ..before.clone()
        };
        let ends = matches!(name, "completed" | "failed_terminal" | "expired");
        assert!(!before.may_become(&next(at(1_999))), "{name}");
        assert_eq!(before.may_become(&next(at(2_000))), ends, "{name}");
    }
}

#[test]
fn a_reused_key_starts_in_flight_or_settled() {
    let before = claim_in(ClaimState::Expired { tombstone_until: at(2_000) });
    for (name, state) in states() {
        let next = Claim {
            subject: SubjectId::from_i64(8),
            makes: Resource::Transfer,
            created_at: at(2_000),
            fence: before.fence + 1,
            state,
            ..before.clone()
        };
        let begins = matches!(name, "in_flight" | "completed" | "failed_terminal");
        assert_eq!(before.may_become(&next), begins, "{name}");
    }
}

#[test]
fn a_request_claims_its_key_for_its_resource() {
    let request = Request {
        tenant: TenantId::from_i64(1),
        claim: ClaimId::from_digest(Digest::from_bytes([1; 32])),
        fingerprint: fingerprint(2),
        id: Ulid::new(at(0), 5),
    };
    let subject = SubjectId::from_i64(8);
    let outcomes = [
        (Outcome::Done(settled(b"yes")), ClaimState::Completed(settled(b"yes"))),
        (Outcome::Refused(settled(b"no")), ClaimState::FailedTerminal(settled(b"no"))),
    ];
    for (outcome, state) in outcomes {
        let first = request.settled(subject, Resource::Transfer, outcome.clone(), at(7), None);
        let expected = Claim {
            fingerprint: fingerprint(2),
            subject,
            makes: Resource::Transfer,
            request: request.id,
            created_at: at(7),
            fence: 1,
            revision: 1,
            attempts: 1,
            state: state.clone(),
            ..claim_in(state)
        };
        assert_eq!(first, expected);
        // A free key is claimed again, above everything its record has seen.
        let old = claim_in(ClaimState::Expired { tombstone_until: at(2_000) });
        let next = request.settled(subject, Resource::Transfer, outcome, at(2_000), Some(&old));
        let created_at = at(2_000);
        assert_eq!(next, Claim { created_at, fence: old.fence + 1, revision: old.revision + 1, ..expected });
        assert!(old.may_become(&next));
    }
}

#[test]
fn every_resource_has_a_name() {
    let words = [
        "charge",
        "account",
        "asset",
        "transfer",
        "transaction",
        "bulk",
        "shards",
        "capture",
        "void",
        "refund",
        "resolution",
    ];
    for word in words {
        assert_eq!(Resource::parse(word).map(Resource::name), Some(word));
    }
    assert_eq!(Resource::parse("reserve"), None);
}

/// Clients, timelines and metrics show these names.
#[test]
fn golden_states() {
    let words =
        ["in_flight", "failed_retry", "uncertain", "uncertain", "completed", "failed_terminal", "expired"];
    assert_eq!(states().map(|(_, state)| state.name()), words);
}

#[test]
fn a_lease_is_renewed_up_to_its_ceiling_and_never_shortened() {
    let ceiling = lease_until(0).ceiling;
    for (until, expected) in [
        (at(29_999), at(30_000)),
        (at(30_001), at(30_001)),
        (ceiling, ceiling),
        (at(180_001), ceiling),
        (Time::MAX, ceiling),
    ] {
        for held in [
            ClaimState::InFlight(lease_until(30_000)),
            ClaimState::Uncertain(Custody::Held(lease_until(30_000))),
        ] {
            let renewed = claim_in(held).on(ClaimEvent::Renewed { until }).unwrap();
            assert_eq!(renewed.state.lease().unwrap().until, expected, "{until:?}");
            assert_eq!(renewed.state.lease().unwrap().ceiling, ceiling);
        }
    }
}

#[test]
fn a_lease_is_over_at_its_end_and_not_before() {
    let lease = lease_until(30_000);
    assert!(!lease.is_over(at(29_999)));
    assert!(lease.is_over(at(30_000)));
}

fn any_event() -> impl Strategy<Value = ClaimEvent> {
    (0_usize..7, 0_u64..400_000).prop_map(|(which, ms)| match events()[which].1.clone() {
        ClaimEvent::Renewed { .. } => ClaimEvent::Renewed { until: at(ms) },
        ClaimEvent::TakenOver(lease) => ClaimEvent::TakenOver(Lease { until: at(ms), ..lease }),
        ClaimEvent::PutOff { .. } => ClaimEvent::PutOff { not_before: at(ms) },
        ClaimEvent::Doubted { .. } => ClaimEvent::Doubted { not_before: at(ms) },
        ClaimEvent::Aged { .. } => ClaimEvent::Aged { tombstone_until: at(ms) },
        settled @ (ClaimEvent::Completed(_) | ClaimEvent::Failed(_)) => settled,
    })
}

proptest! {
    #[test]
    fn no_walk_lowers_a_fence_or_leaves_a_final_state(
        start in 0_usize..7,
        walk in prop::collection::vec(any_event(), 1..40),
    ) {
        let mut claim = claim_in(states()[start].1.clone());
        for event in walk {
            let Ok(next) = claim.on(event.clone()) else { continue };
            prop_assert!(claim.may_become(&next), "{claim:?} {event:?}");
            prop_assert_eq!(next.revision, claim.revision + 1);
            let handed_over = matches!(event, ClaimEvent::TakenOver(_));
            prop_assert_eq!(next.fence, claim.fence + u64::from(handed_over));
            prop_assert_eq!(next.attempts, claim.attempts + u32::from(handed_over));
            match &claim.state {
                ClaimState::Completed(_) | ClaimState::FailedTerminal(_) => {
                    prop_assert!(matches!(next.state, ClaimState::Expired { .. }), "left its end: {next:?}");
                }
                ClaimState::Expired { .. } => prop_assert!(false, "the state is final: {next:?}"),
                ClaimState::Uncertain(_) => {
                    let open = matches!(next.state, ClaimState::InFlight(_) | ClaimState::FailedRetry { .. });
                    prop_assert!(!open, "doubt was forgotten: {next:?}");
                }
                ClaimState::InFlight(_) | ClaimState::FailedRetry { .. } => {}
            }
            let same = Claim {
                state: claim.state.clone(),
                fence: claim.fence,
                attempts: claim.attempts,
                revision: claim.revision,
                ..next.clone()
            };
            prop_assert_eq!(&same, &claim, "an event changed more than it may");
            claim = next;
        }
    }
}

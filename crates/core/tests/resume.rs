//! Takeovers: a higher fence, a new due time, and no certainty about a lost holder's calls.

mod given;

use counterfoil_core::audit::{AuditKind, record_id};
use counterfoil_core::idempotency::claim::{Claim, ClaimState, Custody, IllegalMove, LeasePolicy};
use counterfoil_core::outbox::{History, Outbox};
use counterfoil_core::payments::attempt::next::{NextCall, next, quiescent_at};
use counterfoil_core::payments::attempt::resume::{Resumption, take_over};
use counterfoil_core::payments::provider::Rules;
use counterfoil_core::types::id::Holder;
use counterfoil_core::types::time::{Span, Time};
use given::{at, claim_in, lease_until, outbox, states};

const POLICY: LeasePolicy = LeasePolicy { lease: Span::from_ms(30_000), ceiling: Span::from_ms(180_000) };
const HEIR: Holder = Holder { slot: 5, epoch: 3 };

fn resume(claim: &Claim, outbox: &Outbox, now: Time) -> Result<Resumption, IllegalMove> {
    take_over(claim, outbox, POLICY, HEIR, now, 42)
}

#[test]
fn open_claims_are_taken_over_and_ended_ones_are_not() {
    for (name, state) in states() {
        let claim = claim_in(state);
        let resumed = resume(&claim, &outbox(), at(40_000));
        if matches!(name, "completed" | "failed_terminal" | "expired") {
            let refused = IllegalMove { from: name, event: "taken_over" };
            assert_eq!(resumed, Err(refused));
            continue;
        }
        let resumed = resumed.unwrap();
        let lease = POLICY.grant(HEIR, at(40_000));
        let state = match name {
            "waiting" | "held" => ClaimState::Uncertain(Custody::Held(lease)),
            _ => ClaimState::InFlight(lease),
        };
        let expected = Claim {
            state,
            fence: claim.fence + 1,
            attempts: claim.attempts + 1,
            revision: claim.revision + 1,
            ..claim.clone()
        };
        assert_eq!(resumed.claim, expected, "{name}");
        assert!(claim.may_become(&resumed.claim));
    }
}

#[test]
fn the_work_is_due_at_the_end_of_the_new_lease() {
    for (name, state) in states().into_iter().take(4) {
        let resumed = resume(&claim_in(state), &outbox(), at(40_000)).unwrap();
        let history = resumed.outbox.history;
        let expected = Outbox { due_at: at(70_000), revision: 2, history, ..outbox() };
        assert_eq!(resumed.outbox, expected, "{name}");
        assert_eq!(resumed.outbox.due_at, resumed.claim.state.lease().unwrap().until);
    }
}

#[test]
fn a_lost_holder_may_call_until_the_takeover() {
    // The lease ended before, ends exactly then, or still runs (its holder is known to have ended).
    for now in [at(40_000), at(30_000), at(10_000)] {
        for state in [
            ClaimState::InFlight(lease_until(30_000)),
            ClaimState::Uncertain(Custody::Held(lease_until(30_000))),
        ] {
            let before = outbox();
            let resumed = resume(&claim_in(state), &before, now).unwrap();
            let expected = History { unknown: true, last_sent_at: now, ..before.history };
            assert_eq!(resumed.outbox.history, expected, "at {now:?}");
        }
    }
}

/// The last call begins within the lease. It leaves, executes and becomes visible as late as the
/// rules allow.
#[test]
fn not_found_is_no_proof_while_a_call_begun_under_the_lost_lease_may_be_unseen() {
    let rules = Rules {
        dedup_window: None,
        stores_errors: false,
        reexecutes_errors: false,
        queryable: true,
        send_within: Span::from_ms(20_000),
        late_delivery: Span::from_ms(120_000),
        query_lag: Span::from_ms(60_000),
        key_bytes_max: 64,
    };
    let lease = lease_until(30_000);
    let begun = lease.until.minus(Span::from_ms(1));
    let executed = begun.plus(rules.send_within).plus(rules.late_delivery);
    let visible = executed.plus(rules.query_lag);
    let heir = resume(&claim_in(ClaimState::InFlight(lease)), &outbox(), lease.until).unwrap();
    let quiet_at = quiescent_at(&rules, &heir.outbox.history);
    assert_eq!(quiet_at, at(230_001));
    for now in [lease.until, executed, visible] {
        assert_eq!(next(&rules, &heir.outbox, heir.claim.attempts, now), NextCall::Wait(quiet_at), "{now:?}");
    }
    assert_eq!(next(&rules, &heir.outbox, heir.claim.attempts, quiet_at), NextCall::Query);
}

#[test]
fn work_without_a_holder_stays_certain() {
    let waiting = [
        ClaimState::FailedRetry { not_before: at(500) },
        ClaimState::Uncertain(Custody::Waiting { not_before: at(500) }),
    ];
    for state in waiting {
        for unknown in [false, true] {
            let mut before = outbox();
            before.history = History {
                generation: 3,
                idle_calls: 2,
                unknown,
                server_errors: 1,
                first_sent_at: at(100),
                last_sent_at: at(200),
            };
            let resumed = resume(&claim_in(state.clone()), &before, at(40_000)).unwrap();
            assert_eq!(resumed.outbox.history, before.history);
        }
    }
}

#[test]
fn the_audit_record_names_the_state_before() {
    let claim = claim_in(ClaimState::InFlight(lease_until(30_000)));
    let audit = resume(&claim, &outbox(), at(40_000)).unwrap().audit;
    assert_eq!(audit.id, record_id(at(40_000), claim.revision + 1, 42));
    assert_eq!((audit.tenant, audit.subject), (claim.tenant, claim.subject));
    assert_eq!((audit.at, audit.fence), (at(40_000), claim.fence + 1));
    assert_eq!(audit.kind, AuditKind::TakenOver);
    assert_eq!(audit.detail, "from=in_flight attempt=4");
}

#[test]
fn a_takeover_can_be_taken_over() {
    let claim = claim_in(ClaimState::FailedRetry { not_before: at(500) });
    let first = resume(&claim, &outbox(), at(1_000)).unwrap();
    assert!(!first.outbox.history.unknown);
    let second = resume(&first.claim, &first.outbox, at(31_000)).unwrap();
    assert_eq!(second.claim.fence, claim.fence + 2);
    assert_eq!(second.outbox.revision, 3);
    assert!(second.outbox.history.unknown, "the first heir may have called");
    assert_eq!(second.outbox.history.last_sent_at, at(31_000));
}

//! A hint only advances a due time. It changes no lease, no proof and no count.

mod given;

use counterfoil_core::idempotency::claim::{ClaimState, Custody};
use counterfoil_core::outbox::{History, Outbox, ParkReason, Payment};
use counterfoil_core::payments::attempt::hint::hint;
use counterfoil_core::payments::attempt::next::quiescent_at;
use counterfoil_core::payments::provider::Rules;
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::id::{ChargeId, PayoutId};
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_core::types::time::{Span, Time};
use given::{at, claim_in, lease_until, outbox, states};

const REMEMBERS: Rules = Rules {
    dedup_window: Some(Span::from_ms(86_400_000)),
    stores_errors: true,
    reexecutes_errors: false,
    queryable: true,
    send_within: Span::from_ms(20_000),
    late_delivery: Span::from_ms(120_000),
    query_lag: Span::from_ms(60_000),
    key_bytes_max: 64,
};

/// An outbox row in doubt, due later.
fn doubted() -> Outbox {
    let history = History { unknown: true, last_sent_at: at(0), ..History::begun(at(0)) };
    Outbox { due_at: at(30_000), history, ..outbox() }
}

fn waiting() -> ClaimState {
    ClaimState::Uncertain(Custody::Waiting { not_before: at(30_000) })
}

fn hinted(rules: &Rules, state: ClaimState, work: &Outbox, now: Time) -> Option<Outbox> {
    hint(rules, &claim_in(state), work, now)
}

#[test]
fn a_hint_advances_only_waiting_work_in_doubt() {
    for (name, state) in states() {
        let moved = hinted(&REMEMBERS, state, &doubted(), at(1_000));
        assert_eq!(moved.is_some(), name == "waiting", "{name}");
    }
}

#[test]
fn a_hint_never_touches_leased_work() {
    for now in [at(1_000), at(29_999), at(30_000), at(40_000)] {
        for state in [
            ClaimState::InFlight(lease_until(30_000)),
            ClaimState::Uncertain(Custody::Held(lease_until(30_000))),
        ] {
            assert_eq!(hinted(&REMEMBERS, state, &doubted(), now), None, "{now:?}");
        }
    }
}

#[test]
fn a_hint_leaves_work_without_effects_alone() {
    let idle = Outbox { history: History { idle_calls: 2, ..History::begun(at(0)) }, ..doubted() };
    for state in [ClaimState::FailedRetry { not_before: at(30_000) }, waiting()] {
        assert_eq!(hinted(&REMEMBERS, state, &idle, at(1_000)), None);
    }
}

#[test]
fn a_hint_leaves_parked_work_alone() {
    let parked = Outbox { parked: Some(ParkReason::NoEvidence), due_at: Time::MAX, ..doubted() };
    assert_eq!(hinted(&REMEMBERS, waiting(), &parked, at(1_000)), None);
    let silent = Rules { dedup_window: None, queryable: false, ..REMEMBERS };
    assert_eq!(hinted(&silent, waiting(), &doubted(), at(1_000)), None, "nor is it made a human's sooner");
}

/// The due time of such a row is the bound that "not found" depends on.
#[test]
fn quiescence_is_not_shortened_by_a_millisecond() {
    let forgets = Rules { dedup_window: None, ..REMEMBERS };
    let repeats = Rules { reexecutes_errors: true, ..REMEMBERS };
    for rules in [forgets, repeats] {
        let quiet_at = quiescent_at(&rules, &doubted().history);
        let work = Outbox { due_at: quiet_at.plus(Span::from_ms(5_000)), ..doubted() };
        for ms in (0..quiet_at.since(at(0)).ms()).step_by(97).chain([quiet_at.since(at(0)).ms() - 1]) {
            assert_eq!(hinted(&rules, waiting(), &work, at(ms)), None, "{ms}");
        }
        let moved = hinted(&rules, waiting(), &work, quiet_at).unwrap();
        assert_eq!(moved.due_at, quiet_at, "only the pause after it is cut");
    }
}

#[test]
fn past_half_the_window_quiescence_counts_again() {
    let sent = 43_200_000;
    let late = History { last_sent_at: at(sent), ..doubted().history };
    let work = Outbox { due_at: at(sent + 900_000), history: late, ..doubted() };
    assert_eq!(hinted(&REMEMBERS, waiting(), &work, at(sent + 1)), None);
    assert!(hinted(&REMEMBERS, waiting(), &work, quiescent_at(&REMEMBERS, &late)).is_some());
}

#[test]
fn hints_do_not_use_up_the_errors_before_parking() {
    let mute = Rules { queryable: false, ..REMEMBERS };
    let after = |server_errors| {
        let history = History { server_errors, ..doubted().history };
        hinted(&mute, waiting(), &Outbox { history, ..doubted() }, at(1_000)).is_some()
    };
    assert_eq!([0, 1, 2, 3, 19, 20].map(after), [true, true, false, false, false, false]);
    let history = History { server_errors: 20, ..doubted().history };
    let asked = hinted(&REMEMBERS, waiting(), &Outbox { history, ..doubted() }, at(1_000));
    assert!(asked.is_some(), "a query uses up no attempt");
}

#[test]
fn work_already_due_is_unchanged() {
    assert_eq!(hinted(&REMEMBERS, waiting(), &doubted(), at(30_000)), None);
    assert_eq!(hinted(&REMEMBERS, waiting(), &doubted(), at(30_001)), None);
}

#[test]
fn only_the_due_time_changes() {
    let before = doubted();
    let after = hinted(&REMEMBERS, waiting(), &before, at(1_000)).unwrap();
    assert_eq!(after, Outbox { due_at: at(1_000), revision: before.revision + 1, ..before.clone() });
    assert!(before.may_become(&after));
    assert_eq!(hinted(&REMEMBERS, waiting(), &after, at(1_000)), None, "a second hint finds it due");
}

#[test]
fn a_payment_is_known_by_its_own_reference_only() {
    let references = References::new(MacKey::new(&[42; 32]));
    for payment in [Payment::Charge(ChargeId::from_i64(7)), Payment::Payout(PayoutId::from_i64(7))] {
        let text = payment.reference(&references);
        assert_eq!(Payment::open(&references, text.as_str()), Some(payment));
        assert_eq!(Payment::open(&References::new(MacKey::new(&[1; 32])), text.as_str()), None);
    }
    for other in [ReferenceKind::Account, ReferenceKind::Refund, ReferenceKind::Transfer] {
        assert_eq!(Payment::open(&references, references.seal(other, 7).as_str()), None);
    }
    assert_eq!(Payment::open(&references, ""), None);
}

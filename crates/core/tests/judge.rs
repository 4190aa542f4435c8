//! Verdicts on provider answers. A call that may have charged never fails by counting, and answers
//! about other payments are not believed.

#![allow(clippy::unwrap_used, reason = "an invalid fixture must stop the test")]

mod given;

use counterfoil_core::outbox::{History, ParkReason};
use counterfoil_core::payments::attempt::judge::{
    Attempt, AttemptVerdict, judge_held_back, judge_outcome, judge_query,
};
use counterfoil_core::payments::attempt::next::quiescent_at;
use counterfoil_core::payments::charge::{FailureCode, PaymentFailure};
use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, LookupResult, ProviderFault, ProviderOutcome, ProviderStep, Rejection, Rules,
    Stands,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::time::{Span, Time};
use given::at;

const REFERENCE: &str = "ch_ours";
const NOW: Time = at(5_000);
const ATTEMPTS_MAX: u32 = 3;
const RULES: Rules = Rules {
    dedup_window: Some(Span::from_ms(86_400_000)),
    stores_errors: true,
    reexecutes_errors: false,
    queryable: true,
    send_within: Span::from_ms(20_000),
    late_delivery: Span::from_ms(60_000),
    query_lag: Span::from_ms(30_000),
    key_bytes_max: 255,
};
const CAUSES: [Cause; 5] =
    [Cause::Timeout, Cause::Cut, Cause::ServerError, Cause::InProgress, Cause::Unreadable];

fn known(unknown: bool, idle_calls: u32) -> History {
    History { unknown, idle_calls, ..History::begun(at(0)) }
}

fn usd() -> Asset {
    Asset::parse("USD").unwrap()
}

fn attempt(history: &History) -> Attempt<'_> {
    Attempt {
        step: ProviderStep::Charge,
        amount_minor: 1_250,
        asset: usd(),
        history,
        reference: REFERENCE,
        attempts_max: ATTEMPTS_MAX,
        now: NOW,
    }
}

fn judged(history: &History, outcome: &ProviderOutcome) -> AttemptVerdict {
    judge_outcome(attempt(history), &RULES, outcome)
}

fn found(history: &History, found: &LookupResult, now: Time) -> AttemptVerdict {
    judge_query(Attempt { now, ..attempt(history) }, &RULES, found)
}

fn approval() -> Approval {
    Approval {
        reference: "pi_1".into(),
        stands: Stands::Captured,
        amount_minor: 1_250,
        asset: Some(usd()),
        payment: Some(REFERENCE.into()),
    }
}

fn decline() -> Decline {
    Decline {
        code: "card_declined".into(),
        decline_code: Some("insufficient_funds".into()),
        reference: Some("pi_2".into()),
    }
}

fn rejection(fault: ProviderFault) -> ProviderOutcome {
    ProviderOutcome::Rejected(Rejection { fault, code: "parameter_invalid".into() })
}

fn failed(code: FailureCode) -> AttemptVerdict {
    AttemptVerdict::Failed { failure: PaymentFailure { code, decline_code: None }, reference: None }
}

/// The verdict after a call with an unknown outcome.
fn doubted(history: &History, server_errors: u32) -> AttemptVerdict {
    let history = History { unknown: true, last_sent_at: NOW, server_errors, ..*history };
    AttemptVerdict::Doubt { not_before: NOW, history }
}

fn idle(history: &History) -> History {
    History { idle_calls: history.idle_calls + 1, ..*history }
}

#[test]
fn an_approval_is_accepted_after_any_history() {
    for unknown in [false, true] {
        let verdict = judged(&known(unknown, 9), &ProviderOutcome::Approved(approval()));
        assert_eq!(verdict, AttemptVerdict::Done(approval()));
    }
}

#[test]
fn each_step_needs_its_own_state_of_the_money() {
    let steps = [
        ProviderStep::Charge,
        ProviderStep::Authorize,
        ProviderStep::Capture,
        ProviderStep::Void,
        ProviderStep::Refund,
    ];
    let stands = [Stands::Held, Stands::Captured, Stands::Canceled, Stands::Refunded];
    for step in steps {
        for stands in stands {
            let history = known(false, 0);
            let attempt = Attempt { step, ..attempt(&history) };
            let outcome = ProviderOutcome::Approved(Approval { stands, ..approval() });
            let done = matches!(judge_outcome(attempt, &RULES, &outcome), AttemptVerdict::Done(_));
            assert_eq!(done, step.leads_to() == stands, "{step:?} {stands:?}");
        }
    }
}

#[test]
fn a_void_has_no_amount_to_compare() {
    let history = known(false, 0);
    let attempt = Attempt { step: ProviderStep::Void, ..attempt(&history) };
    let canceled = Approval { stands: Stands::Canceled, amount_minor: 0, asset: None, ..approval() };
    assert_eq!(
        judge_outcome(attempt, &RULES, &ProviderOutcome::Approved(canceled.clone())),
        AttemptVerdict::Done(canceled)
    );
}

#[test]
fn a_provider_that_keeps_no_reference_is_believed() {
    let approval = Approval { payment: None, ..approval() };
    let verdict = judged(&known(false, 0), &ProviderOutcome::Approved(approval));
    assert!(matches!(verdict, AttemptVerdict::Done(_)), "{verdict:?}");
}

/// An answer with another amount, asset, state or payment is never accepted.
#[test]
fn a_mismatching_answer_is_parked() {
    let differing: [fn(&mut Approval); 8] = [
        |approval| approval.amount_minor = 1_251,
        |approval| approval.amount_minor = 1_249,
        |approval| approval.amount_minor = -1_250,
        |approval| approval.asset = Asset::parse("EUR").ok(),
        |approval| approval.asset = None,
        |approval| approval.stands = Stands::Held,
        |approval| approval.payment = Some("ch_theirs".into()),
        |approval| approval.payment = Some(String::new()),
    ];
    for differ in differing {
        let mut approval = approval();
        differ(&mut approval);
        for unknown in [false, true] {
            let work = known(unknown, 0);
            let expected =
                AttemptVerdict::Park { reason: ParkReason::AnswerDiffers, reference: Some("pi_1".into()) };
            let outcome = ProviderOutcome::Approved(approval.clone());
            assert_eq!(judged(&work, &outcome), expected, "{approval:?}");
            let payment = LookupResult::Payment(outcome);
            assert_eq!(found(&work, &payment, NOW), expected, "by query: {approval:?}");
        }
    }
}

#[test]
fn a_decline_fails_with_the_issuers_reason() {
    for unknown in [false, true] {
        let failure = PaymentFailure {
            code: FailureCode::CardDeclined,
            decline_code: Some("insufficient_funds".into()),
        };
        let verdict = judged(&known(unknown, 0), &ProviderOutcome::Declined(decline()));
        assert_eq!(verdict, AttemptVerdict::Failed { failure, reference: Some("pi_2".into()) });
    }
}

#[test]
fn a_decline_by_a_provider_that_executes_again_is_final_only_after_quiescence() {
    for rules in [Rules { dedup_window: None, ..RULES }, Rules { reexecutes_errors: true, ..RULES }] {
        let history = known(true, 0);
        let quiet = quiescent_at(&rules, &history);
        for (now, fails) in [(quiet.minus(Span::from_ms(1)), false), (quiet, true)] {
            let attempt = Attempt { now, ..attempt(&history) };
            let verdict = judge_outcome(attempt, &rules, &ProviderOutcome::Declined(decline()));
            assert_eq!(matches!(verdict, AttemptVerdict::Failed { .. }), fails, "{verdict:?}");
            assert_eq!(matches!(verdict, AttemptVerdict::Doubt { .. }), !fails);
        }
    }
}

#[test]
fn a_rejection_fails_only_when_nothing_is_unknown() {
    for (fault, code) in [
        (ProviderFault::Request, FailureCode::GatewayRejected),
        (ProviderFault::Credentials, FailureCode::GatewayUnauthorized),
    ] {
        assert_eq!(judged(&known(false, 0), &rejection(fault)), failed(code));
        let unknown = known(true, 0);
        let history = History { server_errors: 1, ..unknown };
        let doubt = AttemptVerdict::Doubt { not_before: NOW, history };
        assert_eq!(judged(&unknown, &rejection(fault)), doubt, "an earlier call may still arrive");
    }
}

#[test]
fn calls_without_effect_are_retried_until_attempts_run_out() {
    let pause = Span::from_ms(700);
    for (outcome, at_least) in [
        (ProviderOutcome::NotSent, Span::ZERO),
        (ProviderOutcome::Busy { retry_after: None }, Span::ZERO),
        (ProviderOutcome::Busy { retry_after: Some(pause) }, pause),
    ] {
        for before in 0..ATTEMPTS_MAX - 1 {
            let work = known(false, before);
            let expected = AttemptVerdict::Retry { at_least, history: idle(&work) };
            assert_eq!(judged(&work, &outcome), expected, "after {before}");
        }
        for before in [ATTEMPTS_MAX - 1, ATTEMPTS_MAX, u32::MAX] {
            let verdict = judged(&known(false, before), &outcome);
            assert_eq!(verdict, failed(FailureCode::GatewayUnavailable), "after {before}");
        }
    }
}

#[test]
fn an_unknown_outcome_never_fails_by_counting() {
    let pause = Span::from_ms(700);
    for before in [0, ATTEMPTS_MAX - 1, ATTEMPTS_MAX, u32::MAX - 1] {
        let work = known(true, before);
        for (outcome, not_before) in [
            (ProviderOutcome::NotSent, NOW),
            (ProviderOutcome::Busy { retry_after: None }, NOW),
            (ProviderOutcome::Busy { retry_after: Some(pause) }, NOW.plus(pause)),
        ] {
            let expected = AttemptVerdict::Doubt { not_before, history: idle(&work) };
            assert_eq!(judged(&work, &outcome), expected, "{} after {before}", outcome.name());
        }
        for cause in CAUSES {
            let errors = u32::from(matches!(cause, Cause::ServerError | Cause::Unreadable));
            let verdict = judged(&work, &ProviderOutcome::Unknown(cause));
            assert_eq!(verdict, doubted(&work, errors), "{} after {before}", cause.name());
        }
    }
}

#[test]
fn an_unknown_outcome_is_doubted_from_the_first_call_on() {
    for cause in CAUSES {
        let mut work = known(false, 1);
        work.server_errors = 4;
        let errors = 4 + u32::from(matches!(cause, Cause::ServerError | Cause::Unreadable));
        let verdict = judged(&work, &ProviderOutcome::Unknown(cause));
        assert_eq!(verdict, doubted(&work, errors), "{}", cause.name());
    }
}

#[test]
fn a_call_held_back_is_not_counted() {
    let pause = Span::from_ms(700);
    let clean = known(false, ATTEMPTS_MAX);
    let retry = AttemptVerdict::Retry { at_least: pause, history: clean };
    assert_eq!(judge_held_back(attempt(&clean), pause), retry);
    let unknown = known(true, ATTEMPTS_MAX);
    let doubt = AttemptVerdict::Doubt { not_before: NOW.plus(pause), history: unknown };
    assert_eq!(judge_held_back(attempt(&unknown), pause), doubt);
}

#[test]
fn a_found_payment_settles_the_attempt() {
    let unknown = known(true, 0);
    for outcome in [ProviderOutcome::Approved(approval()), ProviderOutcome::Declined(decline())] {
        let by_call = judged(&unknown, &outcome);
        assert!(matches!(by_call, AttemptVerdict::Done(_) | AttemptVerdict::Failed { .. }));
        assert_eq!(found(&unknown, &LookupResult::Payment(outcome), NOW), by_call);
    }
}

#[test]
fn an_unfinished_payment_stays_in_doubt() {
    let unknown = known(true, ATTEMPTS_MAX);
    for outcome in [
        rejection(ProviderFault::Request),
        rejection(ProviderFault::Credentials),
        ProviderOutcome::Busy { retry_after: None },
        ProviderOutcome::NotSent,
        ProviderOutcome::Unknown(Cause::ServerError),
        ProviderOutcome::Unknown(Cause::InProgress),
    ] {
        let name = outcome.name();
        let verdict = found(&unknown, &LookupResult::Payment(outcome), NOW);
        assert_eq!(verdict, AttemptVerdict::Doubt { not_before: NOW, history: unknown }, "{name}");
    }
}

#[test]
fn an_unfinished_payment_is_parked_once_its_key_is_forgotten() {
    let unknown = known(true, 0);
    let late = unknown.first_sent_at.plus(Span::from_ms(43_200_000));
    let verdict = found(&unknown, &LookupResult::Payment(ProviderOutcome::Unknown(Cause::Unreadable)), late);
    assert!(matches!(verdict, AttemptVerdict::Park { .. }), "{verdict:?}");
}

#[test]
fn several_payments_are_parked() {
    let unknown = known(true, 0);
    let expected = AttemptVerdict::Park { reason: ParkReason::Contradiction, reference: None };
    assert_eq!(found(&unknown, &LookupResult::Several, NOW), expected);
}

#[test]
fn not_found_is_no_proof_before_quiescence() {
    let unknown = known(true, 0);
    let quiet_at = quiescent_at(&RULES, &unknown);
    assert_eq!(quiet_at, at(110_001), "sending, then late delivery, then query lag, then one more");
    for now in [at(1), at(60_000), at(90_001), at(110_000)] {
        let same = AttemptVerdict::Doubt { not_before: now, history: unknown };
        assert_eq!(found(&unknown, &LookupResult::Nothing, now), same, "{now:?}");
    }
}

#[test]
fn not_found_after_quiescence_is_proof_and_a_fresh_key() {
    let mut unknown = known(true, 2);
    unknown.server_errors = 5;
    unknown.generation = 3;
    for now in [at(110_001), at(999_999)] {
        let fresh = AttemptVerdict::Doubt {
            not_before: now,
            history: History {
                generation: 4,
                idle_calls: 2,
                unknown: false,
                server_errors: 0,
                first_sent_at: now,
                last_sent_at: now,
            },
        };
        assert_eq!(found(&unknown, &LookupResult::Nothing, now), fresh, "{now:?}");
    }
}

#[test]
fn a_failed_query_changes_nothing() {
    let unknown = known(true, 0);
    for cause in CAUSES {
        for now in [NOW, at(999_999)] {
            let same = AttemptVerdict::Doubt { not_before: now, history: unknown };
            assert_eq!(found(&unknown, &LookupResult::Unclear(cause), now), same, "{}", cause.name());
        }
    }
}

/// No answer of the provider ends an open doubt without evidence.
#[test]
fn every_verdict_keeps_the_rules() {
    let mut outcomes = vec![
        ProviderOutcome::Approved(approval()),
        ProviderOutcome::Declined(decline()),
        rejection(ProviderFault::Request),
        rejection(ProviderFault::Credentials),
        ProviderOutcome::Busy { retry_after: None },
        ProviderOutcome::NotSent,
    ];
    outcomes.extend(CAUSES.map(ProviderOutcome::Unknown));
    for outcome in outcomes {
        for unknown in [false, true] {
            for idle_calls in 0..5 {
                let work = known(unknown, idle_calls);
                let evidence = matches!(outcome, ProviderOutcome::Approved(_) | ProviderOutcome::Declined(_));
                match judged(&work, &outcome) {
                    AttemptVerdict::Done(_) | AttemptVerdict::Failed { .. } => {
                        assert!(evidence || !unknown, "{} ended a doubt", outcome.name());
                    }
                    AttemptVerdict::Retry { history, .. } => {
                        assert!(!unknown && !history.unknown);
                        assert_eq!(history.generation, 1);
                    }
                    AttemptVerdict::Doubt { history, .. } => {
                        assert!(history.unknown);
                        assert_eq!(history.generation, 1, "a call must never change the key");
                    }
                    AttemptVerdict::Park { .. } => panic!("{} is no contradiction", outcome.name()),
                }
            }
        }
    }
}

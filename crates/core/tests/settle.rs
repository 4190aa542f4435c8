//! Settling: the provider's word against what is known becomes one verdict. What may have charged is never
//! counted as failed, and nothing the provider says about another payment is believed.

mod given;

use counterfoil_core::outbox::{History, Outbox, Park};
use counterfoil_core::payments::charge::next::quiescent_at;
use counterfoil_core::payments::charge::settle::{
    Attempt, Verdict, give_to_a_human, held_back, judge_outcome, judge_query,
};
use counterfoil_core::payments::charge::{Charge, Failure, FailureCode, Status};
use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, Fault, Found, Outcome, Rejection, Rules,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::time::{Span, Time};
use given::{at, charge, outbox};

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

fn work(unknown: bool, idle_calls: u32) -> Outbox {
    let mut work = outbox();
    work.history.unknown = unknown;
    work.history.idle_calls = idle_calls;
    work
}

fn attempt<'a>(charge: &'a Charge, outbox: &'a Outbox) -> Attempt<'a> {
    Attempt { charge, outbox, reference: REFERENCE, attempts_max: ATTEMPTS_MAX, now: NOW }
}

fn judged(outbox: &Outbox, outcome: &Outcome) -> Verdict {
    judge_outcome(attempt(&charge(), outbox), &RULES, outcome)
}

fn found(outbox: &Outbox, found: &Found, now: Time) -> Verdict {
    let charge = charge();
    judge_query(Attempt { now, ..attempt(&charge, outbox) }, &RULES, found)
}

fn approval() -> Approval {
    Approval {
        reference: "pi_1".into(),
        captured: true,
        amount_minor: 1_250,
        asset: Some(charge().order.amount.asset()),
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

fn rejection(fault: Fault) -> Outcome {
    Outcome::Rejected(Rejection { fault, code: "parameter_invalid".into() })
}

fn failed(code: FailureCode) -> Verdict {
    Verdict::Fail(Charge {
        status: Status::Failed,
        failure: Some(Failure { code, decline_code: None }),
        revision: 2,
        ..charge()
    })
}

/// The doubt that follows from a call of which it is not known what it did.
fn doubted(outbox: &Outbox, server_errors: u32) -> Verdict {
    Verdict::Doubt {
        not_before: NOW,
        outbox: Outbox {
            history: History { unknown: true, last_sent_at: NOW, server_errors, ..outbox.history },
            ..outbox.clone()
        },
    }
}

fn idle(outbox: &Outbox) -> Outbox {
    Outbox {
        history: History { idle_calls: outbox.history.idle_calls + 1, ..outbox.history },
        ..outbox.clone()
    }
}

#[test]
fn an_approval_completes_whatever_was_unknown_before() {
    for unknown in [false, true] {
        let expected = Charge {
            status: Status::Succeeded,
            provider_reference: Some("pi_1".into()),
            revision: 2,
            ..charge()
        };
        let verdict = judged(&work(unknown, 9), &Outcome::Approved(approval()));
        assert_eq!(verdict, Verdict::Complete(expected));
    }
}

#[test]
fn a_hold_that_was_asked_for_requires_capture() {
    let mut held = charge();
    held.order.capture = false;
    let approval = Approval { captured: false, ..approval() };
    let work = work(false, 0);
    let Verdict::Complete(charge) =
        judge_outcome(attempt(&held, &work), &RULES, &Outcome::Approved(approval))
    else {
        panic!("a hold as asked for completes");
    };
    assert_eq!(charge.status, Status::RequiresCapture);
}

#[test]
fn a_provider_that_keeps_no_reference_is_believed() {
    let approval = Approval { payment: None, ..approval() };
    let verdict = judged(&work(false, 0), &Outcome::Approved(approval));
    assert!(matches!(verdict, Verdict::Complete(_)), "{verdict:?}");
}

/// An answer that names another amount, currency, capture or payment is never completed.
#[test]
fn an_answer_about_something_else_is_parked() {
    let differing: [fn(&mut Approval); 8] = [
        |approval| approval.amount_minor = 1_251,
        |approval| approval.amount_minor = 1_249,
        |approval| approval.amount_minor = -1_250,
        |approval| approval.asset = Asset::parse("EUR").ok(),
        |approval| approval.asset = None,
        |approval| approval.captured = false,
        |approval| approval.payment = Some("ch_theirs".into()),
        |approval| approval.payment = Some(String::new()),
    ];
    for differ in differing {
        let mut approval = approval();
        differ(&mut approval);
        for unknown in [false, true] {
            let work = work(unknown, 0);
            let expected = Verdict::Park {
                charge: Charge {
                    status: Status::Parked,
                    provider_reference: Some("pi_1".into()),
                    revision: 2,
                    ..charge()
                },
                outbox: Outbox { parked: Some(Park::AnswerDiffers), due_at: Time::MAX, ..work.clone() },
            };
            let outcome = Outcome::Approved(approval.clone());
            assert_eq!(judged(&work, &outcome), expected, "{approval:?}");
            let payment = Found::Payment(outcome);
            assert_eq!(found(&work, &payment, NOW), expected, "by query: {approval:?}");
        }
    }
}

#[test]
fn a_decline_fails_with_the_issuers_reason() {
    for unknown in [false, true] {
        let expected = Charge {
            status: Status::Failed,
            provider_reference: Some("pi_2".into()),
            failure: Some(Failure {
                code: FailureCode::CardDeclined,
                decline_code: Some("insufficient_funds".into()),
            }),
            revision: 2,
            ..charge()
        };
        let verdict = judged(&work(unknown, 0), &Outcome::Declined(decline()));
        assert_eq!(verdict, Verdict::Fail(expected));
    }
}

#[test]
fn a_decline_by_a_provider_that_executes_again_is_final_only_after_quiescence() {
    for rules in [Rules { dedup_window: None, ..RULES }, Rules { reexecutes_errors: true, ..RULES }] {
        let (charge, work) = (charge(), work(true, 0));
        let quiet = quiescent_at(&rules, &work.history);
        for (now, fails) in [(quiet.minus(Span::from_ms(1)), false), (quiet, true)] {
            let attempt = Attempt { now, ..attempt(&charge, &work) };
            let verdict = judge_outcome(attempt, &rules, &Outcome::Declined(decline()));
            assert_eq!(matches!(verdict, Verdict::Fail(_)), fails, "{verdict:?}");
            assert_eq!(matches!(verdict, Verdict::Doubt { .. }), !fails);
        }
    }
}

#[test]
fn a_rejection_fails_only_when_nothing_is_unknown() {
    for (fault, code) in [
        (Fault::Request, FailureCode::GatewayRejected),
        (Fault::Credentials, FailureCode::GatewayUnauthorized),
    ] {
        assert_eq!(judged(&work(false, 0), &rejection(fault)), failed(code));
        let unknown = work(true, 0);
        assert_eq!(judged(&unknown, &rejection(fault)), doubted(&unknown, 1));
    }
}

#[test]
fn calls_without_effect_are_tried_again_until_they_run_out() {
    let pause = Span::from_ms(700);
    for (outcome, at_least) in [
        (Outcome::NotSent, Span::ZERO),
        (Outcome::Busy { retry_after: None }, Span::ZERO),
        (Outcome::Busy { retry_after: Some(pause) }, pause),
    ] {
        for before in 0..ATTEMPTS_MAX - 1 {
            let work = work(false, before);
            let expected = Verdict::Retry { at_least, outbox: idle(&work) };
            assert_eq!(judged(&work, &outcome), expected, "after {before}");
        }
        for before in [ATTEMPTS_MAX - 1, ATTEMPTS_MAX, u32::MAX] {
            let verdict = judged(&work(false, before), &outcome);
            assert_eq!(verdict, failed(FailureCode::GatewayUnavailable), "after {before}");
        }
    }
}

#[test]
fn what_may_have_charged_never_fails_by_counting() {
    let pause = Span::from_ms(700);
    for before in [0, ATTEMPTS_MAX - 1, ATTEMPTS_MAX, u32::MAX - 1] {
        let work = work(true, before);
        for (outcome, not_before) in [
            (Outcome::NotSent, NOW),
            (Outcome::Busy { retry_after: None }, NOW),
            (Outcome::Busy { retry_after: Some(pause) }, NOW.plus(pause)),
        ] {
            let expected = Verdict::Doubt { not_before, outbox: idle(&work) };
            assert_eq!(judged(&work, &outcome), expected, "{} after {before}", outcome.name());
        }
        for cause in CAUSES {
            let errors = u32::from(matches!(cause, Cause::ServerError | Cause::Unreadable));
            let verdict = judged(&work, &Outcome::Unknown(cause));
            assert_eq!(verdict, doubted(&work, errors), "{} after {before}", cause.name());
        }
    }
}

#[test]
fn an_unknown_outcome_is_doubted_from_the_first_call_on() {
    for cause in CAUSES {
        let mut work = work(false, 1);
        work.history.server_errors = 4;
        let errors = 4 + u32::from(matches!(cause, Cause::ServerError | Cause::Unreadable));
        let verdict = judged(&work, &Outcome::Unknown(cause));
        assert_eq!(verdict, doubted(&work, errors), "{}", cause.name());
    }
}

#[test]
fn a_call_held_back_counts_for_nothing() {
    let (charge, pause) = (charge(), Span::from_ms(700));
    let clean = work(false, ATTEMPTS_MAX);
    let retry = Verdict::Retry { at_least: pause, outbox: clean.clone() };
    assert_eq!(held_back(attempt(&charge, &clean), pause), retry);
    let unknown = work(true, ATTEMPTS_MAX);
    let doubt = Verdict::Doubt { not_before: NOW.plus(pause), outbox: unknown.clone() };
    assert_eq!(held_back(attempt(&charge, &unknown), pause), doubt);
}

#[test]
fn a_query_that_finds_the_payment_settles_it() {
    let unknown = work(true, 0);
    for outcome in [Outcome::Approved(approval()), Outcome::Declined(decline())] {
        let by_call = judged(&unknown, &outcome);
        assert!(matches!(by_call, Verdict::Complete(_) | Verdict::Fail(_)));
        assert_eq!(found(&unknown, &Found::Payment(outcome), NOW), by_call);
    }
}

#[test]
fn a_payment_found_without_an_end_stays_in_doubt() {
    let unknown = work(true, ATTEMPTS_MAX);
    for outcome in [
        rejection(Fault::Request),
        rejection(Fault::Credentials),
        Outcome::Busy { retry_after: None },
        Outcome::NotSent,
        Outcome::Unknown(Cause::ServerError),
        Outcome::Unknown(Cause::InProgress),
    ] {
        let name = outcome.name();
        let verdict = found(&unknown, &Found::Payment(outcome), NOW);
        assert_eq!(verdict, Verdict::Doubt { not_before: NOW, outbox: unknown.clone() }, "{name}");
    }
}

#[test]
fn a_payment_without_an_end_needs_a_human_once_the_provider_has_forgotten_its_key() {
    let unknown = work(true, 0);
    let late = unknown.history.first_sent_at.plus(Span::from_ms(43_200_000));
    let verdict = found(&unknown, &Found::Payment(Outcome::Unknown(Cause::Unreadable)), late);
    assert!(matches!(verdict, Verdict::Park { .. }), "{verdict:?}");
}

#[test]
fn several_payments_need_a_human() {
    let unknown = work(true, 0);
    let expected = Verdict::Park {
        charge: Charge { status: Status::Parked, revision: 2, ..charge() },
        outbox: Outbox { parked: Some(Park::Contradiction), due_at: Time::MAX, ..unknown.clone() },
    };
    assert_eq!(found(&unknown, &Found::Several, NOW), expected);
}

#[test]
fn not_found_is_no_proof_before_quiescence() {
    let unknown = work(true, 0);
    let quiet_at = quiescent_at(&RULES, &unknown.history);
    assert_eq!(quiet_at, at(110_001), "sending, then late delivery, then query lag, then one more");
    for now in [at(1), at(60_000), at(90_001), at(110_000)] {
        let same = Verdict::Doubt { not_before: now, outbox: unknown.clone() };
        assert_eq!(found(&unknown, &Found::Nothing, now), same, "{now:?}");
    }
}

#[test]
fn not_found_after_quiescence_is_proof_and_a_fresh_key() {
    let mut unknown = work(true, 2);
    unknown.history.server_errors = 5;
    unknown.history.generation = 3;
    for now in [at(110_001), at(999_999)] {
        let fresh = Verdict::Doubt {
            not_before: now,
            outbox: Outbox {
                history: History {
                    generation: 4,
                    idle_calls: 2,
                    unknown: false,
                    server_errors: 0,
                    first_sent_at: now,
                    last_sent_at: now,
                },
                ..unknown.clone()
            },
        };
        assert_eq!(found(&unknown, &Found::Nothing, now), fresh, "{now:?}");
    }
}

#[test]
fn a_query_that_fails_teaches_nothing() {
    let unknown = work(true, 0);
    for cause in CAUSES {
        for now in [NOW, at(999_999)] {
            let same = Verdict::Doubt { not_before: now, outbox: unknown.clone() };
            assert_eq!(found(&unknown, &Found::Unclear(cause), now), same, "{}", cause.name());
        }
    }
}

#[test]
fn a_charge_without_evidence_goes_to_a_human_as_it_is() {
    let (mut charge, unknown) = (charge(), work(true, 0));
    charge.provider_reference = Some("pi_9".into());
    let verdict = give_to_a_human(attempt(&charge, &unknown), Park::NoEvidence);
    let expected = Verdict::Park {
        charge: Charge { status: Status::Parked, revision: 2, ..charge.clone() },
        outbox: Outbox { parked: Some(Park::NoEvidence), due_at: Time::MAX, ..unknown.clone() },
    };
    assert_eq!(verdict, expected);
}

/// Whatever the provider says: a charge only moves as stores admit, and an open doubt ends only on evidence.
#[test]
fn every_verdict_keeps_the_rules() {
    let mut outcomes = vec![
        Outcome::Approved(approval()),
        Outcome::Declined(decline()),
        rejection(Fault::Request),
        rejection(Fault::Credentials),
        Outcome::Busy { retry_after: None },
        Outcome::NotSent,
    ];
    outcomes.extend(CAUSES.map(Outcome::Unknown));
    for outcome in outcomes {
        for unknown in [false, true] {
            for idle_calls in 0..5 {
                let work = work(unknown, idle_calls);
                let evidence = matches!(outcome, Outcome::Approved(_) | Outcome::Declined(_));
                match judged(&work, &outcome) {
                    Verdict::Complete(after) | Verdict::Fail(after) => {
                        assert!(evidence || !unknown, "{} ended a doubt", outcome.name());
                        assert!(charge().status.may_become(after.status));
                        assert_eq!(after.order, charge().order);
                        assert_eq!(after.failure.is_some(), after.status == Status::Failed);
                    }
                    Verdict::Retry { outbox, .. } => {
                        assert!(!unknown && !outbox.history.unknown);
                        assert_eq!(outbox.history.generation, 1);
                    }
                    Verdict::Doubt { outbox, .. } => {
                        assert!(outbox.history.unknown);
                        assert_eq!(outbox.history.generation, 1, "a call must never change the key");
                    }
                    Verdict::Park { .. } => panic!("{} is no contradiction", outcome.name()),
                }
            }
        }
    }
}

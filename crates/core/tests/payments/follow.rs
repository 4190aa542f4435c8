//! The consequences of provider answers: changed rows, ledger actions, and the next step of the
//! work.

use crate::given::{at, charge};
use crate::{operation, split, work};
use counterfoil_core::outbox::{Flow, History, Outbox, ParkReason, Saga};
use counterfoil_core::payments::attempt::judge::AttemptVerdict;
use counterfoil_core::payments::charge::{Charge, ChargeStatus, ChargeSums, FailureCode, PaymentFailure};
use counterfoil_core::payments::flow::SagaAction;
use counterfoil_core::payments::follow::{Consequences, NextStep, follow, unpark};
use counterfoil_core::payments::operation::{self, Operation, OperationKind};
use counterfoil_core::payments::provider::{Approval, Stands};
use counterfoil_core::payments::{PaymentSubject, Work};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::OperationId;
use counterfoil_core::types::time::{Span, Time};

fn approved(stands: Stands, amount_minor: i64) -> AttemptVerdict {
    let asset = Asset::parse("USD").ok();
    AttemptVerdict::Done(Approval { reference: "pi_1".into(), stands, amount_minor, asset, payment: None })
}

fn failure(decline: &str) -> PaymentFailure {
    PaymentFailure { code: FailureCode::CardDeclined, decline_code: Some(decline.into()) }
}

fn refused(decline: &str) -> AttemptVerdict {
    AttemptVerdict::Failed { failure: failure(decline), reference: Some("pi_2".into()) }
}

fn after(work: &Work, verdict: &AttemptVerdict) -> Consequences {
    follow(work, verdict, at(10)).unwrap()
}

/// The outbox row of parked work. Its last call counts as unknown from then on.
fn given_to_a_human(work: &Work, why: ParkReason, revision: u64) -> Outbox {
    let history = History { unknown: true, last_sent_at: at(10), ..work.outbox.history };
    Outbox { parked: Some(why), due_at: Time::MAX, history, revision, ..work.outbox.clone() }
}

fn held() -> Charge {
    let working = Some(OperationId::from_i64(9));
    let provider_reference = Some("pi_1".into());
    Charge { status: ChargeStatus::RequiresCapture, working, provider_reference, revision: 5, ..charge() }
}

fn taken(sums: ChargeSums) -> Charge {
    Charge {
        status: ChargeStatus::Succeeded,
        sums,
        provider_reference: Some("pi_1".into()),
        revision: 5,
        ..charge()
    }
}

fn refunding(refunded: i64) -> Work {
    let sums = ChargeSums { captured: 1_250, refunded, refunding: 350 };
    work(Flow::Refund, taken(sums), Some(operation(OperationKind::Refund, 300)))
}

#[test]
fn an_unknown_definition_is_left_to_another_build() {
    let mut work = work(Flow::Charge, charge(), None);
    work.outbox.saga.version = 9;
    assert_eq!(follow(&work, &approved(Stands::Captured, 1_250), at(10)), None);
    assert_eq!(follow(&work, &refused("do_not_honor"), at(10)), None);
}

#[test]
fn retry_and_doubt_change_only_the_history() {
    let work = refunding(0);
    let history = History { generation: 2, idle_calls: 3, unknown: true, ..work.outbox.history };
    let outbox = Outbox { history, revision: 2, ..work.outbox.clone() };
    let at_least = Span::from_ms(700);
    let retry = after(&work, &AttemptVerdict::Retry { at_least, history });
    let next_step = NextStep::Retry { at_least, outbox: outbox.clone() };
    assert_eq!(retry, Consequences { subject: work.subject.clone(), ledger: vec![], next_step });
    let doubt = after(&work, &AttemptVerdict::Doubt { not_before: at(99), history });
    let next_step = NextStep::Doubt { not_before: at(99), outbox };
    assert_eq!(doubt, Consequences { subject: work.subject, ledger: vec![], next_step });
}

#[test]
fn a_declined_charge_keeps_its_reason_and_captures_nothing() {
    for flow in [Flow::Charge, Flow::Authorize] {
        let failed = Charge {
            status: ChargeStatus::Failed,
            failure: Some(failure("do_not_honor")),
            provider_reference: Some("pi_2".into()),
            revision: 2,
            ..charge()
        };
        let subject = PaymentSubject::Charge(failed, None);
        let next_step = NextStep::Failed(failure("do_not_honor"));
        let follow = after(&work(flow, charge(), None), &refused("do_not_honor"));
        assert_eq!(follow, Consequences { subject, ledger: vec![], next_step }, "{flow:?}");
    }
}

#[test]
fn a_known_reference_is_kept() {
    let known = Charge { provider_reference: Some("pi_1".into()), ..charge() };
    for verdict in [
        refused("do_not_honor"),
        AttemptVerdict::Park { reason: ParkReason::NoEvidence, reference: Some("pi_2".into()) },
    ] {
        let subject = after(&work(Flow::Charge, known.clone(), None), &verdict).subject;
        assert_eq!(subject.provider_reference().map(String::as_str), Some("pi_1"), "{verdict:?}");
    }
}

#[test]
fn an_approved_charge_is_captured_and_posted() {
    let done = Charge {
        status: ChargeStatus::Succeeded,
        sums: ChargeSums { captured: 1_250, ..ChargeSums::default() },
        provider_reference: Some("pi_1".into()),
        revision: 2,
        ..charge()
    };
    let follow = after(&work(Flow::Charge, charge(), None), &approved(Stands::Captured, 1_250));
    let subject = PaymentSubject::Charge(done, None);
    assert_eq!(
        follow,
        Consequences { subject, ledger: vec![SagaAction::Post], next_step: NextStep::Completed }
    );
}

#[test]
fn a_held_charge_has_captured_nothing() {
    let done = Charge {
        status: ChargeStatus::RequiresCapture,
        provider_reference: Some("pi_1".into()),
        revision: 2,
        ..charge()
    };
    let follow = after(&work(Flow::Authorize, charge(), None), &approved(Stands::Held, 1_250));
    let subject = PaymentSubject::Charge(done, None);
    assert_eq!(follow, Consequences { subject, ledger: vec![], next_step: NextStep::Completed });
}

/// The work after a transition to the next provider call.
fn work_after(work: &Work, follow: &Consequences) -> Work {
    let NextStep::CallProvider(outbox) = &follow.next_step else { panic!("{follow:?}") };
    Work { claim: work.claim.clone(), subject: follow.subject.clone(), outbox: outbox.clone() }
}

#[test]
fn a_split_charge_is_captured_with_a_fresh_history() {
    let mut authorize = work(Flow::Split, split(), None);
    authorize.outbox.history = History { generation: 4, unknown: true, ..authorize.outbox.history };
    let follow = after(&authorize, &approved(Stands::Held, 1_000));
    assert_eq!(follow.ledger, []);
    let capture = work_after(&authorize, &follow);
    let saga = Saga { progress: SagaProgress { step: 2, way: Direction::Forward }, ..authorize.outbox.saga };
    let outbox = Outbox { saga, history: History::begun(at(10)), revision: 2, ..authorize.outbox.clone() };
    assert_eq!(capture.outbox, outbox);
    let held = Charge { provider_reference: Some("pi_1".into()), revision: 2, ..split() };
    assert_eq!(capture.subject, PaymentSubject::Charge(held.clone(), None));

    let follow = after(&capture, &approved(Stands::Captured, 1_000));
    let sums = ChargeSums { captured: 1_000, ..ChargeSums::default() };
    let done = Charge { status: ChargeStatus::Succeeded, sums, revision: 3, ..held };
    let subject = PaymentSubject::Charge(done, None);
    assert_eq!(
        follow,
        Consequences { subject, ledger: vec![SagaAction::Post], next_step: NextStep::Completed }
    );
}

#[test]
fn a_failed_split_is_voided_and_keeps_the_first_reason() {
    let authorize = work(Flow::Split, split(), None);
    let capture = work_after(&authorize, &after(&authorize, &approved(Stands::Held, 1_000)));
    let follow = after(&capture, &refused("expired_card"));
    assert_eq!(follow.ledger, []);
    let void = work_after(&capture, &follow);
    assert_eq!(void.outbox.saga.progress, SagaProgress { step: 1, way: Direction::Back });

    let undone = after(&void, &approved(Stands::Canceled, 0));
    assert_eq!(
        (undone.ledger, undone.next_step),
        (vec![SagaAction::Release], NextStep::Failed(failure("expired_card")))
    );
    let failed = Charge {
        status: ChargeStatus::Failed,
        failure: Some(failure("expired_card")),
        provider_reference: Some("pi_1".into()),
        revision: 4,
        ..split()
    };
    assert_eq!(undone.subject, PaymentSubject::Charge(failed, None));

    let stuck = after(&void, &refused("already_captured"));
    let outbox = given_to_a_human(&void, ParkReason::CannotUndo, 4);
    assert_eq!((stuck.ledger, stuck.next_step), (vec![], NextStep::Parked(outbox)));
    let PaymentSubject::Charge(parked, None) = stuck.subject else { panic!("no operation") };
    assert_eq!((parked.status, parked.failure), (ChargeStatus::Parked, Some(failure("expired_card"))));
}

#[test]
fn an_undone_saga_without_a_reason_was_rejected() {
    let mut void = work(Flow::Split, split(), None);
    void.outbox.saga.progress = SagaProgress { step: 1, way: Direction::Back };
    let undone = after(&void, &approved(Stands::Canceled, 0));
    let failure = PaymentFailure { code: FailureCode::GatewayRejected, decline_code: None };
    assert_eq!(undone.next_step, NextStep::Failed(failure));
}

#[test]
fn a_refused_capture_leaves_the_charge_held() {
    for (flow, kind) in [(Flow::Capture, OperationKind::Capture), (Flow::Void, OperationKind::Void)] {
        let follow = after(&work(flow, held(), Some(operation(kind, 400))), &refused("expired_card"));
        let failed = Operation {
            status: operation::OperationStatus::Failed,
            failure: Some(failure("expired_card")),
            revision: 4,
            ..operation(kind, 400)
        };
        let charge = Charge { working: None, revision: 6, ..held() };
        let subject = PaymentSubject::Charge(charge, Some(failed));
        let next_step = NextStep::Failed(failure("expired_card"));
        assert_eq!(follow, Consequences { subject, ledger: vec![], next_step }, "{flow:?}");
    }
}

fn succeeded(kind: OperationKind, minor: i64) -> Operation {
    let provider_reference = Some("pi_1".into());
    let status = operation::OperationStatus::Succeeded;
    Operation { status, provider_reference, revision: 4, ..operation(kind, minor) }
}

#[test]
fn a_capture_records_the_providers_amount() {
    let follow = after(
        &work(Flow::Capture, held(), Some(operation(OperationKind::Capture, 400))),
        &approved(Stands::Captured, 400),
    );
    let sums = ChargeSums { captured: 400, ..ChargeSums::default() };
    let charge = Charge { status: ChargeStatus::Succeeded, working: None, sums, revision: 6, ..held() };
    let subject = PaymentSubject::Charge(charge, Some(succeeded(OperationKind::Capture, 400)));
    assert_eq!(
        follow,
        Consequences { subject, ledger: vec![SagaAction::Post], next_step: NextStep::Completed }
    );
}

#[test]
fn a_void_ends_the_charge() {
    let follow = after(
        &work(Flow::Void, held(), Some(operation(OperationKind::Void, 1_250))),
        &approved(Stands::Canceled, 0),
    );
    let charge = Charge { status: ChargeStatus::Voided, working: None, revision: 6, ..held() };
    let subject = PaymentSubject::Charge(charge, Some(succeeded(OperationKind::Void, 1_250)));
    assert_eq!(follow, Consequences { subject, ledger: vec![], next_step: NextStep::Completed });
}

#[test]
fn a_refund_moves_its_amount_from_refunding_to_refunded() {
    for (refunded, status) in [
        (0, ChargeStatus::PartiallyRefunded),
        (600, ChargeStatus::PartiallyRefunded),
        (950, ChargeStatus::Refunded),
    ] {
        let work = refunding(refunded);
        let follow = after(&work, &approved(Stands::Refunded, 300));
        let sums = ChargeSums { captured: 1_250, refunded: refunded + 300, refunding: 50 };
        let charge = Charge { status, revision: 6, ..taken(sums) };
        let subject = PaymentSubject::Charge(charge, Some(succeeded(OperationKind::Refund, 300)));
        assert_eq!(
            follow,
            Consequences { subject, ledger: vec![SagaAction::Post], next_step: NextStep::Completed }
        );
    }
}

#[test]
fn a_refused_refund_frees_its_reservation() {
    let follow = after(&refunding(600), &refused("charge_disputed"));
    let sums = ChargeSums { captured: 1_250, refunded: 600, refunding: 50 };
    let failed = Operation {
        status: operation::OperationStatus::Failed,
        failure: Some(failure("charge_disputed")),
        revision: 4,
        ..operation(OperationKind::Refund, 300)
    };
    let subject = PaymentSubject::Charge(Charge { revision: 6, ..taken(sums) }, Some(failed));
    let next_step = NextStep::Failed(failure("charge_disputed"));
    assert_eq!(follow, Consequences { subject, ledger: vec![SagaAction::Release], next_step });
}

#[test]
fn a_late_success_clears_the_failure() {
    let doubted = Operation { failure: Some(failure("unclear")), ..operation(OperationKind::Void, 1_250) };
    let follow = after(&work(Flow::Void, held(), Some(doubted)), &approved(Stands::Canceled, 0));
    assert_eq!(follow.subject.operation(), Some(&succeeded(OperationKind::Void, 1_250)));
}

#[test]
fn a_parked_refund_does_not_change_its_charge() {
    let work = refunding(600);
    let verdict = AttemptVerdict::Park { reason: ParkReason::AnswerDiffers, reference: Some("re_1".into()) };
    let follow = after(&work, &verdict);
    let PaymentSubject::Charge(charge, _) = &work.subject else { panic!("a charge") };
    let parked = Operation {
        status: operation::OperationStatus::Parked,
        provider_reference: Some("re_1".into()),
        revision: 4,
        ..operation(OperationKind::Refund, 300)
    };
    let outbox = given_to_a_human(&work, ParkReason::AnswerDiffers, 2);
    let subject = PaymentSubject::Charge(charge.clone(), Some(parked));
    assert_eq!(follow, Consequences { subject, ledger: vec![], next_step: NextStep::Parked(outbox) });
}

#[test]
fn every_other_parked_operation_parks_its_charge() {
    let verdict = AttemptVerdict::Park { reason: ParkReason::NoEvidence, reference: Some("pi_2".into()) };
    for flow in [Flow::Charge, Flow::Authorize, Flow::Split] {
        let subject = after(&work(flow, charge(), None), &verdict).subject;
        let provider_reference = Some("pi_2".into());
        let parked = Charge { status: ChargeStatus::Parked, provider_reference, revision: 2, ..charge() };
        assert_eq!(subject, PaymentSubject::Charge(parked, None), "{flow:?}");
    }
    for (flow, kind) in [(Flow::Capture, OperationKind::Capture), (Flow::Void, OperationKind::Void)] {
        let known = Operation { provider_reference: Some("pi_1".into()), ..operation(kind, 400) };
        let silent = AttemptVerdict::Park { reason: ParkReason::NoEvidence, reference: None };
        let subject = after(&work(flow, held(), Some(known.clone())), &silent).subject;
        let charge = Charge { status: ChargeStatus::Parked, revision: 6, ..held() };
        let parked = Operation { status: operation::OperationStatus::Parked, revision: 4, ..known };
        assert_eq!(subject, PaymentSubject::Charge(charge, Some(parked)), "{flow:?}");
    }
}

/// Parked work counts as unknown even if its history says otherwise.
#[test]
fn unparked_work_counts_as_sent_and_unknown() {
    let mut work = work(Flow::Charge, Charge { status: ChargeStatus::Parked, ..charge() }, None);
    work.outbox.parked = Some(ParkReason::AnswerDiffers);
    work.outbox.history.unknown = false;
    let NextStep::Doubt { not_before, outbox } = unpark(&work, at(10)).next_step else {
        panic!("unparked work is in doubt")
    };
    assert_eq!((not_before, outbox.parked), (at(10), None));
    let history = History { unknown: true, last_sent_at: at(10), ..work.outbox.history };
    assert_eq!(outbox.history, history);
}

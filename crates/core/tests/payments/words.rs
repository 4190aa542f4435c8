//! Names in stores, answers and timelines: each is pinned and parses back.

use counterfoil_core::outbox::{FLOWS, Flow, ParkReason};
use counterfoil_core::payments::charge::{ChargeStatus, FailureCode};
use counterfoil_core::payments::operation::{self, OperationKind};
use counterfoil_core::payments::payout;
use counterfoil_core::payments::provider::{
    Cause, Decline, LookupResult, ProviderFault, ProviderOutcome, Rejection,
};
use counterfoil_core::saga::progress::Direction;
use std::fmt::Debug;

/// Expects exactly the listed names to parse back.
fn holds<T: Copy + Debug + PartialEq>(
    words: &[(T, &str)],
    name: fn(T) -> &'static str,
    parse: fn(&str) -> Option<T>,
) {
    for (value, word) in words {
        assert_eq!((name(*value), parse(word)), (*word, Some(*value)));
    }
    for unknown in ["", "xyzzy", "Charge"] {
        assert_eq!(parse(unknown), None);
    }
}

#[test]
fn golden_flows_and_directions() {
    let flows = ["charge", "authorize", "split", "capture", "void", "refund", "payout"];
    let flows: Vec<_> = FLOWS.into_iter().zip(flows).collect();
    holds(&flows, Flow::name, Flow::parse);
    holds(&[(Direction::Forward, "forward"), (Direction::Back, "back")], Direction::name, Direction::parse);
}

#[test]
fn golden_reasons_to_park() {
    let parks = [
        (ParkReason::AnswerDiffers, "answer_differs"),
        (ParkReason::NoEvidence, "no_evidence"),
        (ParkReason::Contradiction, "contradiction"),
        (ParkReason::CannotUndo, "cannot_undo"),
    ];
    holds(&parks, ParkReason::name, ParkReason::parse);
}

#[test]
fn golden_statuses() {
    let charges = [
        (ChargeStatus::Processing, "processing"),
        (ChargeStatus::RequiresCapture, "requires_capture"),
        (ChargeStatus::Succeeded, "succeeded"),
        (ChargeStatus::Failed, "failed"),
        (ChargeStatus::Voided, "voided"),
        (ChargeStatus::Refunded, "refunded"),
        (ChargeStatus::PartiallyRefunded, "partially_refunded"),
        (ChargeStatus::Parked, "parked"),
    ];
    holds(&charges, ChargeStatus::name, ChargeStatus::parse);
    let operations = [
        (operation::OperationStatus::Processing, "processing"),
        (operation::OperationStatus::Succeeded, "succeeded"),
        (operation::OperationStatus::Failed, "failed"),
        (operation::OperationStatus::Parked, "parked"),
    ];
    holds(&operations, operation::OperationStatus::name, operation::OperationStatus::parse);
    let payouts = [
        (payout::PayoutStatus::Processing, "processing"),
        (payout::PayoutStatus::Paid, "paid"),
        (payout::PayoutStatus::Failed, "failed"),
        (payout::PayoutStatus::Parked, "parked"),
    ];
    holds(&payouts, payout::PayoutStatus::name, payout::PayoutStatus::parse);
}

#[test]
fn golden_kinds_of_operations() {
    let kinds = [
        (OperationKind::Capture, "capture"),
        (OperationKind::Void, "void"),
        (OperationKind::Refund, "refund"),
    ];
    holds(&kinds, OperationKind::name, OperationKind::parse);
    for (kind, word) in kinds {
        assert_eq!(kind.flow().name(), word, "an operation's flow is called as it is");
    }
}

#[test]
fn golden_failures() {
    let failures = [
        (FailureCode::CardDeclined, "card_declined"),
        (FailureCode::GatewayRejected, "gateway_rejected"),
        (FailureCode::GatewayUnauthorized, "gateway_unauthorized"),
        (FailureCode::GatewayUnavailable, "gateway_unavailable"),
        (FailureCode::MarkedFailed, "marked_failed"),
        (FailureCode::PayoutFailed, "payout_failed"),
    ];
    holds(&failures, FailureCode::name, FailureCode::parse);
}

#[test]
fn golden_outcomes_and_findings() {
    let declined = Decline { code: "card_declined".into(), decline_code: None, reference: None };
    let rejected = Rejection { fault: ProviderFault::Request, code: "parameter_invalid".into() };
    for (outcome, word) in [
        (ProviderOutcome::Declined(declined), "declined"),
        (ProviderOutcome::Rejected(rejected), "rejected"),
        (ProviderOutcome::Busy { retry_after: None }, "busy"),
        (ProviderOutcome::NotSent, "not_sent"),
        (ProviderOutcome::Unknown(Cause::Timeout), "timeout"),
        (ProviderOutcome::Unknown(Cause::Cut), "cut"),
        (ProviderOutcome::Unknown(Cause::ServerError), "server_error"),
        (ProviderOutcome::Unknown(Cause::InProgress), "in_progress"),
        (ProviderOutcome::Unknown(Cause::Unreadable), "unreadable"),
    ] {
        assert_eq!(outcome.name(), word);
        assert_eq!(LookupResult::Payment(outcome).name(), word);
    }
    assert_eq!(LookupResult::Several.name(), "several");
    assert_eq!(LookupResult::Nothing.name(), "nothing");
    assert_eq!(LookupResult::Unclear(Cause::Cut).name(), "cut");
}

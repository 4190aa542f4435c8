//! Words that stores, clients and timelines keep: each is what it is, and is read back as what it was.

use counterfoil_core::outbox::{FLOWS, Flow, Park};
use counterfoil_core::payments::charge::{FailureCode, Status};
use counterfoil_core::payments::operation::{self, Kind};
use counterfoil_core::payments::payout;
use counterfoil_core::payments::provider::{Cause, Decline, Fault, Found, Outcome, Rejection};
use counterfoil_core::saga::progress::Way;
use std::fmt::Debug;

/// Each word is read back, and none that is not there.
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
fn golden_flows_and_ways() {
    let flows = ["charge", "authorize", "split", "capture", "void", "refund", "payout"];
    let flows: Vec<_> = FLOWS.into_iter().zip(flows).collect();
    holds(&flows, Flow::name, Flow::parse);
    holds(&[(Way::Forward, "forward"), (Way::Back, "back")], Way::name, Way::parse);
}

#[test]
fn golden_reasons_to_park() {
    let parks = [
        (Park::AnswerDiffers, "answer_differs"),
        (Park::NoEvidence, "no_evidence"),
        (Park::Contradiction, "contradiction"),
        (Park::CannotUndo, "cannot_undo"),
    ];
    holds(&parks, Park::name, Park::parse);
}

#[test]
fn golden_statuses() {
    let charges = [
        (Status::Processing, "processing"),
        (Status::RequiresCapture, "requires_capture"),
        (Status::Succeeded, "succeeded"),
        (Status::Failed, "failed"),
        (Status::Voided, "voided"),
        (Status::Refunded, "refunded"),
        (Status::PartiallyRefunded, "partially_refunded"),
        (Status::Parked, "parked"),
    ];
    holds(&charges, Status::name, Status::parse);
    let operations = [
        (operation::Status::Processing, "processing"),
        (operation::Status::Succeeded, "succeeded"),
        (operation::Status::Failed, "failed"),
        (operation::Status::Parked, "parked"),
    ];
    holds(&operations, operation::Status::name, operation::Status::parse);
    let payouts = [
        (payout::Status::Processing, "processing"),
        (payout::Status::Paid, "paid"),
        (payout::Status::Failed, "failed"),
        (payout::Status::Parked, "parked"),
    ];
    holds(&payouts, payout::Status::name, payout::Status::parse);
}

#[test]
fn golden_kinds_of_operations() {
    let kinds = [(Kind::Capture, "capture"), (Kind::Void, "void"), (Kind::Refund, "refund")];
    holds(&kinds, Kind::name, Kind::parse);
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
    let rejected = Rejection { fault: Fault::Request, code: "parameter_invalid".into() };
    for (outcome, word) in [
        (Outcome::Declined(declined), "declined"),
        (Outcome::Rejected(rejected), "rejected"),
        (Outcome::Busy { retry_after: None }, "busy"),
        (Outcome::NotSent, "not_sent"),
        (Outcome::Unknown(Cause::Timeout), "timeout"),
        (Outcome::Unknown(Cause::Cut), "cut"),
        (Outcome::Unknown(Cause::ServerError), "server_error"),
        (Outcome::Unknown(Cause::InProgress), "in_progress"),
        (Outcome::Unknown(Cause::Unreadable), "unreadable"),
    ] {
        assert_eq!(outcome.name(), word);
        assert_eq!(Found::Payment(outcome).name(), word);
    }
    assert_eq!(Found::Several.name(), "several");
    assert_eq!(Found::Nothing.name(), "nothing");
    assert_eq!(Found::Unclear(Cause::Cut).name(), "cut");
}

//! The texts of refusals: the obstacle, and the alternatives.

use crate::problem::{Code, Problem};
use counterfoil_core::payments::charge::{Charge, ChargeStatus, FailureCode};
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::operation::launch::OperationRefusal;
use counterfoil_core::types::reference::Reference;
use counterfoil_engine::service::Unresolved;

/// How long a client should wait before retrying a request that is under way.
const BUSY_RETRY_MS: u64 = 1_000;

/// Another operation is under way. Nothing was stored under the key.
pub fn busy() -> Problem {
    Problem::new(Code::PaymentInProgress)
        .retry_after(BUSY_RETRY_MS / 1_000)
        .retry_after_ms(BUSY_RETRY_MS)
        .safe_new_key(true)
}

/// An operation that the charge's state does not allow.
pub(super) fn impossible(
    charge: &Charge,
    kind: OperationKind,
    why: OperationRefusal,
    id: Reference,
) -> Problem {
    let problem = Problem::new(Code::ChargeStateConflict);
    let problem = match why {
        OperationRefusal::Busy => return busy().charge(id),
        OperationRefusal::Status => problem.detail(format!(
            "The charge {} and cannot be {}; nothing was done. {}",
            describe_status(charge.status),
            past_participle(kind),
            alternative(kind, charge.status)
        )),
        OperationRefusal::Exceeds { available } => problem
            .detail(format!(
                "At most {available} {} can be {}, in minor units; nothing was done. Ask for that much or less, or leave `amount` out for all of it, and use a new key.",
                charge.order.amount.asset().code(),
                past_participle(kind)
            ))
            .amount_available(available),
    };
    problem.charge(id).charge_status(charge.status).safe_new_key(true)
}

const fn past_participle(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Capture => "captured",
        OperationKind::Void => "voided",
        OperationKind::Refund => "refunded",
    }
}

const fn describe_status(status: ChargeStatus) -> &'static str {
    match status {
        ChargeStatus::Processing => "is still being made",
        ChargeStatus::RequiresCapture => "is held and not captured yet",
        ChargeStatus::Succeeded => "is captured",
        ChargeStatus::Failed => "has failed",
        ChargeStatus::Voided => "is voided",
        ChargeStatus::Refunded => "is refunded whole",
        ChargeStatus::PartiallyRefunded => "is captured and refunded in part",
        ChargeStatus::Parked => "needs a human",
    }
}

const fn alternative(kind: OperationKind, status: ChargeStatus) -> &'static str {
    match (kind, status) {
        (_, ChargeStatus::Processing) => "Read GET /v1/charges/{id} until its status is final.",
        (_, ChargeStatus::Parked) => {
            "An operator resolves it with POST /v1/dead-letters/{id}/resolve; try again after that, with a new key."
        }
        (_, ChargeStatus::Failed) => "Nothing was taken; make a new charge.",
        (OperationKind::Capture, ChargeStatus::Voided) => "The held amount is free again; make a new charge.",
        (OperationKind::Void | OperationKind::Refund, ChargeStatus::Voided) => {
            "The held amount is free already; there is nothing left to do."
        }
        (
            OperationKind::Capture,
            ChargeStatus::Succeeded | ChargeStatus::PartiallyRefunded | ChargeStatus::Refunded,
        ) => "A charge is captured once; to take more, make a new charge.",
        (OperationKind::Void, ChargeStatus::Succeeded | ChargeStatus::PartiallyRefunded) => {
            "Give the money back with POST /v1/refunds instead."
        }
        (OperationKind::Void | OperationKind::Refund, ChargeStatus::Refunded) => {
            "All of it was given back; there is nothing left to do."
        }
        (OperationKind::Refund, ChargeStatus::RequiresCapture) => {
            "Give it up with POST /v1/charges/{id}/void instead."
        }
        // The operation fits the status; the amount does not.
        (OperationKind::Capture | OperationKind::Void, ChargeStatus::RequiresCapture)
        | (OperationKind::Refund, ChargeStatus::Succeeded | ChargeStatus::PartiallyRefunded) => {
            "Read GET /v1/charges/{id} to see where it stands."
        }
    }
}

/// The provider refused an operation on a charge.
pub(super) const fn operation_failed(code: FailureCode) -> &'static str {
    match code {
        FailureCode::CardDeclined | FailureCode::PayoutFailed => {
            "The card's issuer declined it and the charge is as it was. Read GET /v1/charges/{id}, and use a new key to try again."
        }
        FailureCode::GatewayRejected => {
            "The payment provider does not accept it and the charge is as it was. Compare GET /v1/charges/{id} with what the provider shows, and use a new key to try again."
        }
        FailureCode::GatewayUnauthorized => {
            "The payment provider does not accept this server's credentials and the charge is as it was. Tell the operator; once it is repaired, use a new key."
        }
        FailureCode::GatewayUnavailable => {
            "The payment provider could not be reached and the charge is certainly as it was. Try again later with a new key."
        }
        FailureCode::MarkedFailed => {
            "The outcome was not known; an operator has found that it did not happen, and the charge is as it was. If it is still wanted, ask again with a new key."
        }
    }
}

/// The provider refused a payout.
pub(super) const fn payout_failed(code: FailureCode) -> &'static str {
    match code {
        FailureCode::CardDeclined | FailureCode::PayoutFailed => Code::PayoutFailed.detail(),
        FailureCode::GatewayRejected => {
            "The payment provider does not accept the request and nothing was paid out; the money is available again. Compare it with what the provider allows, and use a new key to try again."
        }
        FailureCode::GatewayUnauthorized => {
            "The payment provider does not accept this server's credentials and nothing was paid out; the money is available again. Tell the operator; once it is repaired, use a new key."
        }
        FailureCode::GatewayUnavailable => {
            "The payment provider could not be reached and certainly nothing was paid out; the money is available again. Try again later with a new key."
        }
        FailureCode::MarkedFailed => {
            "The outcome was not known; an operator has found that nothing was paid out, and the money is available again. If it is still wanted, ask again with a new key."
        }
    }
}

/// The peer refused a payout.
pub(super) const fn peer_payout_failed(code: FailureCode) -> &'static str {
    match code {
        FailureCode::CardDeclined | FailureCode::PayoutFailed => {
            "An account at the peer does not allow it, `decline_code` says why, and nothing was paid out; the money is available again. Ask the peer's operator, and use a new key to try again."
        }
        FailureCode::GatewayRejected => {
            "The peer does not accept the request and nothing was paid out; the money is available again. Check that `destination` is an account there that counts this currency, and use a new key to try again."
        }
        FailureCode::GatewayUnauthorized => {
            "The peer does not accept this server's credentials and nothing was paid out; the money is available again. Tell the operator; once it is repaired, use a new key."
        }
        FailureCode::GatewayUnavailable => {
            "The peer could not be reached and certainly nothing was paid out; the money is available again. Try again later with a new key."
        }
        FailureCode::MarkedFailed => payout_failed(code),
    }
}

/// The stable word for clients to branch on.
pub(super) const fn reason(why: Unresolved) -> &'static str {
    match why {
        Unresolved::NoEvidence => "no_evidence",
        Unresolved::NotSetUp => "not_set_up",
        Unresolved::Several => "several",
        Unresolved::Executed => "executed",
        Unresolved::NothingToUndo => "nothing_to_undo",
        Unresolved::Busy => "busy",
    }
}

/// Why a dead letter cannot be resolved this way, and what to do.
pub(super) const fn unresolved(why: Unresolved) -> &'static str {
    match why {
        Unresolved::NoEvidence => {
            "The provider could not be asked, or said nothing that can be believed. Look at the provider's own records: `adopt` again once it answers, or `fail` with a reason if nothing happened there. Use a new key."
        }
        Unresolved::NotSetUp => {
            "It is bound to a peer that is not set up here as it was, so nobody can ask it. Set it up again under `[peers]`, by the place and account that `gateway.endpoint` names, and resolve it then, with a new key."
        }
        Unresolved::Several => {
            "The provider shows more than one payment with our reference. Undo there all but one, then `adopt` what is left, with a new key."
        }
        Unresolved::Executed => {
            "The provider executed it, so it cannot be marked as failed. `adopt` it with a new key; what was taken can be refunded after that."
        }
        Unresolved::NothingToUndo => {
            "There is nothing at the provider to undo, or it is too late. `fail` it with a reason if nothing happened, or `adopt` it with a new key; what was charged can be refunded after that."
        }
        Unresolved::Busy => {
            "Somebody works on it at this moment. Read GET /v1/dead-letters/{id}, and if it is still there, resolve it again with a new key."
        }
    }
}

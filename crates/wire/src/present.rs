//! The stored answers. The engine commits an answer together with its effect, and every retry gets
//! the same bytes.

pub mod conflict;

use crate::problem::{Code, Problem};
use crate::{account, asset, bulk, charge, dead_letter, payout, refund, transaction, transfer};
use bytes::Bytes;
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::payments::PaymentSubject;
use counterfoil_core::payments::charge::{Charge, ChargeStatus, FailureCode, PaymentFailure};
use counterfoil_core::payments::ledger::LedgerRefusal;
use counterfoil_core::payments::operation::launch::OperationRefusal;
use counterfoil_core::payments::operation::{Operation, OperationKind};
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::types::reference::{Reference, ReferenceKind, References};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::present::{LedgerReply, Made, Present};
use counterfoil_engine::service::{DeadLetter, Resolution, Unresolved};

/// Renders answers under the store's references.
#[derive(Clone, Debug)]
pub struct Presenter {
    references: References,
}

impl Presenter {
    /// A presenter with the references of the store that keeps the answers.
    pub const fn new(references: References) -> Presenter {
        Presenter { references }
    }

    fn payout_failure(&self, payout: &Payout, failure: &PaymentFailure) -> Problem {
        let detail = match payout.provider.peer() {
            None => conflict::payout_failed(failure.code),
            Some(_) => conflict::peer_payout_failed(failure.code),
        };
        let problem = Problem::new(failure_code(failure.code)).detail(detail);
        let problem = match failure.code {
            FailureCode::CardDeclined | FailureCode::PayoutFailed => {
                problem.decline_code(failure.decline_code.clone())
            }
            FailureCode::GatewayRejected
            | FailureCode::GatewayUnauthorized
            | FailureCode::GatewayUnavailable
            | FailureCode::MarkedFailed => problem,
        };
        problem.payout(self.references.seal(ReferenceKind::Payout, payout.id.to_i64())).safe_new_key(true)
    }

    fn charge_id(&self, charge: &Charge) -> Reference {
        self.references.seal(ReferenceKind::Charge, charge.id.to_i64())
    }
}

impl Present for Presenter {
    fn references(&self) -> &References {
        &self.references
    }

    fn charge(&self, charge: &Charge, how: Made) -> Reply {
        let id = self.charge_id(charge);
        let location = Some(format!("/v1/charges/{id}"));
        let status = match how {
            Made::Created => 201,
            Made::Changed => 200,
        };
        reply(status, location, |out| charge::write::write_as(out, charge, id.as_str(), &self.references))
    }

    fn refund(&self, refund: &Operation, charge: &Charge) -> Reply {
        let id = self.references.seal(ReferenceKind::Refund, refund.id.to_i64());
        created("/v1/refunds/", &id, |out| {
            refund::write::write_as(out, refund, charge, id.as_str(), &self.references);
        })
    }

    fn payout(&self, payout: &Payout) -> Reply {
        let id = self.references.seal(ReferenceKind::Payout, payout.id.to_i64());
        created("/v1/payouts/", &id, |out| {
            payout::write::write_as(out, payout, id.as_str(), &self.references);
        })
    }

    fn failure(&self, subject: &PaymentSubject, failure: &PaymentFailure, request: Ulid) -> Reply {
        let charge = match subject {
            PaymentSubject::Charge(charge, _) => charge,
            PaymentSubject::Payout(payout) => return refused(&self.payout_failure(payout, failure), request),
        };
        let id = self.charge_id(charge);
        let code = failure_code(failure.code);
        // The charge did not fail itself: an operation on it failed, and the charge keeps its
        // status.
        let problem = match charge.status {
            ChargeStatus::Failed => Problem::new(code),
            ChargeStatus::Processing
            | ChargeStatus::RequiresCapture
            | ChargeStatus::Succeeded
            | ChargeStatus::Voided
            | ChargeStatus::Refunded
            | ChargeStatus::PartiallyRefunded
            | ChargeStatus::Parked => Problem::new(code).detail(conflict::operation_failed(failure.code)),
        };
        let problem = match failure.code {
            FailureCode::CardDeclined | FailureCode::PayoutFailed => {
                problem.decline_code(failure.decline_code.clone()).charge(id)
            }
            FailureCode::GatewayRejected
            | FailureCode::GatewayUnauthorized
            | FailureCode::GatewayUnavailable
            | FailureCode::MarkedFailed => problem.charge(id).safe_new_key(true),
        };
        refused(&problem, request)
    }

    fn impossible(
        &self,
        charge: &Charge,
        kind: OperationKind,
        why: OperationRefusal,
        request: Ulid,
    ) -> Reply {
        refused(&conflict::impossible(charge, kind, why, self.charge_id(charge)), request)
    }

    fn resolved(&self, letter: &DeadLetter, how: Result<&Resolution, Unresolved>, request: Ulid) -> Reply {
        match how {
            Ok(how) => changed(|out| dead_letter::write_resolved(out, letter, how, &self.references)),
            Err(why) => {
                let problem = Problem::new(Code::DeadLetterUnresolved)
                    .detail(conflict::unresolved(why))
                    .dead_letter(dead_letter::write::id(letter, &self.references))
                    .reason(conflict::reason(why))
                    .payment(letter.outbox.payment, &self.references)
                    .safe_new_key(true);
                refused(&problem, request)
            }
        }
    }

    fn ledger(&self, shown: LedgerReply<'_>, request: Ulid) -> Reply {
        let seal = |kind, number| self.references.seal(kind, number);
        match shown {
            LedgerReply::Opened(opened) => {
                let id = seal(ReferenceKind::Account, opened.id.to_i64());
                created("/v1/accounts/", &id, |out| account::write::write_as(out, opened, id.as_str()))
            }
            LedgerReply::Resharded(account) => changed(|out| account::write(out, account, &self.references)),
            LedgerReply::Defined(definition) => reply(201, None, |out| asset::write(out, definition)),
            LedgerReply::Transferred(posted) => {
                let id = seal(ReferenceKind::Transfer, posted.id.to_i64());
                created("/v1/transfers/", &id, |out| transfer::write_done(out, posted, &self.references))
            }
            LedgerReply::Held(hold) => {
                let id = seal(ReferenceKind::Transfer, hold.id.to_i64());
                let made_at = hold.created_at;
                created("/v1/transfers/", &id, |out| {
                    transfer::write_held(out, hold, made_at, &self.references);
                })
            }
            LedgerReply::Ended(hold) => {
                changed(|out| transfer::write_held(out, hold, hold.created_at, &self.references))
            }
            LedgerReply::Posted(posted) => {
                let id = seal(ReferenceKind::Transaction, posted.id.to_i64());
                created("/v1/transactions/", &id, |out| {
                    transaction::write(out, posted, None, &self.references);
                })
            }
            LedgerReply::Bulk { id, results } => {
                changed(|out| bulk::write(out, id, results, &self.references))
            }
            LedgerReply::Refused(refusal) => {
                refused(&Problem::new(refusal_code(refusal)).safe_new_key(true), request)
            }
        }
    }
}

const fn failure_code(code: FailureCode) -> Code {
    match code {
        FailureCode::CardDeclined => Code::CardDeclined,
        FailureCode::GatewayRejected => Code::GatewayRejected,
        FailureCode::GatewayUnauthorized => Code::GatewayUnauthorized,
        FailureCode::GatewayUnavailable => Code::GatewayUnavailable,
        FailureCode::MarkedFailed => Code::MarkedFailed,
        FailureCode::PayoutFailed => Code::PayoutFailed,
    }
}

const fn refusal_code(refusal: LedgerRefusal) -> Code {
    match refusal {
        LedgerRefusal::InsufficientFunds => Code::InsufficientFunds,
        LedgerRefusal::CapExceeded => Code::CapExceeded,
        LedgerRefusal::AccountExists => Code::AccountExists,
        LedgerRefusal::AssetExists => Code::AssetExists,
        LedgerRefusal::AlreadyReversed => Code::AlreadyReversed,
        LedgerRefusal::NotReversible => Code::NotReversible,
        LedgerRefusal::HoldEnded => Code::HoldEnded,
    }
}

/// The answer to a creation, with the object's location.
fn created(folder: &str, id: &Reference, write: impl FnOnce(&mut Vec<u8>)) -> Reply {
    reply(201, Some(format!("{folder}{id}")), write)
}

/// The answer to a change of an existing object.
fn changed(write: impl FnOnce(&mut Vec<u8>)) -> Reply {
    reply(200, None, write)
}

fn reply(status: u16, location: Option<String>, write: impl FnOnce(&mut Vec<u8>)) -> Reply {
    let mut body = Vec::with_capacity(512);
    write(&mut body);
    Reply { status, media: ReplyMedia::Json, location: location.map(Into::into), body: Bytes::from(body) }
}

fn refused(problem: &Problem, request: Ulid) -> Reply {
    Reply {
        status: problem.code().status(),
        media: ReplyMedia::Problem,
        location: None,
        body: problem.body(request),
    }
}

#[cfg(test)]
mod tests;

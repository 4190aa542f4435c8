//! Answers in a simple form for the checks: each names its subject.

use bytes::Bytes;
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::payments::PaymentSubject;
use counterfoil_core::payments::charge::{Charge, PaymentFailure};
use counterfoil_core::payments::operation::launch::OperationRefusal;
use counterfoil_core::payments::operation::{Operation, OperationKind};
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::present::{ItemResult, LedgerReply, Made, Present};
use counterfoil_engine::service::{DeadLetter, Resolution, Unresolved};

pub struct PlainPresenter(pub References);

impl PlainPresenter {
    fn name(&self, charge: &Charge) -> String {
        self.0.seal(ReferenceKind::Charge, charge.id.to_i64()).to_string()
    }
}

impl Present for PlainPresenter {
    fn references(&self) -> &References {
        &self.0
    }

    fn charge(&self, charge: &Charge, made: Made) -> Reply {
        let body = format!(
            r#"{{"id":"{}","amount":{},"currency":"{}","status":"{}","captured":{}}}"#,
            self.name(charge),
            charge.order.amount.minor(),
            charge.order.amount.asset(),
            charge.status.name(),
            charge.sums.captured
        );
        reply(if made == Made::Created { 201 } else { 200 }, body)
    }

    fn refund(&self, refund: &Operation, charge: &Charge) -> Reply {
        let id = self.0.seal(ReferenceKind::Refund, refund.id.to_i64());
        let body = format!(
            r#"{{"id":"{id}","charge":"{}","amount":{},"status":"{}"}}"#,
            self.name(charge),
            refund.amount.minor(),
            refund.status.name()
        );
        reply(201, body)
    }

    fn payout(&self, payout: &Payout) -> Reply {
        let id = self.0.seal(ReferenceKind::Payout, payout.id.to_i64());
        let (amount, status) = (payout.order.amount, payout.status.name());
        let (minor, currency) = (amount.minor(), amount.asset());
        reply(201, format!(r#"{{"id":"{id}","amount":{minor},"currency":"{currency}","status":"{status}"}}"#))
    }

    fn failure(&self, subject: &PaymentSubject, failure: &PaymentFailure, request: Ulid) -> Reply {
        let code = failure.code.name();
        let (what, id) = match subject {
            PaymentSubject::Charge(charge, _) => ("charge", self.name(charge)),
            PaymentSubject::Payout(payout) => {
                ("payout", self.0.seal(ReferenceKind::Payout, payout.id.to_i64()).to_string())
            }
        };
        reply(402, format!(r#"{{"error":"{code}","{what}":"{id}","request_id":"req_{request}"}}"#))
    }

    fn impossible(&self, charge: &Charge, kind: OperationKind, _: OperationRefusal, _: Ulid) -> Reply {
        let (id, status) = (self.name(charge), charge.status.name());
        reply(409, format!(r#"{{"error":"{}","charge":"{id}","status":"{status}"}}"#, kind.name()))
    }

    fn resolved(&self, letter: &DeadLetter, how: Result<&Resolution, Unresolved>, _: Ulid) -> Reply {
        let id = self.0.seal(ReferenceKind::DeadLetter, letter.outbox.id.to_i64());
        reply(if how.is_ok() { 200 } else { 409 }, format!(r#"{{"id":"{id}"}}"#))
    }

    fn ledger(&self, shown: LedgerReply<'_>, _: Ulid) -> Reply {
        let made = |number: i64| reply(201, format!(r#"{{"n":"{number}"}}"#));
        match shown {
            LedgerReply::Opened(account) | LedgerReply::Resharded(account) => made(account.id.to_i64()),
            LedgerReply::Defined(_) => made(0),
            LedgerReply::Transferred(transaction) | LedgerReply::Posted(transaction) => {
                made(transaction.id.to_i64())
            }
            LedgerReply::Held(hold) | LedgerReply::Ended(hold) => made(hold.id.to_i64()),
            LedgerReply::Bulk { id, results } => {
                let words: Vec<String> = results.iter().map(word).collect();
                reply(200, format!(r#"{{"n":"{}","results":[{}]}}"#, id.to_i64(), words.join(",")))
            }
            LedgerReply::Refused(refusal) => reply(400, format!(r#"{{"error":"{}"}}"#, refusal.name())),
        }
    }
}

fn word(result: &ItemResult) -> String {
    match result {
        ItemResult::Posted(transaction) => format!(r#""{}""#, transaction.id.to_i64()),
        ItemResult::Refused(refusal) => format!(r#""{}""#, refusal.name()),
        ItemResult::Invalid(_) => r#""invalid""#.to_owned(),
    }
}

fn reply(status: u16, body: String) -> Reply {
    let media = if status < 400 { ReplyMedia::Json } else { ReplyMedia::Problem };
    Reply { status, media, location: None, body: Bytes::from(body) }
}

//! Answers in a simple form for tests.

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

pub struct Plain(pub References);

impl Present for Plain {
    fn references(&self) -> &References {
        &self.0
    }

    fn charge(&self, charge: &Charge, made: Made) -> Reply {
        let id = self.0.seal(ReferenceKind::Charge, charge.id.to_i64());
        let body = format!(
            r#"{{"id":"{id}","amount":{},"currency":"USD","status":"{}"}}"#,
            charge.order.amount.minor(),
            charge.status.name()
        );
        Reply {
            status: if made == Made::Created { 201 } else { 200 },
            media: ReplyMedia::Json,
            location: Some(format!("/v1/charges/{id}").into()),
            body: body.into(),
        }
    }

    fn refund(&self, refund: &Operation, charge: &Charge) -> Reply {
        let id = self.0.seal(ReferenceKind::Refund, refund.id.to_i64());
        let charge = self.0.seal(ReferenceKind::Charge, charge.id.to_i64());
        let body = format!(r#"{{"id":"{id}","charge":"{charge}","amount":{}}}"#, refund.amount.minor());
        Reply { status: 201, media: ReplyMedia::Json, location: None, body: body.into() }
    }

    fn impossible(
        &self,
        charge: &Charge,
        kind: OperationKind,
        why: OperationRefusal,
        request: Ulid,
    ) -> Reply {
        let status = charge.status.name();
        let body = format!("{} of a {status} charge: {why:?} request=req_{request}", kind.name());
        Reply { status: 409, media: ReplyMedia::Problem, location: None, body: body.into() }
    }

    fn resolved(&self, letter: &DeadLetter, how: Result<&Resolution, Unresolved>, _: Ulid) -> Reply {
        let status = if how.is_ok() { 200 } else { 409 };
        let body = format!("{how:?} {}", letter.subject.status());
        Reply { status, media: ReplyMedia::Json, location: None, body: body.into() }
    }

    fn payout(&self, payout: &Payout) -> Reply {
        let id = self.0.seal(ReferenceKind::Payout, payout.id.to_i64());
        let (amount, status) = (payout.order.amount.minor(), payout.status.name());
        let body = format!(r#"{{"id":"{id}","amount":{amount},"currency":"USD","status":"{status}"}}"#);
        Reply { status: 201, media: ReplyMedia::Json, location: None, body: body.into() }
    }

    fn failure(&self, subject: &PaymentSubject, failure: &PaymentFailure, request: Ulid) -> Reply {
        let (what, id) = match subject {
            PaymentSubject::Charge(charge, _) => {
                ("charge", self.0.seal(ReferenceKind::Charge, charge.id.to_i64()))
            }
            PaymentSubject::Payout(payout) => {
                ("payout", self.0.seal(ReferenceKind::Payout, payout.id.to_i64()))
            }
        };
        let code = failure.code.name();
        let body = format!(r#"{{"error":"{code}","{what}":"{id}","request_id":"req_{request}"}}"#);
        Reply { status: 402, media: ReplyMedia::Problem, location: None, body: body.into() }
    }

    fn ledger(&self, shown: LedgerReply<'_>, request: Ulid) -> Reply {
        let (status, body) = match shown {
            LedgerReply::Opened(account) => (201, format!("opened {}", account.id.to_i64())),
            LedgerReply::Resharded(account) => {
                (200, format!("resharded {} to={}", account.id.to_i64(), account.shards))
            }
            LedgerReply::Defined(definition) => (201, format!("defined {}", definition.asset)),
            LedgerReply::Transferred(transaction) => {
                (201, format!("transferred {}", transaction.id.to_i64()))
            }
            LedgerReply::Held(hold) => (201, format!("held {}", hold.id.to_i64())),
            LedgerReply::Ended(hold) => (200, format!("{} {}", hold.state.name(), hold.id.to_i64())),
            LedgerReply::Posted(transaction) => (201, format!("posted {}", transaction.id.to_i64())),
            LedgerReply::Bulk { id, results } => {
                let results: Vec<String> = results.iter().map(item).collect();
                (200, format!("bulk {}: {}", id.to_i64(), results.join(",")))
            }
            // The request id makes a second refusal differ from the first.
            LedgerReply::Refused(refusal) => (400, format!("{} req_{request}", refusal.name())),
        };
        Reply { status, media: ReplyMedia::Json, location: None, body: body.into() }
    }
}

fn item(result: &ItemResult) -> String {
    match result {
        ItemResult::Posted(transaction) => transaction.id.to_i64().to_string(),
        ItemResult::Refused(refusal) => refusal.name().to_owned(),
        ItemResult::Invalid(flaws) => {
            format!("invalid {}", flaws.first().map_or("", |flaw| flaw.pointer.as_str()))
        }
    }
}

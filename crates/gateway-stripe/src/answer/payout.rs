//! Payouts.

use super::intent::Metadata;
use super::{UNREADABLE, is_storable, read};
use counterfoil_core::payments::provider::{Approval, Cause, Decline, LookupResult, ProviderOutcome, Stands};
use counterfoil_core::types::asset::Asset;
use counterfoil_gateway::ProviderLookup;
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Deserialize)]
struct Payout<'a> {
    id: String,
    status: Status,
    amount: i64,
    #[serde(borrow, default)]
    currency: Cow<'a, str>,
    failure_code: Option<String>,
    metadata: Option<Metadata>,
}

/// The status of a payout. An accepted payout either reaches the bank or is returned later as a new
/// payment.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Status {
    Paid,
    Pending,
    InTransit,
    Failed,
    Canceled,
    #[serde(other)]
    Unsettled,
}

/// The outcome of a 2xx answer to a payout.
pub(super) fn outcome(body: &[u8], payment: &str) -> ProviderOutcome {
    read::<Payout<'_>>(body).map_or(UNREADABLE, |payout| payout.outcome(payment))
}

/// The result of looking up a payout by its provider reference.
pub(super) fn found(body: &[u8], lookup: &ProviderLookup) -> LookupResult {
    match read::<Payout<'_>>(body) {
        Some(payout) if Some(&payout.id) == lookup.reference.as_ref() => {
            LookupResult::Payment(payout.outcome(&lookup.payment))
        }
        Some(_) | None => LookupResult::Unclear(Cause::Unreadable),
    }
}

impl Payout<'_> {
    fn outcome(self, payment: &str) -> ProviderOutcome {
        let storable = is_storable(&self.id) && self.failure_code.as_deref().is_none_or(is_storable);
        // The core compares an approval with the order and holds up one of another payment. A
        // refusal of another payment is not ours.
        let ours = !self.metadata.as_ref().is_some_and(|metadata| metadata.contradicts(payment));
        match self.status {
            _ if !storable => UNREADABLE,
            Status::Paid | Status::Pending | Status::InTransit => ProviderOutcome::Approved(Approval {
                reference: self.id,
                stands: Stands::PaidOut,
                amount_minor: self.amount,
                asset: Asset::currency(&self.currency).ok(),
                payment: self.metadata.and_then(Metadata::into_payment),
            }),
            Status::Failed | Status::Canceled if ours => ProviderOutcome::Declined(Decline {
                code: if self.status == Status::Failed { "payout_failed" } else { "payout_canceled" }
                    .to_owned(),
                decline_code: self.failure_code,
                reference: Some(self.id),
            }),
            Status::Failed | Status::Canceled | Status::Unsettled => UNREADABLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(status: &str, more: &str) -> Vec<u8> {
        format!(
            r#"{{"id":"po_1","object":"payout","amount":400,"currency":"usd","status":"{status}","metadata":{{"counterfoil_payment":"po_ours"}}{more}}}"#
        )
        .into_bytes()
    }

    #[test]
    fn accepted_payouts_are_approved() {
        for status in ["paid", "pending", "in_transit"] {
            let ProviderOutcome::Approved(approval) = outcome(&body(status, ""), "po_ours") else {
                panic!("{status}")
            };
            assert_eq!((approval.reference.as_str(), approval.stands), ("po_1", Stands::PaidOut));
            assert_eq!((approval.amount_minor, approval.asset), (400, Asset::parse("USD").ok()));
            assert_eq!(approval.payment.as_deref(), Some("po_ours"));
        }
    }

    #[test]
    fn abandoned_payouts_are_declined_with_their_reason() {
        for (status, code) in [("failed", "payout_failed"), ("canceled", "payout_canceled")] {
            let expected = Decline {
                code: code.to_owned(),
                decline_code: Some("no_account".to_owned()),
                reference: Some("po_1".to_owned()),
            };
            let more = r#","failure_code":"no_account""#;
            assert_eq!(outcome(&body(status, more), "po_ours"), ProviderOutcome::Declined(expected));
            assert_eq!(outcome(&body(status, more), "po_other"), UNREADABLE, "not ours to refuse");
        }
    }

    #[test]
    fn malformed_payouts_are_unreadable() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"id":"po_1","status":"paid"}"#,
            r#"{"id":"po_1","status":"paid","amount":4.5,"currency":"usd"}"#,
            r#"{"id":"po_1","status":"paid","amount":"400","currency":"usd"}"#,
            r#"{"id":"po_\u0000","status":"paid","amount":400,"currency":"usd"}"#,
            r#"{"id":"","status":"paid","amount":400,"currency":"usd"}"#,
            r#"{"id":"po_1","status":"failed","amount":400,"currency":"usd","failure_code":"a\u0000"}"#,
            r#"{"id":"po_1","status":"lost","amount":400,"currency":"usd"}"#,
            r#"{"id":"po_1","amount":400,"currency":"usd"}"#,
        ] {
            assert_eq!(outcome(text.as_bytes(), "po_ours"), UNREADABLE, "{text}");
        }
    }
}

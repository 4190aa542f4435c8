//! A payout, as far as an outcome needs it.

use super::intent::Metadata;
use super::{UNREADABLE, is_storable, read};
use counterfoil_core::payments::provider::{Approval, Cause, Decline, Found, Outcome, Stands};
use counterfoil_core::types::asset::Asset;
use counterfoil_gateway::Lookup;
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

/// What the provider has taken on it brings to the bank, or says later that it could not: that is a new payment, the other
/// way.
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

/// What a 2xx says about a payout.
pub(super) fn outcome(body: &[u8], payment: &str) -> Outcome {
    read::<Payout<'_>>(body).map_or(UNREADABLE, |payout| payout.outcome(payment))
}

/// What a payout that was looked up by its own reference says.
pub(super) fn found(body: &[u8], lookup: &Lookup) -> Found {
    match read::<Payout<'_>>(body) {
        Some(payout) if Some(&payout.id) == lookup.reference.as_ref() => {
            Found::Payment(payout.outcome(&lookup.payment))
        }
        Some(_) | None => Found::Unclear(Cause::Unreadable),
    }
}

impl Payout<'_> {
    fn outcome(self, payment: &str) -> Outcome {
        let storable = is_storable(&self.id) && self.failure_code.as_deref().is_none_or(is_storable);
        // An approval of another payment is compared and held up by the core; a refusal of one is not ours.
        let ours = !self.metadata.as_ref().is_some_and(|metadata| metadata.contradicts(payment));
        match self.status {
            _ if !storable => UNREADABLE,
            Status::Paid | Status::Pending | Status::InTransit => Outcome::Approved(Approval {
                reference: self.id,
                stands: Stands::PaidOut,
                amount_minor: self.amount,
                asset: Asset::currency(&self.currency).ok(),
                payment: self.metadata.and_then(Metadata::into_payment),
            }),
            Status::Failed | Status::Canceled if ours => Outcome::Declined(Decline {
                code: if self.status == Status::Failed { "payout_failed" } else { "payout_canceled" }
                    .to_owned(),
                decline_code: self.failure_code,
                reference: Some(self.id),
            }),
            Status::Failed | Status::Canceled | Status::Unsettled => UNREADABLE,
        }
    }
}

//! Payment intents.

use super::refusal::CardError;
use super::{UNREADABLE, is_storable};
use counterfoil_core::payments::provider::{Approval, Decline, ProviderOutcome, ProviderStep, Stands};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::money::Money;
use serde::Deserialize;
use std::borrow::Cow;

/// The fields of a payment intent that an outcome needs. A non-integer amount makes the whole
/// answer unreadable.
#[derive(Deserialize)]
pub(super) struct Intent<'a> {
    id: String,
    pub(super) status: Status,
    amount: Option<i64>,
    amount_received: Option<i64>,
    amount_capturable: Option<i64>,
    #[serde(borrow, default)]
    currency: Cow<'a, str>,
    metadata: Option<Metadata>,
    last_payment_error: Option<CardError>,
}

/// The status of an intent. Statuses that wait for another party are not distinguished, as they are
/// not outcomes.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Succeeded,
    RequiresCapture,
    Canceled,
    RequiresPaymentMethod,
    #[serde(other)]
    Unsettled,
}

/// Our metadata.
#[derive(Deserialize)]
pub(super) struct Metadata {
    counterfoil_payment: Option<String>,
}

impl Metadata {
    pub(super) fn into_payment(self) -> Option<String> {
        self.counterfoil_payment
    }

    /// Whether the metadata names a payment other than `payment`.
    pub(super) fn contradicts(&self, payment: &str) -> bool {
        self.counterfoil_payment.as_deref().is_some_and(|named| named != payment)
    }
}

impl Intent<'_> {
    pub(super) fn payment(&self) -> Option<&str> {
        self.metadata.as_ref()?.counterfoil_payment.as_deref()
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The outcome of a step; `None` if the intent is unchanged by it.
    pub(super) fn after(self, step: ProviderStep, payment: &str, amount: Money) -> Option<ProviderOutcome> {
        match step {
            ProviderStep::Charge | ProviderStep::Authorize => Some(self.made(payment)),
            ProviderStep::Capture => self.captured(amount),
            ProviderStep::Void => self.voided(),
            ProviderStep::Refund | ProviderStep::Payout => Some(UNREADABLE),
        }
    }

    /// A capture's answer names the captured amount; without one, the whole order was captured.
    fn captured(self, asked: Money) -> Option<ProviderOutcome> {
        match self.status {
            _ if !is_storable(&self.id) => Some(UNREADABLE),
            Status::Succeeded => {
                let amount = self.amount_received.unwrap_or_else(|| asked.minor());
                Some(self.approved(Stands::Captured, Some(amount)))
            }
            Status::RequiresCapture => None,
            Status::Canceled => Some(too_late("canceled", self.id)),
            Status::RequiresPaymentMethod | Status::Unsettled => Some(UNREADABLE),
        }
    }

    fn voided(self) -> Option<ProviderOutcome> {
        match self.status {
            _ if !is_storable(&self.id) => Some(UNREADABLE),
            Status::Canceled => {
                let amount = self.amount.or(Some(0));
                Some(self.approved(Stands::Canceled, amount))
            }
            Status::RequiresCapture => None,
            Status::Succeeded => Some(too_late("captured", self.id)),
            Status::RequiresPaymentMethod | Status::Unsettled => Some(UNREADABLE),
        }
    }

    /// The outcome of creating the payment.
    pub(super) fn made(self, payment: &str) -> ProviderOutcome {
        if !is_storable(&self.id) {
            return UNREADABLE;
        }
        match self.status {
            Status::Succeeded => {
                let amount = agreed(self.amount_received, self.amount);
                self.approved(Stands::Captured, amount)
            }
            Status::RequiresCapture => {
                let amount = agreed(self.amount_capturable, self.amount);
                self.approved(Stands::Held, amount)
            }
            // The core compares an approval with the order and holds up one of another payment. A
            // refusal of another payment is not ours.
            Status::Canceled | Status::RequiresPaymentMethod
                if self.metadata.as_ref().is_some_and(|ours| ours.contradicts(payment)) =>
            {
                UNREADABLE
            }
            Status::Canceled => too_late("canceled", self.id),
            // Every intent is confirmed on creation, so its error is the result. Without an error
            // it may still be under way.
            Status::RequiresPaymentMethod => match self.last_payment_error {
                Some(error) => error.declined(Some(self.id)),
                None => UNREADABLE,
            },
            Status::Unsettled => UNREADABLE,
        }
    }

    fn approved(self, stands: Stands, amount: Option<i64>) -> ProviderOutcome {
        let Some(amount_minor) = amount else {
            return UNREADABLE;
        };
        ProviderOutcome::Approved(Approval {
            reference: self.id,
            stands,
            amount_minor,
            asset: Asset::currency(&self.currency).ok(),
            payment: self.metadata.and_then(Metadata::into_payment),
        })
    }
}

/// The payment has ended in another way, for good.
fn too_late(code: &str, reference: String) -> ProviderOutcome {
    ProviderOutcome::Declined(Decline {
        code: code.to_owned(),
        decline_code: None,
        reference: Some(reference),
    })
}

/// The amount on which the fields agree, or the only amount present. Contradicting fields give
/// zero, which no order has, so the core will not complete the payment.
fn agreed(moved: Option<i64>, asked: Option<i64>) -> Option<i64> {
    match (moved, asked) {
        (Some(moved), Some(asked)) if moved != asked => Some(0),
        (moved, asked) => moved.or(asked),
    }
}

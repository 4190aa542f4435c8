//! Payment intents: their request, their state, and its history.
//!
//! An intent changes at most once after its creation (captured or cancelled). Two states are its
//! whole history, which lets a query see the past.

mod cancel;
mod capture;
mod create;
mod read;

pub(crate) use cancel::Cancel;
pub(crate) use capture::Capture;
pub(crate) use create::Create;
pub(crate) use read::{Search, get, search};

use crate::form::Metadata;

/// A payment intent.
#[derive(Debug)]
pub(crate) struct Intent {
    pub(crate) amount: u64,
    pub(crate) currency: Currency,
    pub(crate) method: Method,
    pub(crate) capture_method: CaptureMethod,
    pub(crate) metadata: Metadata,
    pub(crate) created_ms: u64,
    /// The state at creation.
    pub(crate) made: Status,
    /// The later state and the time of the change.
    pub(crate) moved: Option<(u64, Status)>,
    /// Sum of all refunds.
    pub(crate) refunded: u64,
    /// The preceding intent of the same payment.
    pub(crate) earlier: Option<u32>,
}

/// The state of an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The card was declined.
    RequiresPaymentMethod,
    /// The money is held.
    RequiresCapture,
    /// The money was captured.
    Succeeded { received: u64 },
    /// The hold was released.
    Canceled,
}

/// The time of capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptureMethod {
    /// On confirmation.
    Automatic,
    /// On request.
    Manual,
}

/// The known test cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// Always approved.
    Visa,
    /// Always declined.
    Declined,
    /// Always declined for lack of money.
    InsufficientFunds,
}

/// Three lower-case letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Currency([u8; 3]);

impl Intent {
    /// The current state.
    pub(crate) fn status(&self) -> Status {
        self.moved.map_or(self.made, |(_, status)| status)
    }

    /// The state at a time, if the intent existed.
    pub(crate) fn status_at(&self, at_ms: u64) -> Option<Status> {
        match self.moved {
            Some((moved_ms, status)) if moved_ms <= at_ms => Some(status),
            Some(_) | None => (self.created_ms <= at_ms).then_some(self.made),
        }
    }

    /// The amount that a capture could take in that state.
    pub(crate) fn capturable(&self, status: Status) -> u64 {
        match status {
            Status::RequiresCapture => self.amount,
            Status::RequiresPaymentMethod | Status::Succeeded { .. } | Status::Canceled => 0,
        }
    }

    /// The captured amount in that state.
    pub(crate) fn received(status: Status) -> u64 {
        match status {
            Status::Succeeded { received } => received,
            Status::RequiresPaymentMethod | Status::RequiresCapture | Status::Canceled => 0,
        }
    }
}

impl Status {
    /// Stripe's name of the status.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Status::RequiresPaymentMethod => "requires_payment_method",
            Status::RequiresCapture => "requires_capture",
            Status::Succeeded { .. } => "succeeded",
            Status::Canceled => "canceled",
        }
    }
}

impl Method {
    pub(crate) fn parse(name: &str) -> Option<Method> {
        [Method::Visa, Method::Declined, Method::InsufficientFunds]
            .into_iter()
            .find(|method| method.name() == name)
    }

    /// Stripe's name of the card.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Visa => "pm_card_visa",
            Method::Declined => "pm_card_chargeDeclined",
            Method::InsufficientFunds => "pm_card_chargeDeclinedInsufficientFunds",
        }
    }

    /// The decline code and text of an intent that needs another card.
    pub(crate) fn decline(self) -> (&'static str, &'static str) {
        match self {
            Method::Visa | Method::Declined => ("generic_decline", "Your card was declined."),
            Method::InsufficientFunds => ("insufficient_funds", "Your card has insufficient funds."),
        }
    }
}

impl Currency {
    /// Parses a lower-case code.
    pub(crate) fn parse(code: &str) -> Option<Currency> {
        let letters = <[u8; 3]>::try_from(code.as_bytes()).ok()?;
        letters.iter().all(u8::is_ascii_lowercase).then_some(Currency(letters))
    }

    pub(crate) fn as_str(&self) -> &str {
        // Only ASCII letters get in, so this never falls back.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

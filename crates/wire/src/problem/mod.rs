//! Errors as clients see them: problem details (RFC 9457) with a code of a closed list, a sentence that says what
//! to do next, and the request's id.

mod code;
pub mod schema;

pub use code::Code;

use crate::json;
use crate::time::Stamp;
use bytes::Bytes;
use counterfoil_core::outbox::Payment;
use counterfoil_core::payments::charge::ChargeStatus;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::reference::{Reference, References};
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use std::borrow::Cow;

/// An error answer.
#[derive(Clone, Debug)]
pub struct Problem {
    code: Code,
    detail: Cow<'static, str>,
    retry_after_seconds: Option<u64>,
    more: Vec<More>,
}

/// A field beyond those every problem has.
#[derive(Clone, Debug)]
enum More {
    Errors(Vec<Flaw>),
    RetryAfterMs(u64),
    SafeNewKey(bool),
    OriginalRequestAt(Time),
    DeclineCode(Option<String>),
    Charge(Reference),
    Payout(Reference),
    Status(ChargeStatus),
    AmountAvailable(i64),
    DeadLetter(Reference),
    Reason(&'static str),
}

impl Problem {
    /// With the code's own sentence.
    pub const fn new(code: Code) -> Problem {
        Problem { code, detail: Cow::Borrowed(code.detail()), retry_after_seconds: None, more: Vec::new() }
    }

    /// Which error.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The `Retry-After` header, where the answer has one.
    pub const fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after_seconds
    }

    /// A sentence of its own instead of the code's.
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Problem {
        self.detail = detail.into();
        self
    }

    /// The `Retry-After` header, at least a second.
    pub fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after_seconds = Some(seconds.max(1));
        self
    }

    /// `errors`
    pub fn errors(self, errors: Vec<Flaw>) -> Problem {
        self.with(More::Errors(errors))
    }

    /// `retry_after_ms`
    pub fn retry_after_ms(self, ms: u64) -> Problem {
        self.with(More::RetryAfterMs(ms))
    }

    /// `safe_new_key`
    pub fn safe_new_key(self, safe: bool) -> Problem {
        self.with(More::SafeNewKey(safe))
    }

    /// `original_request_at`
    pub fn original_request_at(self, at: Time) -> Problem {
        self.with(More::OriginalRequestAt(at))
    }

    /// `decline_code`
    pub fn decline_code(self, code: Option<String>) -> Problem {
        self.with(More::DeclineCode(code))
    }

    /// `charge`
    pub fn charge(self, charge: Reference) -> Problem {
        self.with(More::Charge(charge))
    }

    /// `payout`
    pub fn payout(self, payout: Reference) -> Problem {
        self.with(More::Payout(payout))
    }

    /// `charge` or `payout`, whichever it is.
    pub fn payment(self, payment: Payment, references: &References) -> Problem {
        let reference = payment.reference(references);
        match payment {
            Payment::Charge(_) => self.charge(reference),
            Payment::Payout(_) => self.payout(reference),
        }
    }

    /// `charge_status`
    pub fn charge_status(self, status: ChargeStatus) -> Problem {
        self.with(More::Status(status))
    }

    /// `amount_available`
    pub fn amount_available(self, minor: i64) -> Problem {
        self.with(More::AmountAvailable(minor))
    }

    /// `dead_letter`
    pub fn dead_letter(self, letter: Reference) -> Problem {
        self.with(More::DeadLetter(letter))
    }

    /// `reason`
    pub fn reason(self, reason: &'static str) -> Problem {
        self.with(More::Reason(reason))
    }

    fn with(mut self, more: More) -> Problem {
        self.more.push(more);
        self
    }

    /// The body, for the request of that id.
    pub fn body(&self, request: Ulid) -> Bytes {
        let mut out = Vec::with_capacity(384);
        json::object(&mut out, |all| {
            all.string("type", &format!("/errors/{}", self.code.name()))
                .string("title", self.code.title())
                .count("status", u64::from(self.code.status()))
                .string("detail", &self.detail)
                .string("error", self.code.name())
                .string("request_id", &format!("req_{request}"));
            for more in &self.more {
                match more {
                    More::Errors(errors) => write_errors(all, errors.iter().cloned()),
                    More::RetryAfterMs(ms) => all.count("retry_after_ms", *ms),
                    More::SafeNewKey(safe) => all.boolean("safe_new_key", *safe),
                    More::OriginalRequestAt(at) => all.string("original_request_at", Stamp::of(*at).as_str()),
                    More::DeclineCode(code) => all.string_or_null("decline_code", code.as_deref()),
                    More::Charge(charge) => all.string("charge", charge.as_str()),
                    More::Payout(payout) => all.string("payout", payout.as_str()),
                    More::Status(status) => all.string("charge_status", status.name()),
                    More::AmountAvailable(minor) => all.integer("amount_available", *minor),
                    More::DeadLetter(letter) => all.string("dead_letter", letter.as_str()),
                    More::Reason(reason) => all.string("reason", reason),
                };
            }
        });
        Bytes::from(out)
    }
}

/// Writes the member `errors`.
pub(crate) fn write_errors<'a, 'b>(
    object: &'a mut json::Object<'b>,
    flaws: impl IntoIterator<Item = Flaw>,
) -> &'a mut json::Object<'b> {
    object.array("errors", flaws, |out, flaw| {
        json::object(out, |one| {
            one.string("pointer", &flaw.pointer).string("message", &flaw.message);
        });
    })
}

#[cfg(test)]
mod tests;

//! Errors as clients see them: problem details (RFC 9457) with a code from a closed list, a
//! sentence that says what to do next, and the request's id.

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
    more: Vec<ExtraField>,
}

/// An optional field of a problem.
#[derive(Clone, Debug)]
enum ExtraField {
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
    /// A problem with the code's default sentence.
    pub const fn new(code: Code) -> Problem {
        Problem { code, detail: Cow::Borrowed(code.detail()), retry_after_seconds: None, more: Vec::new() }
    }

    pub const fn code(&self) -> Code {
        self.code
    }

    pub const fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after_seconds
    }

    /// Replaces the code's default sentence.
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Problem {
        self.detail = detail.into();
        self
    }

    /// Adds the `Retry-After` header, at least one second.
    pub fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after_seconds = Some(seconds.max(1));
        self
    }

    /// Adds `errors`.
    pub fn errors(self, errors: Vec<Flaw>) -> Problem {
        self.with(ExtraField::Errors(errors))
    }

    /// Adds `retry_after_ms`.
    pub fn retry_after_ms(self, ms: u64) -> Problem {
        self.with(ExtraField::RetryAfterMs(ms))
    }

    /// Adds `safe_new_key`.
    pub fn safe_new_key(self, safe: bool) -> Problem {
        self.with(ExtraField::SafeNewKey(safe))
    }

    /// Adds `original_request_at`.
    pub fn original_request_at(self, at: Time) -> Problem {
        self.with(ExtraField::OriginalRequestAt(at))
    }

    /// Adds `decline_code`.
    pub fn decline_code(self, code: Option<String>) -> Problem {
        self.with(ExtraField::DeclineCode(code))
    }

    /// Adds `charge`.
    pub fn charge(self, charge: Reference) -> Problem {
        self.with(ExtraField::Charge(charge))
    }

    /// Adds `payout`.
    pub fn payout(self, payout: Reference) -> Problem {
        self.with(ExtraField::Payout(payout))
    }

    /// Adds `charge` or `payout`, depending on the payment.
    pub fn payment(self, payment: Payment, references: &References) -> Problem {
        let reference = payment.reference(references);
        match payment {
            Payment::Charge(_) => self.charge(reference),
            Payment::Payout(_) => self.payout(reference),
        }
    }

    /// Adds `charge_status`.
    pub fn charge_status(self, status: ChargeStatus) -> Problem {
        self.with(ExtraField::Status(status))
    }

    /// Adds `amount_available`.
    pub fn amount_available(self, minor: i64) -> Problem {
        self.with(ExtraField::AmountAvailable(minor))
    }

    /// Adds `dead_letter`.
    pub fn dead_letter(self, letter: Reference) -> Problem {
        self.with(ExtraField::DeadLetter(letter))
    }

    /// Adds `reason`.
    pub fn reason(self, reason: &'static str) -> Problem {
        self.with(ExtraField::Reason(reason))
    }

    fn with(mut self, more: ExtraField) -> Problem {
        self.more.push(more);
        self
    }

    /// The body, for the request with the id `request`.
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
                    ExtraField::Errors(errors) => write_errors(all, errors.iter().cloned()),
                    ExtraField::RetryAfterMs(ms) => all.count("retry_after_ms", *ms),
                    ExtraField::SafeNewKey(safe) => all.boolean("safe_new_key", *safe),
                    ExtraField::OriginalRequestAt(at) => {
                        all.string("original_request_at", Stamp::of(*at).as_str())
                    }
                    ExtraField::DeclineCode(code) => all.string_or_null("decline_code", code.as_deref()),
                    ExtraField::Charge(charge) => all.string("charge", charge.as_str()),
                    ExtraField::Payout(payout) => all.string("payout", payout.as_str()),
                    ExtraField::Status(status) => all.string("charge_status", status.name()),
                    ExtraField::AmountAvailable(minor) => all.integer("amount_available", *minor),
                    ExtraField::DeadLetter(letter) => all.string("dead_letter", letter.as_str()),
                    ExtraField::Reason(reason) => all.string("reason", reason),
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

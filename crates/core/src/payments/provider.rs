//! The answers of a provider, and the rules that resolve an unknown outcome.

use super::charge::FailureCode;
use crate::types::asset::Asset;
use crate::types::digest::MacKey;
use crate::types::id::SubjectId;
use crate::types::time::Span;

/// The outcome of a provider call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderOutcome {
    /// The provider executed the call.
    Approved(Approval),
    /// The card's issuer or the bank refused. Terminal.
    Declined(Decline),
    /// The provider refused our request as wrong. Terminal, and a reason to investigate.
    Rejected(Rejection),
    /// This call was not executed; ask again later.
    Busy {
        /// The provider's requested pause.
        retry_after: Option<Span>,
    },
    /// The request never left, so this call had no effect.
    NotSent,
    /// The call may have been executed.
    Unknown(Cause),
}

/// Why an outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No answer arrived in time.
    Timeout,
    /// The connection was cut.
    Cut,
    /// The provider answered with a 5xx.
    ServerError,
    /// The provider reports a call in progress under the same key.
    InProgress,
    /// The answer could not be parsed.
    Unreadable,
}

impl Cause {
    /// The name in audit records and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Timeout => "timeout",
            Cause::Cut => "cut",
            Cause::ServerError => "server_error",
            Cause::InProgress => "in_progress",
            Cause::Unreadable => "unreadable",
        }
    }
}

impl ProviderOutcome {
    /// The name in audit records and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            ProviderOutcome::Approved(_) => "approved",
            ProviderOutcome::Declined(_) => "declined",
            ProviderOutcome::Rejected(_) => "rejected",
            ProviderOutcome::Busy { .. } => "busy",
            ProviderOutcome::NotSent => "not_sent",
            ProviderOutcome::Unknown(cause) => cause.name(),
        }
    }
}

/// An executed payment as the provider reports it. The judge compares every field with our own
/// before it trusts the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub reference: String,
    /// The state of the money at the provider.
    pub stands: Stands,
    /// Minor units of `asset`.
    pub amount_minor: i64,
    /// `None` if the provider names an asset we do not know.
    pub asset: Option<Asset>,
    /// Our payment reference, as the provider stored it.
    pub payment: Option<String>,
}

/// The state of a payment's money at its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stands {
    /// Held for a later capture.
    Held,
    /// Captured.
    Captured,
    /// Voided before capture.
    Canceled,
    Refunded,
    /// Sent to a bank account, or arrived there.
    PaidOut,
}

/// A refusal by the issuer or the bank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decline {
    pub code: String,
    /// The issuer's reason, if given.
    pub decline_code: Option<String>,
    /// The provider's reference, where known.
    pub reference: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub fault: ProviderFault,
    pub code: String,
}

/// The faulty part of a rejected call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderFault {
    /// The provider does not accept the request's content (400, 404).
    Request,
    /// The provider does not accept our credentials (401, 403).
    Credentials,
}

/// The result of a status query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupResult {
    /// The payment exists, with this outcome.
    Payment(ProviderOutcome),
    /// More than one payment carries our reference.
    Several,
    /// The provider knows no such payment. This is proof only once the provider is quiescent.
    Nothing,
    Unclear(Cause),
}

impl LookupResult {
    /// The name in audit records and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            LookupResult::Payment(outcome) => outcome.name(),
            LookupResult::Several => "several",
            LookupResult::Nothing => "nothing",
            LookupResult::Unclear(cause) => cause.name(),
        }
    }
}

/// The part of a provider's rules needed for decisions. The gateway port keeps the full profiles as
/// data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How long the provider remembers an idempotency key; `None` without deduplication.
    pub dedup_window: Option<Span>,
    /// Whether the provider stores and replays server errors under a key.
    pub stores_errors: bool,
    /// Whether the provider executes a key again after it answered the first call with an error.
    pub reexecutes_errors: bool,
    /// Whether the provider can look up a payment by our reference.
    pub queryable: bool,
    /// The longest time between the holder's last check of its lease and the departure of a
    /// request. The connector promises this bound: waiting for a connection takes time, and nobody
    /// checks the lease again meanwhile.
    pub send_within: Span,
    /// The longest time between the departure of a request and its execution.
    pub late_delivery: Span,
    /// The delay after which a query sees an executed call.
    pub query_lag: Span,
    /// The longest accepted key.
    pub key_bytes_max: usize,
}

/// A step of a payment at its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderStep {
    /// Authorize and capture at once.
    Charge,
    /// Hold for a later capture.
    Authorize,
    /// Capture the held amount or a part of it; the rest is released.
    Capture,
    /// Release the held amount.
    Void,
    /// Return the captured amount or a part of it.
    Refund,
    /// Pay to a bank account.
    Payout,
}

impl Rules {
    /// The rules for one step: refunds and payouts cannot be looked up by our reference.
    pub const fn of(self, step: ProviderStep) -> Rules {
        match step {
            ProviderStep::Charge | ProviderStep::Authorize | ProviderStep::Capture | ProviderStep::Void => {
                self
            }
            ProviderStep::Refund | ProviderStep::Payout => Rules { queryable: false, ..self },
        }
    }
}

impl ProviderStep {
    /// The name in keys, metadata and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            ProviderStep::Charge => "charge",
            ProviderStep::Authorize => "authorize",
            ProviderStep::Capture => "capture",
            ProviderStep::Void => "void",
            ProviderStep::Refund => "refund",
            ProviderStep::Payout => "payout",
        }
    }

    /// The failure code of a decline at this step.
    pub const fn declined(self) -> FailureCode {
        match self {
            ProviderStep::Charge
            | ProviderStep::Authorize
            | ProviderStep::Capture
            | ProviderStep::Void
            | ProviderStep::Refund => FailureCode::CardDeclined,
            ProviderStep::Payout => FailureCode::PayoutFailed,
        }
    }

    /// The state of the money after this step succeeds.
    pub const fn leads_to(self) -> Stands {
        match self {
            ProviderStep::Charge | ProviderStep::Capture => Stands::Captured,
            ProviderStep::Authorize => Stands::Held,
            ProviderStep::Void => Stands::Canceled,
            ProviderStep::Refund => Stands::Refunded,
            ProviderStep::Payout => Stands::PaidOut,
        }
    }
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Derives the provider's idempotency key. The key is the same for every attempt of one operation,
/// step and generation, and independent of the client's key.
pub fn downstream_key(
    mac: &MacKey,
    of: SubjectId,
    step: ProviderStep,
    generation: u16,
    rules: &Rules,
) -> String {
    let tag = mac.tag(
        "counterfoil/downstream/1",
        &[&of.to_i64().to_be_bytes(), step.name().as_bytes(), &generation.to_be_bytes()],
    );
    let mut key = String::from("cf");
    key.extend(tag.as_bytes().iter().map(|byte| {
        let digit = usize::from(byte & 31);
        char::from(ALPHABET.get(digit).copied().unwrap_or(b'0'))
    }));
    key.truncate(rules.key_bytes_max);
    key
}

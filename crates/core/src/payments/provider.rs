//! What a provider may answer, and the rules by which an unknown outcome is resolved with it.

use super::charge::FailureCode;
use crate::types::asset::Asset;
use crate::types::digest::MacKey;
use crate::types::id::SubjectId;
use crate::types::time::Span;

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderOutcome {
    /// Executed.
    Approved(Approval),
    /// Refused by the card's issuer or the bank. Terminal.
    Declined(Decline),
    /// Refused because we asked wrongly. Terminal, and somebody should look.
    Rejected(Rejection),
    /// Not executed by this call; ask again later.
    Busy {
        /// The provider's own wish.
        retry_after: Option<Span>,
    },
    /// The request never left: nothing was executed by this call.
    NotSent,
    /// Perhaps executed.
    Unknown(Cause),
}

/// Why an outcome is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No answer in time.
    Timeout,
    /// The connection was cut.
    Cut,
    /// The provider answered with a 5xx.
    ServerError,
    /// The provider says another call with this key is under way.
    InProgress,
    /// The answer could not be understood.
    Unreadable,
}

impl Cause {
    /// The word in audit records and metrics.
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
    /// The word in audit records and metrics.
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

/// An executed payment, in the provider's words. Nothing in it is believed before it is compared with ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The provider's reference.
    pub reference: String,
    /// What has become of the money.
    pub stands: Stands,
    /// Minor units.
    pub amount_minor: i64,
    /// The asset, if we know it.
    pub asset: Option<Asset>,
    /// Our payment reference, as the provider remembers it.
    pub payment: Option<String>,
}

/// How a payment stands at its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stands {
    /// Held for capture.
    Held,
    /// Captured.
    Captured,
    /// Given up before it was captured.
    Canceled,
    /// Given back.
    Refunded,
    /// On its way to a bank account, or there.
    PaidOut,
}

/// A refusal by the issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decline {
    /// The provider's code, such as `card_declined`.
    pub code: String,
    /// The issuer's reason, where given.
    pub decline_code: Option<String>,
    /// The provider's reference, where it made one.
    pub reference: Option<String>,
}

/// A refusal of the call itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Whose credentials or whose input is at fault.
    pub fault: ProviderFault,
    /// The provider's code.
    pub code: String,
}

/// Where a rejected call went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderFault {
    /// The provider does not accept the request's content (400, 404).
    Request,
    /// The provider does not accept our credentials (401, 403).
    Credentials,
}

/// What a status query found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupResult {
    /// The payment exists, with this outcome.
    Payment(ProviderOutcome),
    /// More than one payment carries our reference.
    Several,
    /// Nothing is known. Proof only once the provider is quiescent.
    Nothing,
    /// The query itself did not succeed.
    Unclear(Cause),
}

impl LookupResult {
    /// The word in audit records and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            LookupResult::Payment(outcome) => outcome.name(),
            LookupResult::Several => "several",
            LookupResult::Nothing => "nothing",
            LookupResult::Unclear(cause) => cause.name(),
        }
    }
}

/// The rules of one provider, as far as decisions need them. Profiles are data in the gateway port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How long the provider remembers a key; nothing if it does not deduplicate.
    pub dedup_window: Option<Span>,
    /// Whether it stores and replays its own server errors under the key.
    pub stores_errors: bool,
    /// Whether it executes again under a key whose first call it answered with an error.
    pub reexecutes_errors: bool,
    /// Whether a payment can be looked up by our reference.
    pub queryable: bool,
    /// A request leaves at most this long after its holder last looked at the lease, or never. The connector's own
    /// promise, not the provider's: waiting for a slot and connecting take time, and nobody looks again in between.
    pub send_within: Span,
    /// A request is executed at most this long after it was sent.
    pub late_delivery: Span,
    /// A query sees everything executed at least this long ago.
    pub query_lag: Span,
    /// Longest key it accepts.
    pub key_bytes_max: usize,
}

/// A step of a payment at its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderStep {
    /// Authorize and capture at once.
    Charge,
    /// Hold for a later capture.
    Authorize,
    /// Take what is held, or a part of it; the rest is given up.
    Capture,
    /// Give up what is held.
    Void,
    /// Give back what was taken, or a part of it.
    Refund,
    /// Pay to a bank account.
    Payout,
}

impl Rules {
    /// The rules as they are for one step: what was refunded or paid out cannot be looked up by our reference.
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
    /// The word in keys, metadata and metrics.
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

    /// What it is called when the provider declines it.
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

    /// How the payment stands once it is done.
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

/// The key sent to the provider: the same on every attempt of one operation, step and generation, and unrelated to
/// the client's own key.
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

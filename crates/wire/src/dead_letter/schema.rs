//! The schemas of a dead letter. Tests compare the schemas with the written form.

use crate::charge::schema::Charge;
use crate::payout::schema::Payout;
use crate::refund::schema::Refund;
use utoipa::ToSchema;

/// A request to resolve a dead letter.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"resolution": "fail", "reason": "the provider's own console shows no such payment"}))]
pub struct ResolveDeadLetter {
    /// `adopt`: ask the provider and accept its answer, even if it differs from the request.
    /// `void`: undo the payment at the provider, then mark it failed. `fail`: nothing happened;
    /// mark the payment failed. `retry`: resume the work.
    pub resolution: String,
    /// For `fail`, and only for it: how you know that nothing happened. One line.
    #[schema(required = false, nullable, min_length = 1, max_length = 500)]
    pub reason: Option<String>,
}

/// Work that needs an operator.
#[derive(Debug, ToSchema)]
pub struct DeadLetter {
    /// `dl_…`
    pub id: String,
    /// `dead_letter`
    pub object: String,
    /// The interrupted work: `charge`, `authorize`, `split`, `capture`, `void`, `refund` or
    /// `payout`.
    pub flow: String,
    /// The current step; null if this release does not know the flow's definition.
    pub step: Option<String>,
    /// Why an operator is needed: `answer_differs`, `no_evidence`, `contradiction` or
    /// `cannot_undo`.
    pub reason: Option<String>,
    /// The charge concerned, `ch_…`; null for a payout.
    pub charge: Option<String>,
    /// The refund concerned, `re_…`.
    pub refund: Option<String>,
    /// The payout concerned, `po_…`.
    pub payout: Option<String>,
    /// The requested amount, in the currency's minor unit.
    pub amount: i64,
    /// ISO 4217 code, upper case.
    pub currency: String,
    /// The amount the provider may have moved without our knowledge.
    pub money_at_risk: i64,
    /// The provider that was asked to execute the work.
    pub gateway: PinnedGateway,
    /// Knowledge about the calls to the provider.
    pub attempts: Attempts,
    /// Promising resolutions, the most likely first.
    pub suggestions: Vec<String>,
    /// Path of the payment's timeline.
    pub timeline: String,
    /// When the work began.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// The provider and endpoint to which the work is bound.
#[derive(Debug, ToSchema)]
pub struct PinnedGateway {
    /// The provider's name.
    pub name: String,
    /// Scheme, host and port.
    pub endpoint: String,
    /// The provider's own reference, once issued.
    pub reference: Option<String>,
}

/// Knowledge about the calls that were made.
#[derive(Debug, ToSchema)]
pub struct Attempts {
    /// Number of the derived key in use. It changes only after proof that the previous key had no
    /// effect.
    pub generation: u16,
    /// Number of calls without any effect, for certain.
    pub idle: u32,
    /// Number of calls under the current key that the provider answered with a server error.
    pub server_errors: u32,
    /// Whether any call may have had an effect.
    pub unknown: bool,
    /// Nothing was sent under the current key before this time.
    #[schema(format = DateTime)]
    pub first_sent_at: String,
    /// Nothing was sent after this time.
    #[schema(format = DateTime)]
    pub last_sent_at: String,
}

/// The result of resolving a dead letter.
#[derive(Debug, ToSchema)]
pub struct DeadLetterResolution {
    /// `dead_letter_resolution`
    pub object: String,
    /// `dl_…`
    pub dead_letter: String,
    /// `adopt`, `void`, `fail` or `retry`.
    pub resolution: String,
    /// The resulting charge; null for a payout.
    pub charge: Option<Charge>,
    /// The resulting refund, if the dead letter was about one.
    pub refund: Option<Refund>,
    /// The resulting payout, if the dead letter was about one.
    pub payout: Option<Payout>,
}

/// Dead letters, newest first.
#[derive(Debug, ToSchema)]
pub struct DeadLetterList {
    /// `list`
    pub object: String,
    /// The dead letters on the page.
    pub data: Vec<DeadLetter>,
    /// Whether there are older dead letters.
    pub has_more: bool,
}

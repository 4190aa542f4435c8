//! The forms of a dead letter as OpenAPI describes them. A test holds them to what is written.

use crate::charge::schema::Charge;
use crate::payout::schema::Payout;
use crate::refund::schema::Refund;
use utoipa::ToSchema;

/// A request to resolve a dead letter.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"resolution": "fail", "reason": "the provider's own console shows no such payment"}))]
pub struct ResolveDeadLetter {
    /// `adopt`: ask the provider and take its word, even if it differs from what was asked for. `void`: undo it at the
    /// provider, then mark it failed. `fail`: nothing happened, mark it failed. `retry`: go on as if it had not been
    /// parked.
    pub resolution: String,
    /// How you know that nothing happened; for `fail`, and only for it. One line.
    #[schema(required = false, nullable, min_length = 1, max_length = 500)]
    pub reason: Option<String>,
}

/// Work that needs a human.
#[derive(Debug, ToSchema)]
pub struct DeadLetter {
    /// `dl_…`
    pub id: String,
    /// `dead_letter`
    pub object: String,
    /// What was under way: `charge`, `authorize`, `split`, `capture`, `void`, `refund` or `payout`.
    pub flow: String,
    /// The step it stands at; null if this release does not know the flow's definition.
    pub step: Option<String>,
    /// Why: `answer_differs`, `no_evidence`, `contradiction` or `cannot_undo`.
    pub reason: Option<String>,
    /// The charge it is about, `ch_…`; null if it is about a payout.
    pub charge: Option<String>,
    /// The refund it is about, `re_…`.
    pub refund: Option<String>,
    /// The payout it is about, `po_…`.
    pub payout: Option<String>,
    /// How much was asked for, in the currency's minor unit.
    pub amount: i64,
    /// ISO 4217 code, upper case.
    pub currency: String,
    /// What the provider may have moved without our knowing.
    pub money_at_risk: i64,
    /// Who was asked to execute it.
    pub gateway: PinnedGateway,
    /// What is known of the calls.
    pub attempts: Attempts,
    /// Resolutions that can lead somewhere, the likeliest first.
    pub suggestions: Vec<String>,
    /// Path of its whole history.
    pub timeline: String,
    /// When the work began.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// The provider and endpoint work is bound to.
#[derive(Debug, ToSchema)]
pub struct PinnedGateway {
    /// The provider.
    pub name: String,
    /// Scheme, host and port.
    pub endpoint: String,
    /// The provider's own reference, once it gave one.
    pub reference: Option<String>,
}

/// What is known of the calls that were made.
#[derive(Debug, ToSchema)]
pub struct Attempts {
    /// Which derived key is in use; it changes only after proof that the one before it had no effect.
    pub generation: u16,
    /// Calls that were made and certainly had no effect.
    pub idle: u32,
    /// Calls under the current key that the provider answered with a server error.
    pub server_errors: u32,
    /// Whether some call may have had an effect.
    pub unknown: bool,
    /// Before this instant nothing was sent under the current key.
    #[schema(format = DateTime)]
    pub first_sent_at: String,
    /// After this instant nothing was sent.
    #[schema(format = DateTime)]
    pub last_sent_at: String,
}

/// What came of resolving a dead letter.
#[derive(Debug, ToSchema)]
pub struct DeadLetterResolution {
    /// `dead_letter_resolution`
    pub object: String,
    /// `dl_…`
    pub dead_letter: String,
    /// `adopt`, `void`, `fail` or `retry`.
    pub resolution: String,
    /// The charge as it was left; null if it is about a payout.
    pub charge: Option<Charge>,
    /// The refund as it was left, if it is about one.
    pub refund: Option<Refund>,
    /// The payout as it was left, if it is about one.
    pub payout: Option<Payout>,
}

/// Dead letters, newest first.
#[derive(Debug, ToSchema)]
pub struct DeadLetterList {
    /// `list`
    pub object: String,
    /// The dead letters of this page.
    pub data: Vec<DeadLetter>,
    /// Whether there are older ones.
    pub has_more: bool,
}

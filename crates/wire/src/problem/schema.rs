//! The form of an error as OpenAPI describes it.

use utoipa::ToSchema;

/// An error: problem details (RFC 9457). More fields depend on `error`; its page at `type` describes them.
#[derive(Debug, ToSchema)]
pub struct Problem {
    /// Path of the page that explains the error.
    pub r#type: String,
    /// What happened, in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened and what to do next.
    pub detail: String,
    /// The code to branch on.
    pub error: String,
    /// The request's id, as in the `Request-Id` header; in a stored answer, of the request that made it.
    pub request_id: String,
    /// What is wrong with the request, place by place.
    #[schema(required = false)]
    pub errors: Option<Vec<FieldError>>,
    /// When a retry with the same key is worth it, in milliseconds.
    #[schema(required = false)]
    pub retry_after_ms: Option<u64>,
    /// Whether the same request may be tried under a new key without a risk of doing it twice.
    #[schema(required = false)]
    pub safe_new_key: Option<bool>,
    /// When the key was first used.
    #[schema(required = false, format = DateTime)]
    pub original_request_at: Option<String>,
    /// The issuer's or the bank's reason, where given.
    #[schema(required = false)]
    pub decline_code: Option<String>,
    /// The charge concerned.
    #[schema(required = false)]
    pub charge: Option<String>,
    /// The payout concerned.
    #[schema(required = false)]
    pub payout: Option<String>,
    /// Where the charge stands.
    #[schema(required = false)]
    pub charge_status: Option<String>,
    /// The most that could be asked for, in the currency's minor unit.
    #[schema(required = false)]
    pub amount_available: Option<i64>,
    /// The dead letter concerned.
    #[schema(required = false)]
    pub dead_letter: Option<String>,
    /// Why a dead letter could not be resolved so.
    #[schema(required = false)]
    pub reason: Option<String>,
}

/// What is wrong with one place of a request.
#[derive(Debug, ToSchema)]
pub struct FieldError {
    /// RFC 6901 pointer into the body; empty for the whole.
    pub pointer: String,
    /// What is wrong, and what to send instead.
    pub message: String,
}

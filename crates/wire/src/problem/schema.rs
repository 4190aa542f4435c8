//! The schema of an error, for OpenAPI.

use utoipa::ToSchema;

/// An error: problem details (RFC 9457). Further fields depend on `error`; the page at `type`
/// describes them.
#[derive(Debug, ToSchema)]
pub struct Problem {
    /// Path of the page that explains the error.
    pub r#type: String,
    /// A short description of the problem.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The cause, and what to do next.
    pub detail: String,
    /// The code to branch on.
    pub error: String,
    /// The request's id, as in the `Request-Id` header. A stored answer carries the id of the
    /// request that created it.
    pub request_id: String,
    /// Every problem of the request, with its place.
    #[schema(required = false)]
    pub errors: Option<Vec<FieldError>>,
    /// How long to wait before a retry with the same key, in milliseconds.
    #[schema(required = false)]
    pub retry_after_ms: Option<u64>,
    /// Whether the same request can safely be retried under a new key, without executing it twice.
    #[schema(required = false)]
    pub safe_new_key: Option<bool>,
    /// When the key was first used.
    #[schema(required = false, format = DateTime)]
    pub original_request_at: Option<String>,
    /// The reason given by the issuer or the bank.
    #[schema(required = false)]
    pub decline_code: Option<String>,
    /// The charge concerned.
    #[schema(required = false)]
    pub charge: Option<String>,
    /// The payout concerned.
    #[schema(required = false)]
    pub payout: Option<String>,
    /// The status of the charge.
    #[schema(required = false)]
    pub charge_status: Option<String>,
    /// The largest amount that could be requested, in the currency's minor unit.
    #[schema(required = false)]
    pub amount_available: Option<i64>,
    /// The dead letter concerned.
    #[schema(required = false)]
    pub dead_letter: Option<String>,
    /// Why the dead letter cannot be resolved this way.
    #[schema(required = false)]
    pub reason: Option<String>,
}

/// A problem at one place of a request.
#[derive(Debug, ToSchema)]
pub struct FieldError {
    /// RFC 6901 pointer into the body; empty for the whole request.
    pub pointer: String,
    /// The problem, and what to send instead.
    pub message: String,
}

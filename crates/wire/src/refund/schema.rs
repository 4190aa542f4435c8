//! The forms of a refund as OpenAPI describes them. A test holds them to what is written.

use crate::charge::schema::{Failure, Gateway};
use utoipa::ToSchema;

/// A request to refund.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"charge": "ch_1x6r8tq0v2m4n5p7s9w3y5z0ab", "amount": 500}))]
pub struct CreateRefund {
    /// The charge to give back, `ch_…`.
    pub charge: String,
    /// How much of it, in the currency's minor unit; all that is left if absent. Of a charge with a wallet, what the
    /// card paid.
    #[schema(required = false, nullable, minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: Option<i64>,
}

/// A refund.
#[derive(Debug, ToSchema)]
pub struct Refund {
    /// `re_…`
    pub id: String,
    /// `refund`
    pub object: String,
    /// How much, in the currency's minor unit.
    pub amount: i64,
    /// ISO 4217 code, upper case.
    pub currency: String,
    /// The charge that is given back, `ch_…`.
    pub charge: String,
    /// `processing`, `succeeded`, `failed` or `parked`.
    pub status: String,
    /// Who executed it.
    pub gateway: Gateway,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// Refunds, newest first.
#[derive(Debug, ToSchema)]
pub struct RefundList {
    /// `list`
    pub object: String,
    /// The refunds of this page.
    pub data: Vec<Refund>,
    /// Whether there are older ones.
    pub has_more: bool,
}

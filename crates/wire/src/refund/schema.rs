//! The schemas of a refund. Tests compare the schemas with the written form.

use crate::charge::schema::{Failure, Gateway};
use utoipa::ToSchema;

/// A request to refund.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"charge": "ch_1x6r8tq0v2m4n5p7s9w3y5z0ab", "amount": 500}))]
pub struct CreateRefund {
    /// The charge to refund, `ch_…`.
    pub charge: String,
    /// The amount, in the currency's minor unit; the whole remaining amount if absent. For a charge
    /// with a wallet, at most the card's part.
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
    /// The amount, in the currency's minor unit.
    pub amount: i64,
    /// ISO 4217 code, upper case.
    pub currency: String,
    /// The refunded charge, `ch_…`.
    pub charge: String,
    /// `processing`, `succeeded`, `failed` or `parked`.
    pub status: String,
    /// The executing provider.
    pub gateway: Gateway,
    /// The cause of a failed refund.
    pub failure: Option<Failure>,
    /// When the refund was created.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// Refunds, newest first.
#[derive(Debug, ToSchema)]
pub struct RefundList {
    /// `list`
    pub object: String,
    /// The refunds on the page.
    pub data: Vec<Refund>,
    /// Whether there are older refunds.
    pub has_more: bool,
}

//! The schemas of a payout. Tests compare the schemas with the written form.

use crate::charge::schema::{Failure, Gateway};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A request to pay out.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"amount": 50_000, "currency": "USD", "destination": "ba_1MtIhL2eZvKYlo2C"}))]
pub struct CreatePayout {
    /// The amount, in the currency's minor unit: 1250 is 12.50 USD. At most the amount available in
    /// the account.
    #[schema(minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: i64,
    /// ISO 4217 code, upper or lower case.
    #[schema(min_length = 3, max_length = 3, pattern = "^[A-Za-z]*$")]
    pub currency: String,
    /// The ledger account to pay from; your main account if absent.
    #[schema(required = false, nullable)]
    pub account: Option<String>,
    /// The operator's name of another Counterfoil server whose account is paid; a bank account is
    /// paid if absent.
    #[schema(required = false, nullable, min_length = 1, max_length = 32, pattern = "^[a-z][a-z0-9_]*$")]
    pub peer: Option<String>,
    /// The provider's name of the bank account; the provider's default if absent. With `peer`,
    /// required: the id or code of the account there.
    #[schema(required = false, nullable, min_length = 1, max_length = 255, pattern = "^[!-~]*$")]
    pub destination: Option<String>,
    /// Your own description.
    #[schema(required = false, nullable, max_length = 1000)]
    pub description: Option<String>,
    /// Up to 50 pairs of your own: names of up to 40 bytes, values of up to 500.
    #[schema(required = false, nullable)]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// A payout.
#[derive(Debug, ToSchema)]
pub struct Payout {
    /// `po_…`
    pub id: String,
    /// `payout`
    pub object: String,
    /// The amount, in the currency's minor unit.
    pub amount: i64,
    /// ISO 4217 code, upper case.
    pub currency: String,
    /// `processing`, `paid`, `failed` or `parked`.
    pub status: String,
    /// The ledger account the payout is paid from, `ac_…`.
    pub account: String,
    /// The provider's name of the bank account, if you gave one, or the account at the peer.
    pub destination: Option<String>,
    /// The executing provider or peer, with a reference.
    pub gateway: Gateway,
    /// The cause of a failed payout.
    pub failure: Option<Failure>,
    /// Your own description.
    pub description: Option<String>,
    /// Your own pairs.
    pub metadata: BTreeMap<String, String>,
    /// When the payout was created.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// Payouts, newest first.
#[derive(Debug, ToSchema)]
pub struct PayoutList {
    /// `list`
    pub object: String,
    /// The payouts on the page.
    pub data: Vec<Payout>,
    /// Whether there are older payouts.
    pub has_more: bool,
}

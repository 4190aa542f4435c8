//! The schemas of a transfer. Tests compare the schemas with the written form.

use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A request to transfer.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"from": "customer:42", "to": "merchant:7", "amount": 1250, "currency": "USD"}))]
pub struct CreateTransfer {
    /// The account to debit: id, `ac_…`, or code.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9_.:/-]*$")]
    pub from: String,
    /// The account to credit: id, `ac_…`, or code.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9_.:/-]*$")]
    pub to: String,
    /// The amount, in the asset's minor unit: 1250 is 12.50 USD.
    #[schema(minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: i64,
    /// The asset of the two accounts, upper or lower case.
    #[schema(min_length = 1, max_length = 16, pattern = "^[A-Za-z][A-Za-z0-9_]*$")]
    pub currency: String,
    /// Only reserve the money, to be posted or voided later.
    #[schema(required = false, nullable, default = false)]
    pub hold: Option<bool>,
    /// When the hold lapses; seven days from now if absent. Only with `hold`.
    #[schema(required = false, nullable, format = DateTime)]
    pub expires_at: Option<String>,
    /// Up to 50 pairs of your own: names of up to 40 bytes, values of up to 500.
    #[schema(required = false, nullable)]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// A request to post a held transfer. The body may be left out.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"amount": 1000}))]
pub struct PostTransfer {
    /// The part of the held amount to post; the whole if absent. The rest is released.
    #[schema(required = false, nullable, minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: Option<i64>,
}

/// A transfer.
#[derive(Debug, ToSchema)]
pub struct Transfer {
    /// `tr_…`
    pub id: String,
    /// `transfer`
    pub object: String,
    /// The account debited, `ac_…`.
    pub from: String,
    /// The account credited, `ac_…`.
    pub to: String,
    /// The amount, in the asset's minor unit.
    pub amount: i64,
    /// The asset, upper case.
    pub currency: String,
    /// `posted`, `pending`, `voided` or `lapsed`.
    pub status: String,
    /// Whether the transfer was held first.
    pub hold: bool,
    /// The amount moved.
    pub amount_posted: i64,
    /// The transaction that moved the money, `tx_…`; null if there is none.
    pub transaction: Option<String>,
    /// When the hold lapses, or would have lapsed.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Your own pairs.
    pub metadata: BTreeMap<String, String>,
    /// When the transfer was created.
    #[schema(format = DateTime)]
    pub created_at: String,
}

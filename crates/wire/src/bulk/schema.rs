//! The schemas of bulk requests. Tests compare the schemas with the written form.

use crate::problem::schema::FieldError;
use crate::transaction::schema::CreateEntry;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A request for many transactions.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"transactions": [
    {"from": "customer:42", "to": "merchant:7", "amount": 1250, "currency": "USD"},
]}))]
pub struct CreateBulk {
    /// Each transaction is posted or refused on its own.
    #[schema(min_items = 1, max_items = 1000)]
    pub transactions: Vec<CreateBulkItem>,
}

/// One of many transactions: either `entries`, or `from`, `to`, `amount` and `currency`.
#[derive(Debug, ToSchema)]
pub struct CreateBulkItem {
    /// Debits and credits, balanced per asset.
    #[schema(required = false, nullable, min_items = 2, max_items = 40)]
    pub entries: Option<Vec<CreateEntry>>,
    /// The account to debit: id, `ac_…`, or code.
    #[schema(required = false, nullable)]
    pub from: Option<String>,
    /// The account to credit: id, `ac_…`, or code.
    #[schema(required = false, nullable)]
    pub to: Option<String>,
    /// The amount, in the asset's minor unit.
    #[schema(required = false, nullable, minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: Option<i64>,
    /// The asset of the two accounts, upper or lower case.
    #[schema(required = false, nullable)]
    pub currency: Option<String>,
    /// Up to 50 pairs of your own: names of up to 40 bytes, values of up to 500.
    #[schema(required = false, nullable)]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// The results of many transactions.
#[derive(Debug, ToSchema)]
pub struct Bulk {
    /// `bk_…`
    pub id: String,
    /// `bulk`
    pub object: String,
    /// Number of posted transactions.
    pub posted: u64,
    /// Number of other transactions, `refused` and `invalid`.
    pub refused: u64,
    /// The results, in the order of the request.
    pub results: Vec<BulkResult>,
}

/// The result of one of many transactions.
#[derive(Debug, ToSchema)]
pub struct BulkResult {
    /// `posted`, `refused` or `invalid`.
    pub status: String,
    /// The transaction, `tx_…`, if it was posted.
    #[schema(required = false)]
    pub transaction: Option<String>,
    /// The code of the error, if it was refused: `insufficient_funds` or `cap_exceeded`.
    #[schema(required = false)]
    pub error: Option<String>,
    /// The problems of an invalid transaction; pointers lead into the body of the request.
    #[schema(required = false)]
    pub errors: Option<Vec<FieldError>>,
}

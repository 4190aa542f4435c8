//! The schemas of a transaction. Tests compare the schemas with the written form.

use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A request to post a transaction.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"entries": [
    {"account": "customer:42", "direction": "debit", "amount": 1250, "asset": "USD"},
    {"account": "merchant:7", "direction": "credit", "amount": 1250, "asset": "USD"},
]}))]
pub struct CreateTransaction {
    /// Debits and credits, balanced per asset. Each account may appear once.
    #[schema(min_items = 2, max_items = 40)]
    pub entries: Vec<CreateEntry>,
    /// Up to 50 pairs of your own: names of up to 40 bytes, values of up to 500.
    #[schema(required = false, nullable)]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// An entry to post.
#[derive(Debug, ToSchema)]
pub struct CreateEntry {
    /// The account: id, `ac_…`, or code.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9_.:/-]*$")]
    pub account: String,
    /// `debit` or `credit`.
    #[schema(pattern = "^(debit|credit)$")]
    pub direction: String,
    /// The amount, in the asset's minor unit.
    #[schema(minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: i64,
    /// The account's asset, upper or lower case.
    #[schema(min_length = 1, max_length = 16, pattern = "^[A-Za-z][A-Za-z0-9_]*$")]
    pub asset: String,
}

/// A transaction: a final record in the ledger.
#[derive(Debug, ToSchema)]
pub struct Transaction {
    /// `tx_…`
    pub id: String,
    /// `transaction`
    pub object: String,
    /// `transfer`, `general`, `conversion`, `charge`, `reversal`, `held`, `hold_posted`,
    /// `hold_voided` or `hold_lapsed`.
    pub kind: String,
    /// The entries, balanced per asset and layer.
    pub entries: Vec<TransactionEntry>,
    /// The reversed transaction, `tx_…`.
    pub reverses: Option<String>,
    /// The transaction that reversed it, `tx_…`; null in the stored answer to the request that
    /// created it.
    pub reversed_by: Option<String>,
    /// The related charge, `ch_…`.
    pub charge: Option<String>,
    /// The related transfer, `tr_…`.
    pub transfer: Option<String>,
    /// Your own pairs.
    pub metadata: BTreeMap<String, String>,
    /// When the transaction was decided.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// An entry of a transaction.
#[derive(Debug, ToSchema)]
pub struct TransactionEntry {
    /// `en_…`
    pub id: String,
    /// `ac_…`
    pub account: String,
    /// `debit` or `credit`.
    pub direction: String,
    /// `posted`, `pending` or `released`.
    pub layer: String,
    /// The amount, in the asset's minor unit.
    pub amount: i64,
    /// The asset code, upper case.
    pub asset: String,
}

/// Transactions, newest first.
#[derive(Debug, ToSchema)]
pub struct TransactionList {
    /// `list`
    pub object: String,
    /// The transactions on the page.
    pub data: Vec<Transaction>,
    /// Whether there are older transactions.
    pub has_more: bool,
}

//! The schemas of an account. Tests compare the schemas with the written form.

use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A request to open an account.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"code": "customer:42", "asset": "USD", "floor": 0}))]
pub struct CreateAccount {
    /// Your own name for the account, unique within your tenant, starting with a letter or digit:
    /// letters, digits and any of `_ - . : /`. Names that begin with `chart:` belong to accounts of
    /// the server itself. A name must not look like an id, `ac_…`.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9_.:/-]*$")]
    pub code: String,
    /// The asset, in any case: an ISO 4217 code, or the code of an asset of your own.
    #[schema(min_length = 1, max_length = 16, pattern = "^[A-Za-z][A-Za-z0-9_]*$")]
    pub asset: String,
    /// Lower bound of the available balance; null or absent means no bound.
    #[schema(required = false, nullable)]
    pub floor: Option<i64>,
    /// Upper bound of the posted and expected balance; null or absent means no bound.
    #[schema(required = false, nullable)]
    pub cap: Option<i64>,
    /// Number of rows over which the guarded balance is spread; more rows accept more concurrent
    /// writes.
    #[schema(required = false, nullable, minimum = 1, maximum = 256, default = 1)]
    pub shards: Option<u16>,
    /// The side that raises the balance: `credit` (the default) or `debit`.
    #[schema(required = false, nullable, default = "credit", pattern = "^(debit|credit)$")]
    pub normal_side: Option<String>,
    /// Up to 50 pairs of your own: names of up to 40 bytes, values of up to 500.
    #[schema(required = false, nullable)]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// A request to spread an account.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"shards": 16}))]
pub struct SpreadAccount {
    /// The new number of rows over which the guarded balance is spread.
    #[schema(minimum = 1, maximum = 256)]
    pub shards: u16,
}

/// An account.
#[derive(Debug, ToSchema)]
pub struct Account {
    /// `ac_…`
    pub id: String,
    /// `account`
    pub object: String,
    /// Your own name for the account.
    pub code: String,
    /// The asset code, upper case.
    pub asset: String,
    /// The side that raises the balance: `credit` or `debit`.
    pub normal_side: String,
    /// Lower bound of the available balance.
    pub floor: Option<i64>,
    /// Upper bound of the posted and expected balance.
    pub cap: Option<i64>,
    /// Number of rows over which the guarded balance is spread.
    pub shards: u16,
    /// Your own pairs.
    pub metadata: BTreeMap<String, String>,
    /// When it was opened.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// Accounts, newest first.
#[derive(Debug, ToSchema)]
pub struct AccountList {
    /// `list`
    pub object: String,
    /// The accounts on the page.
    pub data: Vec<Account>,
    /// Whether there are older accounts.
    pub has_more: bool,
}

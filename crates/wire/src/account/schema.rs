//! The forms of an account as OpenAPI describes them. A test holds them to what is written.

use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A request to open an account.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"code": "customer:42", "asset": "USD", "floor": 0}))]
pub struct CreateAccount {
    /// Your own name for it, unique within your tenant: letters, digits and any of `_ - . : /`, the first a letter
    /// or digit. Names that begin with `chart:` belong to the accounts the server keeps itself, and none has the form
    /// of an id, `ac_…`.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9_.:/-]*$")]
    pub code: String,
    /// What it counts, in any case: an ISO 4217 code, or the code of an asset of your own.
    #[schema(min_length = 1, max_length = 16, pattern = "^[A-Za-z][A-Za-z0-9_]*$")]
    pub asset: String,
    /// What is available never falls below this; null or absent means no such bound.
    #[schema(required = false, nullable)]
    pub floor: Option<i64>,
    /// What is posted or expected never rises above this; null or absent means no such bound.
    #[schema(required = false, nullable)]
    pub cap: Option<i64>,
    /// Rows its guarded balance is spread over; more rows take more writes at once.
    #[schema(required = false, nullable, minimum = 1, maximum = 256, default = 1)]
    pub shards: Option<u16>,
    /// The side that raises its balance: `credit` (the default) or `debit`.
    #[schema(required = false, nullable, default = "credit", pattern = "^(debit|credit)$")]
    pub normal_side: Option<String>,
    /// Up to 50 pairs of your own: names of up to 40 bytes, texts of up to 500.
    #[schema(required = false, nullable)]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// A request to spread an account.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"shards": 16}))]
pub struct SpreadAccount {
    /// Rows its guarded balance is spread over from now on.
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
    /// Your own name for it.
    pub code: String,
    /// What it counts, upper case.
    pub asset: String,
    /// The side that raises its balance: `credit` or `debit`.
    pub normal_side: String,
    /// What is available never falls below this.
    pub floor: Option<i64>,
    /// What is posted or expected never rises above this.
    pub cap: Option<i64>,
    /// Rows its guarded balance is spread over.
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
    /// The accounts of this page.
    pub data: Vec<Account>,
    /// Whether there are older ones.
    pub has_more: bool,
}

//! The chart every tenant has without asking: one account per role and asset, opened on first use.

use super::account::{BadCode, Code, Side};
use crate::types::asset::Asset;

/// What an account of the chart is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// What providers owe for captured charges.
    Receivable,
    /// What is owed to the tenant: its main account.
    Payable,
    /// What services cost.
    Fees,
    /// Remainders of conversions.
    Rounding,
    /// Money whose account could not take it.
    Suspense,
    /// The other side of conversions.
    Exchange,
}

/// All roles.
pub const ROLES: [Role; 6] =
    [Role::Receivable, Role::Payable, Role::Fees, Role::Rounding, Role::Suspense, Role::Exchange];

/// What codes of the chart begin with; a tenant's own codes may not.
pub const PREFIX: &str = "chart:";

impl Role {
    /// The word in codes.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Receivable => "receivable",
            Role::Payable => "payable",
            Role::Fees => "fees",
            Role::Rounding => "rounding",
            Role::Suspense => "suspense",
            Role::Exchange => "exchange",
        }
    }

    /// The side that raises it.
    pub const fn normal(self) -> Side {
        match self {
            Role::Receivable | Role::Fees => Side::Debit,
            Role::Payable | Role::Rounding | Role::Suspense | Role::Exchange => Side::Credit,
        }
    }

    /// The code of the account of this role in `asset`, like `chart:payable:USD`.
    pub fn code(self, asset: Asset) -> Result<Code, BadCode> {
        Code::parse(&format!("{PREFIX}{}:{asset}", self.name()))
    }
}

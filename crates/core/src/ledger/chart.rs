//! The chart: one account per role and asset of every tenant, opened on first use.

use super::account::{AccountCode, BadCode, Side};
use crate::types::asset::Asset;
use crate::types::peer::PeerName;

/// The roles of chart accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Debts of providers for captured charges.
    Receivable,
    /// The debt to the tenant: its main account.
    Payable,
    /// Costs of services.
    Fees,
    /// Remainders of conversions.
    Rounding,
    /// Money refused by the intended account.
    Suspense,
    /// The other side of conversions.
    Exchange,
}

pub const ROLES: [Role; 6] =
    [Role::Receivable, Role::Payable, Role::Fees, Role::Rounding, Role::Suspense, Role::Exchange];

/// The prefix of the chart's codes. A tenant's own codes must not begin with it.
pub const PREFIX: &str = "chart:";

/// The code of the account for the debt to a peer in `asset`, like `chart:peer:eu:USD`. Payouts to
/// the peer increase the account, and the first payout opens it. Our account at the peer has the
/// same sum with the opposite sign.
pub fn peer_code(peer: &PeerName, asset: Asset) -> Result<AccountCode, BadCode> {
    AccountCode::parse(&format!("{PREFIX}peer:{peer}:{asset}"))
}

impl Role {
    /// The name in codes.
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

    /// The increasing side.
    pub const fn normal(self) -> Side {
        match self {
            Role::Receivable | Role::Fees => Side::Debit,
            Role::Payable | Role::Rounding | Role::Suspense | Role::Exchange => Side::Credit,
        }
    }

    /// The code of this role's account in `asset`, like `chart:payable:USD`.
    pub fn code(self, asset: Asset) -> Result<AccountCode, BadCode> {
        AccountCode::parse(&format!("{PREFIX}{}:{asset}", self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::limits::{ASSET_CODE_BYTES_MAX, PEER_NAME_BYTES_MAX};

    #[test]
    fn peer_codes_exist_for_every_asset_and_differ_from_role_codes() {
        let eu = PeerName::parse("eu").unwrap();
        let usd = Asset::parse("USD").unwrap();
        assert_eq!(peer_code(&eu, usd).unwrap().as_str(), "chart:peer:eu:USD");
        let longest = PeerName::parse(&"p".repeat(PEER_NAME_BYTES_MAX)).unwrap();
        let widest = Asset::parse(&"A".repeat(ASSET_CODE_BYTES_MAX)).unwrap();
        assert!(peer_code(&longest, widest).is_ok());
        for role in ROLES {
            assert_ne!(role.name(), "peer");
        }
    }
}

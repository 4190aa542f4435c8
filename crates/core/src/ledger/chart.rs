//! The chart every tenant has without asking: one account per role and asset, opened on first use.

use super::account::{AccountCode, BadCode, Side};
use crate::types::asset::Asset;
use crate::types::peer::PeerName;

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

/// The code of the account of what is owed to a peer in `asset`, like `chart:peer:eu:USD`. What was sent there raises it,
/// and it is opened when something first is; at the peer an account of ours has the same sum with the other sign.
pub fn peer_code(peer: &PeerName, asset: Asset) -> Result<AccountCode, BadCode> {
    AccountCode::parse(&format!("{PREFIX}peer:{peer}:{asset}"))
}

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
    pub fn code(self, asset: Asset) -> Result<AccountCode, BadCode> {
        AccountCode::parse(&format!("{PREFIX}{}:{asset}", self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::limits::{ASSET_CODE_BYTES_MAX, PEER_NAME_BYTES_MAX};

    #[test]
    fn every_peer_has_a_code_in_every_asset_and_none_is_a_roles() {
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

//! The public form of a balance. All amounts are in terms of the account's normal side.

use crate::json;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_engine::service::BalanceView;

pub fn write(account: &Account, balance: &BalanceView, references: &References) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let id = references.seal(ReferenceKind::Account, account.id.to_i64());
    json::object(&mut out, |all| {
        all.string("object", "balance")
            .string("account", id.as_str())
            .string("asset", account.asset.code())
            .wide("posted", balance.view.posted)
            .wide("pending", balance.view.outgoing)
            .wide("available", balance.view.available)
            .wide("incoming", balance.view.incoming)
            .count("position", balance.position.0);
    });
    out
}

/// The balance of an account, in the asset's minor unit.
#[derive(Debug, utoipa::ToSchema)]
pub struct Balance {
    /// `balance`
    pub object: String,
    /// `ac_…`
    pub account: String,
    /// The asset code, upper case.
    pub asset: String,
    /// The sum of posted entries.
    pub posted: i64,
    /// The amount that holds have reserved to go out.
    pub pending: i64,
    /// The amount that may still go out: `posted` less `pending`.
    pub available: i64,
    /// The amount that holds may bring in.
    pub incoming: i64,
    /// The last commit included in this balance; pass it as `?at=` to read the same balance again.
    pub position: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{account, fields_of, fields_written, references};
    use counterfoil_core::ledger::totals::BalanceAmounts;
    use counterfoil_core::types::position::Position;
    use utoipa::PartialSchema;

    #[test]
    fn golden_balance() {
        let view = BalanceAmounts {
            posted: 1_250,
            outgoing: 250,
            incoming: i128::from(i64::MAX) * 4,
            available: -170_141_183_460_469_231_731_687_303_715_884_105_728,
        };
        let balance = BalanceView { view, position: Position(u64::MAX) };
        let text = write(&account(), &balance, &references());
        assert_eq!(
            String::from_utf8(text.clone()).unwrap(),
            format!(
                r#"{{"object":"balance","account":"{}","asset":"USD","posted":1250,"pending":250,"available":-170141183460469231731687303715884105728,"incoming":36893488147419103228,"position":18446744073709551615}}"#,
                references().seal(ReferenceKind::Account, 7)
            )
        );
        assert_eq!(fields_written(&text), fields_of(Balance::schema()));
    }
}

//! The public form of an entry. An entry's id consists of the transaction's number and the leg's
//! index: `en_…_0`.

use crate::json;
use crate::time::Stamp;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::TransactionId;
use counterfoil_core::types::reference::{ReferenceKind, References};

/// Appends an entry of the account with the reference `account`.
pub fn write(out: &mut Vec<u8>, entry: &AccountEntry, account: &str, references: &References) {
    let number = entry.transaction.to_i64();
    let id = format!("{}_{}", references.seal(ReferenceKind::Entry, number), entry.leg);
    json::object(out, |all| {
        all.string("id", &id)
            .string("object", "entry")
            .string("transaction", references.seal(ReferenceKind::Transaction, number).as_str())
            .string("account", account)
            .string("direction", entry.side.name())
            .string("layer", entry.layer.name())
            .integer("amount", entry.amount)
            .string("asset", entry.asset.code())
            .count("position", entry.position.0)
            .string("created_at", Stamp::of(entry.at).as_str());
    });
}

/// Parses an entry's id; `None` if this instance never issued it.
pub fn read_id(text: &str, references: &References) -> Option<(TransactionId, u16)> {
    let (reference, leg) = text.rsplit_once('_')?;
    let number: u16 = leg.parse().ok()?;
    // Each leg has one spelling: signs and leading zeros are refused.
    (number.to_string() == leg).then_some(())?;
    Some((TransactionId::from_i64(references.open(ReferenceKind::Entry, reference)?), number))
}

/// An entry of an account.
#[derive(Debug, utoipa::ToSchema)]
#[schema(as = AccountEntry)]
pub struct EntrySchema {
    /// `en_…`
    pub id: String,
    /// `entry`
    pub object: String,
    /// The transaction, `tx_…`.
    pub transaction: String,
    /// `ac_…`
    pub account: String,
    /// `debit` or `credit`.
    pub direction: String,
    /// `posted`: final. `pending`: reserved by a hold. `released`: reverses a pending entry.
    pub layer: String,
    /// The amount, in the asset's minor unit.
    pub amount: i64,
    /// The asset code, upper case.
    pub asset: String,
    /// Position of the commit.
    pub position: u64,
    /// When the entry was committed.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// Entries of an account, newest first.
#[derive(Debug, utoipa::ToSchema)]
pub struct EntryList {
    /// `list`
    pub object: String,
    /// The entries on the page.
    pub data: Vec<EntrySchema>,
    /// Whether there are older entries.
    pub has_more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{fields_of, fields_written, references, usd};
    use counterfoil_core::ledger::account::Side;
    use counterfoil_core::ledger::transaction::Layer;
    use counterfoil_core::types::id::AccountId;
    use counterfoil_core::types::position::Position;
    use counterfoil_core::types::time::Time;
    use utoipa::PartialSchema;

    #[test]
    fn golden_entry() {
        let entry = AccountEntry {
            transaction: TransactionId::from_i64(3),
            leg: 1,
            position: Position(9),
            at: Time::EPOCH,
            account: AccountId::from_i64(7),
            side: Side::Debit,
            layer: Layer::Released,
            amount: 1_250,
            asset: usd(),
        };
        let mut text = Vec::new();
        write(&mut text, &entry, "ac_x", &references());
        let (id, transaction) =
            (references().seal(ReferenceKind::Entry, 3), references().seal(ReferenceKind::Transaction, 3));
        assert_eq!(
            String::from_utf8(text.clone()).unwrap(),
            format!(
                r#"{{"id":"{id}_1","object":"entry","transaction":"{transaction}","account":"ac_x","direction":"debit","layer":"released","amount":1250,"asset":"USD","position":9,"created_at":"1970-01-01T00:00:00.000Z"}}"#
            )
        );
        assert_eq!(fields_written(&text), fields_of(EntrySchema::schema()));
    }

    #[test]
    fn ids_round_trip_and_other_texts_are_refused() {
        let reference = references().seal(ReferenceKind::Entry, 3);
        assert_eq!(
            read_id(&format!("{reference}_39"), &references()),
            Some((TransactionId::from_i64(3), 39))
        );
        let transaction = references().seal(ReferenceKind::Transaction, 3);
        for text in [
            String::new(),
            "_".to_owned(),
            reference.to_string(),
            format!("{reference}_"),
            format!("{reference}_00"),
            format!("{reference}_+1"),
            format!("{reference}_-1"),
            format!("{reference}_65536"),
            format!("{reference}_1_1"),
            format!("{transaction}_0"),
            "en_zzzzzzzzzzzzzzzzzzzzzzzzzz_0".to_owned(),
        ] {
            assert_eq!(read_id(&text, &references()), None, "{text}");
        }
    }
}

//! Writes a transaction. The order of members is part of the form.

use crate::json;
use crate::metadata;
use crate::time::Stamp;
use counterfoil_core::ledger::transaction::{Transaction, TransactionKind};
use counterfoil_core::types::id::TransactionId;
use counterfoil_core::types::reference::{ReferenceKind, References};

/// Appends a transaction; `reversed_by` is the transaction that reversed it.
pub fn write(
    out: &mut Vec<u8>,
    transaction: &Transaction,
    reversed_by: Option<TransactionId>,
    references: &References,
) {
    let number = transaction.id.to_i64();
    let entry = references.seal(ReferenceKind::Entry, number);
    let about = About::of(transaction);
    let sealed = |kind, number: Option<i64>| number.map(|number| references.seal(kind, number).to_string());
    json::object(out, |all| {
        all.string("id", references.seal(ReferenceKind::Transaction, number).as_str())
            .string("object", "transaction")
            .string("kind", transaction.kind.name())
            .array("entries", transaction.legs.as_slice().iter().enumerate(), |out, (place, leg)| {
                json::object(out, |one| {
                    one.string("id", &format!("{entry}_{place}"))
                        .string(
                            "account",
                            references.seal(ReferenceKind::Account, leg.account.to_i64()).as_str(),
                        )
                        .string("direction", leg.side.name())
                        .string("layer", leg.layer.name())
                        .integer("amount", leg.amount)
                        .string("asset", leg.asset.code());
                });
            })
            .string_or_null("reverses", sealed(ReferenceKind::Transaction, about.reverses).as_deref())
            .string_or_null(
                "reversed_by",
                sealed(ReferenceKind::Transaction, reversed_by.map(TransactionId::to_i64)).as_deref(),
            )
            .string_or_null("charge", sealed(ReferenceKind::Charge, about.charge).as_deref())
            .string_or_null("transfer", sealed(ReferenceKind::Transfer, about.transfer).as_deref());
        metadata::write(all, &transaction.metadata);
        all.string("created_at", Stamp::of(transaction.at).as_str());
    });
}

/// The objects a transaction belongs to.
#[derive(Default)]
struct About {
    reverses: Option<i64>,
    charge: Option<i64>,
    transfer: Option<i64>,
}

impl About {
    fn of(transaction: &Transaction) -> About {
        match transaction.kind {
            TransactionKind::General | TransactionKind::Conversion => About::default(),
            // A transfer that was not held is its own transaction, so both have one number.
            TransactionKind::Transfer => {
                About { transfer: Some(transaction.id.to_i64()), ..About::default() }
            }
            TransactionKind::Charge(charge) => About { charge: Some(charge.to_i64()), ..About::default() },
            TransactionKind::Reversal(original) => {
                About { reverses: Some(original.to_i64()), ..About::default() }
            }
            TransactionKind::Held(hold)
            | TransactionKind::HoldPosted(hold)
            | TransactionKind::HoldVoided(hold)
            | TransactionKind::HoldLapsed(hold) => {
                About { transfer: Some(hold.to_i64()), ..About::default() }
            }
        }
    }
}

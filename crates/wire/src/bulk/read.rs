//! Reads a bulk request. A malformed transaction makes the whole request invalid. A transaction
//! that merely does not fit the ledger is refused on its own, by the engine.

use crate::fields::{self, Accounts, Fields};
use crate::layout::{Layout, Shape};
use crate::transaction::read::{ENTRY_LAYOUT, post};
use crate::transfer::read::unheld;
use counterfoil_core::payments::ledger::Item;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::limits::BULK_MAX;
use counterfoil_core::types::reference::References;

/// One of many transactions: either entries, or a transfer.
pub const ITEM_LAYOUT: Layout = Layout {
    of: "a transaction",
    like: "{\"entries\":[…,…]} or {\"from\":…,\"to\":…,\"amount\":…,\"currency\":…}",
    fields: &[
        ("entries", Shape::List(&ENTRY_LAYOUT)),
        ("from", Shape::Text),
        ("to", Shape::Text),
        ("amount", Shape::Number),
        ("currency", Shape::Text),
        ("metadata", Shape::Text),
    ],
};

pub const LAYOUT: Layout = Layout {
    of: "a bulk request",
    like: "{\"transactions\":[…]}",
    fields: &[("transactions", Shape::List(&ITEM_LAYOUT))],
};

pub fn read(body: &Json, references: &References) -> Result<Vec<Item>, Vec<Flaw>> {
    let mut accounts = Accounts::new(references);
    fields::read(body, &LAYOUT, |fields| {
        fields.list("transactions", 1..=BULK_MAX, &ITEM_LAYOUT, |fields| item(fields, &mut accounts))
    })
}

fn item<'a>(fields: &mut Fields<'a, '_>, accounts: &mut Accounts<'a>) -> Option<Item> {
    if !fields.has("entries") {
        return unheld(fields, accounts).map(Item::Transfer);
    }
    for name in ["from", "to", "amount", "currency"] {
        if fields.has(name) {
            fields.refuse(name, format!("`{name}` belongs to a transfer; send it or `entries`, not both"));
        }
    }
    post(fields, accounts).map(Item::Post)
}

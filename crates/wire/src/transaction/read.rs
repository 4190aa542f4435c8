//! Reads requests to post and to reverse a transaction.

use crate::fields::{self, Accounts, Fields};
use crate::layout::{Layout, Shape};
use crate::metadata;
use counterfoil_core::ledger::account::Side;
use counterfoil_core::payments::ledger::{Post, PostLeg};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::limits::LEGS_MAX;
use counterfoil_core::types::reference::References;

pub const ENTRY_LAYOUT: Layout = Layout {
    of: "an entry",
    like: "{\"account\":…,\"direction\":…,\"amount\":…,\"asset\":…}",
    fields: &[
        ("account", Shape::Text),
        ("direction", Shape::Text),
        ("amount", Shape::Number),
        ("asset", Shape::Text),
    ],
};

pub const LAYOUT: Layout = Layout {
    of: "a transaction",
    like: "{\"entries\":[…,…]}",
    fields: &[("entries", Shape::List(&ENTRY_LAYOUT)), ("metadata", Shape::Text)],
};

pub const REVERSE_LAYOUT: Layout = Layout { of: "this request", like: "{}", fields: &[] };

/// Reads the body of a request to post a transaction.
pub fn read(body: &Json, references: &References) -> Result<Post, Vec<Flaw>> {
    let mut accounts = Accounts::new(references);
    fields::read(body, &LAYOUT, |fields| post(fields, &mut accounts))
}

/// Reads the fields of a transaction, in a request of its own or in a bulk request.
pub(crate) fn post<'a>(fields: &mut Fields<'a, '_>, accounts: &mut Accounts<'a>) -> Option<Post> {
    let entries = fields.list("entries", 2..=LEGS_MAX, &ENTRY_LAYOUT, |fields| entry(fields, accounts));
    let metadata = metadata::read(fields);
    Some(Post { entries: entries?, metadata })
}

fn entry<'a>(fields: &mut Fields<'a, '_>, accounts: &mut Accounts<'a>) -> Option<PostLeg> {
    let account = fields.account("account", accounts);
    let side = fields.word("direction", Side::parse, "`debit` or `credit`");
    let amount = fields.amount("amount");
    let asset = fields.asset("asset");
    Some(PostLeg { account: account?, side: side?, amount: amount?, asset: asset? })
}

/// Reads the body of a request to reverse a transaction, which has no fields.
pub fn read_reverse(body: &Json) -> Result<(), Vec<Flaw>> {
    fields::read(body, &REVERSE_LAYOUT, |_| Some(()))
}

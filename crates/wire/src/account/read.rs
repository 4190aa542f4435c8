//! Reads requests to open an account and to spread one over shards.

use crate::fields::{self, Fields};
use crate::layout::{Layout, Shape};
use crate::metadata;
use counterfoil_core::ledger::account::{AccountCode, Guard, Side};
use counterfoil_core::payments::ledger::Open;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::limits::{ACCOUNT_CODE_BYTES_MAX, SHARDS_MAX};
use counterfoil_core::types::reference::ReferenceKind;

pub const LAYOUT: Layout = Layout {
    of: "an account",
    like: "{\"code\":…,\"asset\":…}",
    fields: &[
        ("code", Shape::Text),
        ("asset", Shape::Text),
        ("floor", Shape::Number),
        ("cap", Shape::Number),
        ("shards", Shape::Number),
        ("normal_side", Shape::Text),
        ("metadata", Shape::Text),
    ],
};

pub const SHARDS_LAYOUT: Layout =
    Layout { of: "this request", like: "{\"shards\":…}", fields: &[("shards", Shape::Number)] };

const SHARDS: &str = "a whole number of shards";

/// Reads the body of a request to open an account.
pub fn read(body: &Json) -> Result<Open, Vec<Flaw>> {
    fields::read(body, &LAYOUT, |fields| {
        let code = code(fields);
        let asset = fields.asset("asset");
        let guard = Guard { floor: bound(fields, "floor"), cap: bound(fields, "cap") };
        let shards = if fields.has("shards") { shards(fields) } else { Some(1) };
        let normal = if fields.has("normal_side") {
            fields.word("normal_side", Side::parse, "`debit` or `credit`")
        } else {
            Some(Side::Credit)
        };
        let metadata = metadata::read(fields);
        Some(Open { code: code?, asset: asset?, normal: normal?, guard, shards: shards?, metadata })
    })
}

/// Reads the body of a request to spread an account.
pub fn read_shards(body: &Json) -> Result<u16, Vec<Flaw>> {
    fields::read(body, &SHARDS_LAYOUT, shards)
}

fn code(fields: &mut Fields<'_, '_>) -> Option<AccountCode> {
    const WHAT: &str = "your own name for the account, like customer:42";
    let text = fields.text("code", WHAT)?;
    // Whether the account exists is not checked here: the answer would reveal other tenants'
    // accounts.
    if ReferenceKind::Account.is_form_of(text) {
        fields.refuse("code", "`code` has the form of an account's id; choose a name of your own");
        return None;
    }
    let code = AccountCode::parse(text).ok();
    if code.is_none() {
        fields.refuse(
            "code",
            format!(
                "`code` must be 1 to {ACCOUNT_CODE_BYTES_MAX} letters, digits and any of _ - . : /, the first a letter or digit"
            ),
        );
    }
    code
}

fn bound(fields: &mut Fields<'_, '_>, name: &str) -> Option<i64> {
    let value = fields.optional(name)?;
    fields.whole(name, value, i64::MIN..=i64::MAX, "a whole number of minor units, or null")
}

fn shards(fields: &mut Fields<'_, '_>) -> Option<u16> {
    let value = fields.required("shards", SHARDS)?;
    fields.whole("shards", value, 1..=i64::from(SHARDS_MAX), SHARDS)?.try_into().ok()
}

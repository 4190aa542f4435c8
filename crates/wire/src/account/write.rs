//! Writes an account. The order of members is part of the form.

use crate::json;
use crate::metadata;
use crate::time::Stamp;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::types::reference::{ReferenceKind, References};

pub fn write(out: &mut Vec<u8>, account: &Account, references: &References) {
    let id = references.seal(ReferenceKind::Account, account.id.to_i64());
    write_as(out, account, id.as_str());
}

pub(crate) fn write_as(out: &mut Vec<u8>, account: &Account, id: &str) {
    json::object(out, |all| {
        all.string("id", id)
            .string("object", "account")
            .string("code", account.code.as_str())
            .string("asset", account.asset.code())
            .string("normal_side", account.normal.name())
            .integer_or_null("floor", account.guard.floor)
            .integer_or_null("cap", account.guard.cap)
            .count("shards", u64::from(account.shards));
        metadata::write(all, &account.metadata);
        all.string("created_at", Stamp::of(account.created_at).as_str());
    });
}

//! Writes a transfer. The order of members is part of the form.

use crate::json;
use crate::metadata;
use crate::time::Stamp;
use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::payments::ledger::Metadata;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, TransactionId};
use counterfoil_core::types::reference::{Reference, ReferenceKind, References};
use counterfoil_core::types::time::Time;

/// The members that done and held transfers share.
struct Form<'a> {
    number: i64,
    from: Option<AccountId>,
    to: Option<AccountId>,
    amount: i64,
    asset: Option<Asset>,
    status: &'static str,
    hold: bool,
    amount_posted: i64,
    transaction: Option<TransactionId>,
    expires_at: Option<Time>,
    metadata: &'a Metadata,
    created_at: Time,
}

/// Appends a transfer that was posted at once.
pub fn write_done(out: &mut Vec<u8>, posted: &Transaction, references: &References) {
    // Legs balance, so a transfer has one leg on each side.
    let leg = |side| posted.legs.as_slice().iter().find(|leg| leg.side == side);
    let (from, to) = (leg(Side::Debit), leg(Side::Credit));
    let amount = from.map_or(0, |leg| leg.amount);
    let form = Form {
        number: posted.id.to_i64(),
        from: from.map(|leg| leg.account),
        to: to.map(|leg| leg.account),
        amount,
        asset: from.map(|leg| leg.asset),
        status: "posted",
        hold: false,
        amount_posted: amount,
        transaction: Some(posted.id),
        expires_at: None,
        metadata: &posted.metadata,
        created_at: posted.at,
    };
    form.write(out, references);
}

/// Appends a transfer that is or was held, as of `now`. A hold past its deadline counts as lapsed,
/// even before the worker has ended it.
pub fn write_held(out: &mut Vec<u8>, hold: &Hold, now: Time, references: &References) {
    let (amount_posted, transaction) = match hold.state {
        HoldState::Posted { amount, by } => (amount, Some(by)),
        HoldState::Pending | HoldState::Voided { .. } | HoldState::Lapsed { .. } => (0, None),
    };
    let lapsed = hold.state == HoldState::Pending && !hold.is_open(now);
    let form = Form {
        number: hold.id.to_i64(),
        from: Some(hold.from),
        to: Some(hold.to),
        amount: hold.amount,
        asset: Some(hold.asset),
        status: if lapsed { "lapsed" } else { hold.state.name() },
        hold: true,
        amount_posted,
        transaction,
        expires_at: Some(hold.expires_at),
        metadata: &hold.metadata,
        created_at: hold.created_at,
    };
    form.write(out, references);
}

impl Form<'_> {
    fn write(&self, out: &mut Vec<u8>, references: &References) {
        let account = |id: Option<AccountId>| {
            id.map(|id| references.seal(ReferenceKind::Account, id.to_i64()).to_string())
        };
        let transaction = self.transaction.map(|id| references.seal(ReferenceKind::Transaction, id.to_i64()));
        let expires_at = self.expires_at.map(Stamp::of);
        json::object(out, |all| {
            all.string("id", references.seal(ReferenceKind::Transfer, self.number).as_str())
                .string("object", "transfer")
                .string_or_null("from", account(self.from).as_deref())
                .string_or_null("to", account(self.to).as_deref())
                .integer("amount", self.amount)
                .string_or_null("currency", self.asset.as_ref().map(Asset::code))
                .string("status", self.status)
                .boolean("hold", self.hold)
                .integer("amount_posted", self.amount_posted)
                .string_or_null("transaction", transaction.as_ref().map(Reference::as_str))
                .string_or_null("expires_at", expires_at.as_ref().map(Stamp::as_str));
            metadata::write(all, self.metadata);
            all.string("created_at", Stamp::of(self.created_at).as_str());
        });
    }
}

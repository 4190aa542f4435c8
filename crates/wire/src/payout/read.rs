//! Reads a request to pay out.

use crate::charge::read::{account_id, currency, description, is_card_number};
use crate::fields::{self, Fields};
use crate::layout::{Layout, Shape};
use crate::metadata;
use counterfoil_core::payments::payout::create::NewPayout;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::limits::{PAYMENT_METHOD_BYTES_MAX, PEER_NAME_BYTES_MAX};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::peer::PeerName;
use counterfoil_core::types::reference::References;

pub const LAYOUT: Layout = Layout {
    of: "a payout",
    like: "{\"amount\":…,\"currency\":…}",
    fields: &[
        ("amount", Shape::Number),
        ("currency", Shape::Text),
        ("account", Shape::Text),
        ("peer", Shape::Text),
        ("destination", Shape::Text),
        ("description", Shape::Text),
        ("metadata", Shape::Text),
    ],
};

pub fn read(body: &Json, references: &References) -> Result<NewPayout, Vec<Flaw>> {
    fields::read(body, &LAYOUT, |fields| {
        let amount = fields.amount("amount");
        let asset = currency(fields);
        let account = account(fields, references);
        let peer = peer(fields);
        let destination = destination(fields);
        if fields.has("peer") && destination.is_none() && !fields.has("destination") {
            fields
                .refuse("destination", "missing: with `peer`, send the id or the code of the account there");
        }
        let description = description(fields);
        let metadata = metadata::read(fields);
        // The bounds of the amount were checked when it was read.
        let amount = Money::new(amount?, asset?).ok()?;
        Some(NewPayout { amount, account, peer, destination, description, metadata })
    })
}

fn account(fields: &mut Fields<'_, '_>, references: &References) -> Option<AccountId> {
    match fields.optional("account")? {
        Json::String(text) => {
            let id = account_id(text, references);
            if id.is_none() {
                fields.refuse(
                    "account",
                    "no such account; send an account's id, or leave `account` out to pay from your main account",
                );
            }
            id
        }
        other => {
            fields.mistyped("account", "an account's id, like ac_…", other);
            None
        }
    }
}

fn peer(fields: &mut Fields<'_, '_>) -> Option<PeerName> {
    const WHAT: &str = "the name of a peer";
    match fields.optional("peer")? {
        Json::String(text) => {
            let name = PeerName::parse(text).ok();
            if name.is_none() {
                fields.refuse(
                    "peer",
                    format!("`peer` must be 1 to {PEER_NAME_BYTES_MAX} lower-case letters, digits and `_`, the first a letter; send {WHAT}, or leave `peer` out to pay to a bank account"),
                );
            }
            name
        }
        other => {
            fields.mistyped("peer", WHAT, other);
            None
        }
    }
}

fn destination(fields: &mut Fields<'_, '_>) -> Option<Masked<String>> {
    const WHAT: &str = "the provider's name of the bank account, like ba_…, or an account at the peer";
    match fields.optional("destination")? {
        Json::String(text) => {
            let fits = (1..=PAYMENT_METHOD_BYTES_MAX).contains(&text.len());
            if is_card_number(text) {
                fields.refuse("destination", format!("`destination` looks like a number of a card or an account; never send one here, send {WHAT}"));
            } else if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
                fields.refuse(
                    "destination",
                    format!("`destination` must be 1 to {PAYMENT_METHOD_BYTES_MAX} visible ASCII characters; send {WHAT}"),
                );
            }
            Some(Masked::new(text.clone()))
        }
        other => {
            fields.mistyped("destination", WHAT, other);
            None
        }
    }
}

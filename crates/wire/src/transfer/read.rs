//! Reads requests to transfer, and to post or void a held transfer.

use crate::fields::{self, Accounts, Fields};
use crate::layout::{Layout, Shape};
use crate::metadata;
use counterfoil_core::payments::ledger::{End, HoldTerms, TransferOrder};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::reference::References;

pub const LAYOUT: Layout = Layout {
    of: "a transfer",
    like: "{\"from\":…,\"to\":…,\"amount\":…,\"currency\":…}",
    fields: &[
        ("from", Shape::Text),
        ("to", Shape::Text),
        ("amount", Shape::Number),
        ("currency", Shape::Text),
        ("hold", Shape::Truth),
        ("expires_at", Shape::Text),
        ("metadata", Shape::Text),
    ],
};

pub const POST_LAYOUT: Layout =
    Layout { of: "this request", like: "{} or {\"amount\":…}", fields: &[("amount", Shape::Number)] };

pub const VOID_LAYOUT: Layout = Layout { of: "this request", like: "{}", fields: &[] };

/// Reads the body of a request to transfer.
pub fn read(body: &Json, references: &References) -> Result<TransferOrder, Vec<Flaw>> {
    let mut accounts = Accounts::new(references);
    fields::read(body, &LAYOUT, |fields| {
        let hold = hold(fields);
        Some(TransferOrder { hold, ..unheld(fields, &mut accounts)? })
    })
}

/// Reads the fields of a transfer, in a request of its own or in a bulk request.
pub(crate) fn unheld<'a>(fields: &mut Fields<'a, '_>, accounts: &mut Accounts<'a>) -> Option<TransferOrder> {
    let from = fields.account("from", accounts);
    let to = fields.account("to", accounts);
    let amount = fields.amount("amount");
    let asset = fields.asset("currency");
    let metadata = metadata::read(fields);
    Some(TransferOrder { from: from?, to: to?, amount: amount?, asset: asset?, hold: None, metadata })
}

fn hold(fields: &mut Fields<'_, '_>) -> Option<HoldTerms> {
    let hold = fields.truth("hold", false);
    let expires_at = fields.optional_time("expires_at");
    // A `hold` of the wrong type is reported separately.
    let unheld = matches!(fields.optional("hold"), None | Some(Json::Bool(false)));
    if fields.has("expires_at") && unheld {
        fields.refuse(
            "expires_at",
            "only a hold expires; send `hold`: true with it, or leave `expires_at` out",
        );
    }
    hold.then_some(HoldTerms { expires_at })
}

/// Reads the body of a request to post a held transfer.
pub fn read_post(body: &Json) -> Result<End, Vec<Flaw>> {
    fields::read(body, &POST_LAYOUT, |fields| Some(End::Post { amount: fields.optional_amount("amount") }))
}

/// Reads the body of a request to void a held transfer, which has no fields.
pub fn read_void(body: &Json) -> Result<End, Vec<Flaw>> {
    fields::read(body, &VOID_LAYOUT, |_| Some(End::Void))
}

//! Reading a request to refund.

use crate::fields::{self, Fields};
use crate::layout::{Layout, Shape};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::reference::{ReferenceKind, References};

/// What a request to refund holds.
pub const LAYOUT: Layout = Layout {
    of: "a refund",
    like: "{\"charge\":…} or {\"charge\":…,\"amount\":…}",
    fields: &[("charge", Shape::Text), ("amount", Shape::Number)],
};

/// A request to refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refund {
    /// Of which charge. Nothing if it looks like one but this instance never named it: it is as absent as another
    /// tenant's.
    pub charge: Option<ChargeId>,
    /// How much of it; absent means all that is left.
    pub amount: Option<i64>,
}

/// Reads the body of a request to refund.
pub fn read(body: &Json, references: &References) -> Result<Refund, Vec<Flaw>> {
    fields::read(body, &LAYOUT, |fields| {
        let charge = charge(fields);
        let amount = fields.amount_if_any("amount");
        Some(Refund {
            charge: references.open(ReferenceKind::Charge, charge?).map(ChargeId::from_i64),
            amount,
        })
    })
}

/// What looks like a charge's id.
fn charge<'a>(fields: &mut Fields<'a, '_>) -> Option<&'a str> {
    const WHAT: &str = "the id of the charge to give back, like ch_…";
    let text = fields.text("charge", WHAT)?;
    if !text.starts_with(ReferenceKind::Charge.prefix()) {
        fields.refuse("charge", format!("`charge` is no charge's id; send {WHAT}"));
        return None;
    }
    Some(text)
}

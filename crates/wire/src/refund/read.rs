//! Reads a request to refund.

use crate::fields::{self, Fields};
use crate::layout::{Layout, Shape};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::reference::{ReferenceKind, References};

pub const LAYOUT: Layout = Layout {
    of: "a refund",
    like: "{\"charge\":…} or {\"charge\":…,\"amount\":…}",
    fields: &[("charge", Shape::Text), ("amount", Shape::Number)],
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refund {
    /// The charge to refund. `None` if the text looks like an id but was never issued; the charge
    /// is then as absent as another tenant's.
    pub charge: Option<ChargeId>,
    /// The part to refund; `None` means the whole remaining amount.
    pub amount: Option<i64>,
}

pub fn read(body: &Json, references: &References) -> Result<Refund, Vec<Flaw>> {
    fields::read(body, &LAYOUT, |fields| {
        let charge = charge(fields);
        let amount = fields.optional_amount("amount");
        Some(Refund {
            charge: references.open(ReferenceKind::Charge, charge?).map(ChargeId::from_i64),
            amount,
        })
    })
}

/// Whether the text looks like a charge's id.
fn charge<'a>(fields: &mut Fields<'a, '_>) -> Option<&'a str> {
    const WHAT: &str = "the id of the charge to give back, like ch_…";
    let text = fields.text("charge", WHAT)?;
    if !text.starts_with(ReferenceKind::Charge.prefix()) {
        fields.refuse("charge", format!("`charge` is no charge's id; send {WHAT}"));
        return None;
    }
    Some(text)
}

//! The public form of a conversion request. Its answer is a transaction.

use crate::fields::{self, Accounts, Fields};
use crate::layout::{Layout, Shape};
use crate::metadata;
use counterfoil_core::ledger::convert::{Rate, Rounding};
use counterfoil_core::payments::ledger::Convert;
use counterfoil_core::types::decimal::Decimal;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::reference::References;
use std::collections::BTreeMap;
use utoipa::openapi::schema::{Object, OneOf, Schema, Type};

pub const LAYOUT: Layout = Layout {
    of: "a conversion",
    like: "{\"from\":…,\"to\":…,\"amount\":…,\"rate\":…}",
    fields: &[
        ("from", Shape::Text),
        ("to", Shape::Text),
        ("amount", Shape::Number),
        ("rate", Shape::Number),
        ("rounding", Shape::Text),
        ("metadata", Shape::Text),
    ],
};

pub fn read(body: &Json, references: &References) -> Result<Convert, Vec<Flaw>> {
    let mut accounts = Accounts::new(references);
    fields::read(body, &LAYOUT, |fields| {
        let from = fields.account("from", &mut accounts);
        let to = fields.account("to", &mut accounts);
        let amount = fields.amount("amount");
        let rate = rate(fields);
        let rounding = if fields.has("rounding") {
            fields.word("rounding", Rounding::parse, "`half_even`, `half_up`, `down` or `up`")
        } else {
            Some(Rounding::HalfEven)
        };
        let metadata = metadata::read(fields);
        Some(Convert { from: from?, to: to?, amount: amount?, rate: rate?, rounding: rounding?, metadata })
    })
}

/// Reads a number, or a text that is a number, because some JSON writers cannot write exact
/// numbers.
fn rate(fields: &mut Fields<'_, '_>) -> Option<Rate> {
    const WHAT: &str = "units of the second asset per unit of the first, as a number or a text, like 1.0825";
    let number = match fields.required("rate", WHAT)? {
        Json::Number(number) => Ok(number.clone()),
        Json::String(text) => Decimal::parse(text).map_err(|error| error.to_string()),
        other => {
            fields.mistyped("rate", WHAT, other);
            return None;
        }
    };
    let rate = number.and_then(|number| Rate::new(&number).map_err(|error| error.to_string()));
    rate.map_err(|message| fields.refuse("rate", format!("`rate` is not usable: {message}"))).ok()
}

fn number_or_text() -> Schema {
    let of = |kind| Object::builder().schema_type(kind).build();
    Schema::OneOf(OneOf::builder().item(of(Type::Number)).item(of(Type::String)).build())
}

/// A request to convert one asset into another.
#[derive(Debug, utoipa::ToSchema)]
#[schema(example = json!({"from": "customer:42", "to": "customer:42:eur", "amount": 1250, "rate": "0.9215"}))]
pub struct CreateConversion {
    /// The account to debit, in the first asset: id, `ac_…`, or code.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9_.:/-]*$")]
    pub from: String,
    /// The account to credit, in the second asset: id, `ac_…`, or code.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9_.:/-]*$")]
    pub to: String,
    /// The amount to convert, in the first asset's minor unit.
    #[schema(minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: i64,
    /// Units of the second asset per unit of the first, exact, with up to 18 digits; a number or a
    /// text.
    #[schema(schema_with = number_or_text)]
    pub rate: String,
    /// How fractions of a minor unit are rounded: `half_even` (the default), `half_up`, `down` or
    /// `up`.
    #[schema(required = false, nullable, default = "half_even", pattern = "^(half_even|half_up|down|up)$")]
    pub rounding: Option<String>,
    /// Up to 50 pairs of your own: names of up to 40 bytes, values of up to 500.
    #[schema(required = false, nullable)]
    pub metadata: Option<BTreeMap<String, String>>,
}

#[cfg(test)]
mod tests;

//! The public form of an asset: request, answer and schema.

use crate::fields;
use crate::json;
use crate::layout::{Layout, Shape};
use crate::time::Stamp;
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::payments::ledger::LedgerCommand;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::limits::ASSET_EXPONENT_MAX;

pub const LAYOUT: Layout = Layout {
    of: "an asset",
    like: "{\"code\":…,\"exponent\":…}",
    fields: &[("code", Shape::Text), ("exponent", Shape::Number)],
};

/// Reads the body of a request to define an asset.
pub fn read(body: &Json) -> Result<LedgerCommand, Vec<Flaw>> {
    const WHAT: &str = "how many decimals the asset has, a whole number";
    fields::read(body, &LAYOUT, |fields| {
        let asset = fields.asset("code");
        let exponent = fields
            .required("exponent", WHAT)
            .and_then(|value| fields.whole("exponent", value, 0..=i64::from(ASSET_EXPONENT_MAX), WHAT));
        Some(LedgerCommand::Define { asset: asset?, exponent: exponent?.try_into().ok()? })
    })
}

pub fn write(out: &mut Vec<u8>, definition: &AssetDefinition) {
    json::object(out, |all| {
        all.string("object", "asset")
            .string("code", definition.asset.code())
            .count("exponent", u64::from(definition.exponent))
            .string("created_at", Stamp::of(definition.created_at).as_str());
    });
}

/// A request to define an asset of your own.
#[derive(Debug, utoipa::ToSchema)]
#[schema(example = json!({"code": "POINTS", "exponent": 0}))]
pub struct CreateAsset {
    /// Upper or lower case: a letter, then letters, digits and `_`. The codes of currencies are
    /// reserved.
    #[schema(min_length = 1, max_length = 16, pattern = "^[A-Za-z][A-Za-z0-9_]*$")]
    pub code: String,
    /// Number of decimals: with 2, an amount of 1250 is 12.50.
    #[schema(minimum = 0, maximum = 9)]
    pub exponent: u8,
}

/// An asset of your own.
#[derive(Debug, utoipa::ToSchema)]
pub struct Asset {
    /// `asset`
    pub object: String,
    /// Upper case.
    pub code: String,
    /// Number of decimals.
    pub exponent: u8,
    /// When it was defined.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// Your own assets, ordered by code.
#[derive(Debug, utoipa::ToSchema)]
pub struct AssetList {
    /// `list`
    pub object: String,
    /// The assets on the page.
    pub data: Vec<Asset>,
    /// Whether more assets follow.
    pub has_more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{fields_of, fields_written, json as body, refusals};
    use counterfoil_core::types::asset::Asset as Code;
    use counterfoil_core::types::id::TenantId;
    use counterfoil_core::types::time::Time;
    use utoipa::PartialSchema;

    #[test]
    fn golden_asset() {
        let definition = AssetDefinition {
            tenant: TenantId::from_i64(1),
            asset: Code::parse("points").unwrap(),
            exponent: 3,
            created_at: Time::EPOCH,
        };
        let mut text = Vec::new();
        write(&mut text, &definition);
        assert_eq!(
            String::from_utf8(text.clone()).unwrap(),
            r#"{"object":"asset","code":"POINTS","exponent":3,"created_at":"1970-01-01T00:00:00.000Z"}"#
        );
        assert_eq!(fields_written(&text), fields_of(Asset::schema()));
    }

    #[test]
    fn invalid_assets_are_refused() {
        refusals(
            read,
            &[
                ("[]", &[("", "must be an object, not an array")]),
                ("{}", &[("/code", "missing"), ("/exponent", "missing")]),
                (
                    r#"{"code":"1A","exponent":10}"#,
                    &[("/code", "a letter, then"), ("/exponent", "between 0 and 9")],
                ),
                (r#"{"code":5,"exponent":"2"}"#, &[("/code", "not a number"), ("/exponent", "not a text")]),
                (r#"{"code":"A","exponent":1.5}"#, &[("/exponent", "fraction")]),
                (r#"{"code":"A","exponent":-1}"#, &[("/exponent", "between")]),
                (
                    r#"{"code":"a12345678901234567","exponents":1,"exponent":1}"#,
                    &[("/exponents", "did you mean `exponent`?"), ("/code", "at most 16")],
                ),
                (
                    r#"{"code":"A","exponent":1,"zzzzzz":1}"#,
                    &[("/zzzzzz", "not a field of an asset; leave it out")],
                ),
            ],
        );
    }

    #[test]
    fn codes_are_accepted_in_any_case() {
        let Ok(LedgerCommand::Define { asset, exponent }) = read(&body(r#"{"code":"Co2_g","exponent":0}"#))
        else {
            panic!("refused")
        };
        assert_eq!((asset.code(), exponent), ("CO2_G", 0));
    }
}

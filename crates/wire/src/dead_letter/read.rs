//! Reads a request to resolve a dead letter.

use crate::fields::{self, Fields};
use crate::layout::{Layout, Shape};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::limits::METADATA_VALUE_BYTES_MAX;
use counterfoil_engine::service::Resolution;

pub const RESOLVE_LAYOUT: Layout = Layout {
    of: "this request",
    like: "{\"resolution\":\"adopt\"} or {\"resolution\":\"fail\",\"reason\":…}",
    fields: &[("resolution", Shape::Text), ("reason", Shape::Text)],
};

/// Most bytes of a reason, the same as of a metadata value.
const REASON_BYTES_MAX: usize = METADATA_VALUE_BYTES_MAX;
const WORDS: &str = "`adopt`, `void`, `fail` or `retry`";

pub fn read_resolve(body: &Json) -> Result<Resolution, Vec<Flaw>> {
    fields::read(body, &RESOLVE_LAYOUT, |fields| {
        let resolution = fields.text("resolution", WORDS);
        let resolution = match resolution? {
            "adopt" => Resolution::Adopt,
            "void" => Resolution::Void,
            "fail" => return Some(Resolution::Fail { reason: reason(fields)? }),
            "retry" => Resolution::Retry,
            _ => {
                fields.refuse("resolution", format!("`resolution` must be {WORDS}"));
                return None;
            }
        };
        if fields.has("reason") {
            fields.refuse("reason", "only `fail` takes a reason; leave `reason` out");
        }
        Some(resolution)
    })
}

/// Checks an operator's explanation of why nothing happened.
pub fn check_reason(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("is empty; say how you know that nothing happened".to_owned());
    }
    if text.len() > REASON_BYTES_MAX {
        return Err(format!("is longer than {REASON_BYTES_MAX} bytes; shorten it"));
    }
    if text.chars().any(char::is_control) {
        return Err("has a control character; write it on one line".to_owned());
    }
    Ok(())
}

fn reason(fields: &mut Fields<'_, '_>) -> Option<String> {
    let text = fields.text("reason", "how you know that nothing happened, in your own words")?;
    if let Err(message) = check_reason(text) {
        fields.refuse("reason", format!("`reason` {message}"));
        return None;
    }
    Some(text.to_owned())
}

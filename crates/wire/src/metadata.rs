//! A client's own key-value pairs, with the same bounds and form on every object.

use crate::fields::{Fields, kind};
use crate::json;
use counterfoil_core::payments::ledger::Metadata;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::limits::{
    METADATA_NAME_BYTES_MAX, METADATA_PAIRS_MAX, METADATA_VALUE_BYTES_MAX,
};
use counterfoil_core::types::mask::Masked;

const NAME: &str = "metadata";

/// Reads the field `metadata`.
pub fn read(fields: &mut Fields<'_, '_>) -> Metadata {
    let mut metadata = Metadata::new();
    let pairs = match fields.optional(NAME) {
        None => return metadata,
        Some(Json::Object(pairs)) => pairs,
        Some(other) => {
            fields.mistyped(NAME, "an object of texts", other);
            return metadata;
        }
    };
    if pairs.len() > METADATA_PAIRS_MAX {
        fields.refuse(NAME, format!("`metadata` has too many pairs; send at most {METADATA_PAIRS_MAX}"));
        return metadata;
    }
    for (name, value) in pairs.iter() {
        if name.is_empty()
            || name.contains(['[', ']'])
            || text_problem(name, METADATA_NAME_BYTES_MAX).is_some()
        {
            fields.refuse_within(
                NAME,
                name,
                format!("a metadata name must be 1 to {METADATA_NAME_BYTES_MAX} bytes without control characters and square brackets"),
            );
        }
        match value {
            Json::String(text) => {
                if let Some(message) = text_problem(text, METADATA_VALUE_BYTES_MAX) {
                    fields.refuse_within(NAME, name, format!("the metadata value {message}"));
                }
                metadata.insert(name.to_owned(), Masked::new(text.clone()));
            }
            other => {
                let found = kind(other);
                let message =
                    format!("a metadata value must be a text, not {found}; put it in double quotes");
                fields.refuse_within(NAME, name, message);
            }
        }
    }
    metadata
}

/// Writes the member `metadata`.
pub fn write(object: &mut json::Object<'_>, metadata: &Metadata) {
    object.object(NAME, |pairs| {
        for (name, value) in metadata {
            pairs.string(name, value.reveal());
        }
    });
}

/// The problem with a text, if there is one.
pub fn text_problem(text: &str, bytes_max: usize) -> Option<String> {
    if text.len() > bytes_max {
        return Some(format!("is longer than {bytes_max} bytes; shorten it"));
    }
    text.chars()
        .any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        .then(|| "has a control character other than a line break or tab; remove it".to_owned())
}

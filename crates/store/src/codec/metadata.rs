//! Metadata as a JSON object of strings, sorted by name, so that operators can read and query it.

use counterfoil_core::types::json::{Json, Object, canonical};
use counterfoil_core::types::mask::Masked;
use std::borrow::Cow;
use std::collections::BTreeMap;

pub type Metadata = BTreeMap<String, Masked<String>>;

const EMPTY: &str = "{}";

/// Encodes metadata for the store.
pub fn encode(metadata: &Metadata) -> Cow<'static, str> {
    if metadata.is_empty() {
        return Cow::Borrowed(EMPTY);
    }
    let mut object = Object::new();
    for (name, value) in metadata {
        // Insertion can only fail on a duplicate name, and a map has none.
        let _ = object.insert(name.clone(), Json::String(value.reveal().clone()));
    }
    let mut bytes = Vec::with_capacity(64);
    canonical(&Json::Object(object), &mut bytes);
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes stored metadata; `None` if [`encode`] cannot have written the text.
pub fn decode(text: &str) -> Option<Metadata> {
    if text == EMPTY {
        return Some(Metadata::new());
    }
    let Ok(Json::Object(object)) = Json::parse(text.as_bytes()) else {
        return None;
    };
    object
        .into_iter()
        .map(|(name, value)| match value {
            Json::String(value) => Some((name, Masked::new(value))),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_text() {
        let pairs = [("order", "A-1"), ("a\"b\\c", "line\nbreak \u{e9} \u{1f600}"), ("", "")];
        let metadata: Metadata = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Masked::new((*value).to_owned())))
            .collect();
        let text = encode(&metadata);
        assert_eq!(
            text,
            "{\"\":\"\",\"a\\\"b\\\\c\":\"line\\u000abreak \u{e9} \u{1f600}\",\"order\":\"A-1\"}"
        );
        assert_eq!(decode(&text), Some(metadata));
        assert_eq!(encode(&Metadata::new()), "{}");
        assert_eq!(decode("{}"), Some(Metadata::new()));
    }

    #[test]
    fn text_of_other_shapes_is_refused() {
        for bad in ["", "[]", "null", "{\"a\":1}", "{\"a\":\"b\"", "{\"a\":null}"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn control_characters_survive() {
        let metadata = Metadata::from([("a".to_owned(), Masked::new("\u{1} \n \u{1f600}".to_owned()))]);
        assert_eq!(decode(&encode(&metadata)), Some(metadata));
    }
}

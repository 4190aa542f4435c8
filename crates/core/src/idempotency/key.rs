//! The client's `Idempotency-Key`: 1–255 visible ASCII characters, bare or as a quoted
//! structured-field string. Both spellings mean the same key.

use crate::types::limits::KEY_BYTES_MAX;
use std::fmt;

/// A valid key. Masked in `Debug`, because clients choose keys and may include secrets.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Box<str>);

/// Why a header is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The header, or the text between its quotes, is empty.
    Empty,
    /// More than [`KEY_BYTES_MAX`] characters.
    TooLong,
    /// A character outside visible ASCII.
    BadCharacter,
    /// A quoted string without a closing quote, or with text after it.
    BadQuotes,
}

impl IdempotencyKey {
    /// Parses a header value.
    pub fn parse(header: &[u8]) -> Result<IdempotencyKey, KeyError> {
        let trimmed = header.trim_ascii();
        if trimmed.first() == Some(&b'"') { quoted(trimmed) } else { IdempotencyKey::from_text(trimmed) }
    }

    /// Parses the key's own characters, from a store or a path.
    pub fn from_text(text: &[u8]) -> Result<IdempotencyKey, KeyError> {
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if text.len() > KEY_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        if !text.iter().all(u8::is_ascii_graphic) {
            return Err(KeyError::BadCharacter);
        }
        std::str::from_utf8(text).map(|key| IdempotencyKey(key.into())).map_err(|_| KeyError::BadCharacter)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A structured-field string (RFC 9651): `"` … `"` with `\"` and `\\` as the only escapes.
fn quoted(header: &[u8]) -> Result<IdempotencyKey, KeyError> {
    let mut text = Vec::with_capacity(header.len());
    let mut rest = header.iter().skip(1).copied();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' if rest.len() == 0 => return IdempotencyKey::from_text(&text),
            b'"' => return Err(KeyError::BadQuotes),
            b'\\' => match rest.next() {
                Some(escaped @ (b'"' | b'\\')) => text.push(escaped),
                Some(_) | None => return Err(KeyError::BadQuotes),
            },
            plain => text.push(plain),
        }
    }
    Err(KeyError::BadQuotes)
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey(***)")
    }
}

impl KeyError {
    /// An explanation for the client.
    pub const fn sentence(self) -> &'static str {
        match self {
            KeyError::Empty => "the key is empty",
            KeyError::TooLong => "the key is longer than 255 characters",
            KeyError::BadCharacter => "the key has a character that is not visible ASCII",
            KeyError::BadQuotes => {
                "the quoted key is not a structured-field string: it must end with its closing quote and escape only \\\" and \\\\"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(header: &str) -> Result<String, KeyError> {
        IdempotencyKey::parse(header.as_bytes()).map(|key| key.as_str().to_owned())
    }

    #[test]
    fn bare_and_quoted_are_one_key() {
        for header in ["k-1", "\"k-1\"", "  k-1 ", " \"k-1\" "] {
            assert_eq!(text(header).as_deref(), Ok("k-1"), "{header}");
        }
        assert_eq!(text(r#""a\"b\\c""#).as_deref(), Ok(r#"a"b\c"#));
        assert_eq!(text(r#"a"b\c"#).as_deref(), Ok(r#"a"b\c"#));
    }

    #[test]
    fn long_and_malformed_keys_are_refused() {
        assert!(text(&"k".repeat(255)).is_ok());
        assert!(text(&format!("\"{}\"", "k".repeat(255))).is_ok());
        assert_eq!(text(&"k".repeat(256)), Err(KeyError::TooLong));
        for empty in ["", " ", "\"\""] {
            assert_eq!(text(empty), Err(KeyError::Empty));
        }
        for bad in ["a b", "a\u{7f}", "a\tb", "é", "a\u{0}", "a\r\nb", "\"a b\""] {
            assert_eq!(text(bad), Err(KeyError::BadCharacter), "{bad:?}");
        }
        for bad in ["\"", "\"a", "\"a\"b\"", r#""a\""#, r#""a\x""#, "\"a\"; q=1"] {
            assert_eq!(text(bad), Err(KeyError::BadQuotes), "{bad:?}");
        }
    }
}

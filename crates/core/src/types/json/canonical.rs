//! The canonical bytes of a JSON value, for fingerprints.
//!
//! Two values have the same bytes if and only if they are equal. The order of members and the
//! spelling of numbers and strings have no influence. The bytes are JSON and parse back to the
//! value. The form:
//! * no white space; `null`, `true`, `false`, `[a,b]`, `{"k":v}`;
//! * members sorted by the UTF-8 bytes of their unescaped keys;
//! * numbers in the canonical form of [`Decimal`](crate::types::decimal::Decimal);
//! * strings as UTF-8, where only `"` and `\` (as `\"` and `\\`) and the characters U+0000 to
//!   U+001F (as `\u00xx` in lower case, with no short forms) are escaped. Unicode is not
//!   normalized.
//!
//! Stored fingerprints depend on these bytes: a change here is a change of the storage format.

use super::Json;

/// Appends the canonical bytes of `value` to `out`.
pub fn canonical(value: &Json, out: &mut Vec<u8>) {
    match value {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(number) => number.write_canonical(out),
        Json::String(text) => write_string(text, out),
        Json::Array(elements) => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                canonical(element, out);
            }
            out.push(b']');
        }
        Json::Object(object) => {
            let mut members: Vec<(&str, &Json)> = object.iter().collect();
            // `str` is ordered by its bytes, and keys are unique.
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(key, out);
                out.push(b':');
                canonical(member, out);
            }
            out.push(b'}');
        }
    }
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(index) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        let (plain, special) = rest.split_at_checked(index).unwrap_or_default();
        out.extend_from_slice(plain);
        rest = match special {
            [byte @ (b'"' | b'\\'), after @ ..] => {
                out.extend_from_slice(&[b'\\', *byte]);
                after
            }
            [byte, after @ ..] => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[hex(byte >> 4), hex(byte & 0x0f)]);
                after
            }
            [] => special,
        };
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// The hexadecimal digit of a number below 16.
fn hex(nibble: u8) -> u8 {
    match nibble {
        0..=9 => nibble.saturating_add(b'0'),
        10.. => nibble.saturating_sub(10).saturating_add(b'a'),
    }
}

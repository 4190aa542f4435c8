//! The `Idempotency-Key` header against a second parser.

use crate::target::{Check, Kind, Target, texts};
use counterfoil_core::idempotency::key::{IdempotencyKey, KeyError};
use counterfoil_core::types::limits::KEY_BYTES_MAX;

pub(super) const TARGET: Target = Target {
    name: "key",
    seeds,
    words: &["\"", "\\\"", "\\\\", "\\", " ", "\t", "k", "key-1", "\u{e9}", "\u{7f}"],
    length_max: 600,
    short: 60_000,
    start,
};

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&["order-42", "\"order-42\"", r#" "a\"b\\c" "#, "\"", "\"\"", "\"a\"b", r#""\n""#]);
    for length in [KEY_BYTES_MAX, KEY_BYTES_MAX + 1] {
        seeds.push(vec![b'x'; length]);
        seeds.push([b"\"", &vec![b'x'; length][..], b"\""].concat());
    }
    seeds
}

fn start() -> Check {
    Box::new(|input| {
        let read = IdempotencyKey::parse(input);
        assert_eq!(read.as_ref().map(IdempotencyKey::as_str).ok(), second(input).as_deref(), "two readings");
        if let Ok(key) = &read {
            let escaped = key.as_str().replace('\\', "\\\\").replace('"', "\\\"");
            let again = IdempotencyKey::parse(format!(" \"{escaped}\"\t").as_bytes());
            assert_eq!(again.as_ref(), Ok(key), "a quoted key is the key");
            assert_eq!(IdempotencyKey::from_text(key.as_str().as_bytes()).as_ref(), Ok(key), "as stored");
            assert!(!format!("{key:?}").contains(key.as_str()) || key.as_str().len() < 4, "masked");
        }
        Kind::of(
            read.map_or_else(KeyError::sentence, |key| if key.as_str().contains('"') { "q" } else { "k" }),
        )
    })
}

/// The rule, implemented again over characters, from the outside in, with no shared code.
fn second(header: &[u8]) -> Option<String> {
    // A header is text; every byte beyond ASCII is refused anyway.
    let text: String = header.iter().map(|byte| char::from(*byte)).collect();
    let text = text.trim_matches([' ', '\t', '\n', '\r', '\u{c}']);
    let key = match text.strip_prefix('"') {
        None => text.to_owned(),
        Some(rest) => unquoted(rest.strip_suffix('"')?)?,
    };
    let visible = key.chars().all(|character| ('!'..='~').contains(&character));
    (visible && (1..=KEY_BYTES_MAX).contains(&key.chars().count())).then_some(key)
}

fn unquoted(inside: &str) -> Option<String> {
    let mut pieces = inside.split('\\');
    let first = pieces.next()?;
    let mut key = first.to_owned();
    let mut plain = first.contains('"');
    let mut after_pair = false;
    for piece in pieces {
        // An empty piece between two backslashes is an escaped backslash; the piece after it is
        // plain.
        if after_pair {
            plain |= piece.contains('"');
            key.push_str(piece);
            after_pair = false;
        } else if let Some(rest) = piece.strip_prefix('"') {
            plain |= rest.contains('"');
            key.push('"');
            key.push_str(rest);
        } else if piece.is_empty() {
            key.push('\\');
            after_pair = true;
        } else {
            return None;
        }
    }
    // A last escape without its character has consumed the closing quote.
    let dangling = inside.chars().rev().take_while(|character| *character == '\\').count() % 2 == 1;
    (!plain && !dangling).then_some(key)
}

//! JSON bodies and their canonical bytes against the second reader, and against serde's where both
//! accept the input.

use super::decimal::agree;
use super::naive::{self, Number, Value};
use crate::mutate::prng_of;
use crate::target::{Check, Kind, Target, texts};
use counterfoil_core::idempotency::fingerprint::{Fingerprint, FingerprintInput};
use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::json::{Json, canonical};
use counterfoil_prng::Prng;
use std::collections::VecDeque;

pub(super) const TARGET: Target = Target {
    name: "json",
    seeds,
    words: &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\u",
        "\\ud83d\\ude00",
        "\\u0000",
        "\\ud800",
        "\\/",
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1.0",
        "1e2",
        "100",
        "\"a\":",
        "\"\\u0061\":",
        "\"\":",
        " ",
        "\u{feff}",
        "\u{1f600}",
        "{}",
        "[]",
        "[[[[[[[[",
        "]]]]]]]]",
        "{\"a\":{\"a\":{\"a\":",
        "}}}",
    ],
    length_max: 4_096,
    short: 60_000,
    start,
};

/// Earlier bodies that a new body is compared with.
const KEPT: usize = 16;

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        r#"{"amount":1250,"currency":"usd","payment_method":"pm_card_visa","metadata":{"order":"1001"}}"#,
        r#"{"entries":[{"account":"ac_1","side":"debit","amount":5},{"account":"ac_2","side":"credit","amount":5.0}]}"#,
        r#" [ null , true, false, -12.50, "\"\\\/\b\f\n\r\t\u0000\u00E9\u20ac", "a\ud83d\uDE00z", {} ] "#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"\u0061":2}"#,
        "{\"e\u{301}\":1,\"\u{e9}\":2}",
        "[1e2,100,100.0]",
        "\u{feff}1",
        "[1,]",
        "nul",
        "\"a\nb\"",
        "\"\\ud800\"",
        "",
    ]);
    for depth in [64, 65] {
        seeds.push(["[".repeat(depth), "]".repeat(depth)].concat().into_bytes());
    }
    for members in [16, 17, 40] {
        let members: Vec<String> = (0..members).map(|n| format!("\"k{n}\":{n}")).collect();
        seeds.push(format!("{{{}}}", members.join(",")).into_bytes());
    }
    seeds
}

fn start() -> Check {
    let mut kept: VecDeque<(Json, Vec<u8>, Fingerprint, Value)> = VecDeque::new();
    Box::new(move |input| {
        let (read, second) = (Json::parse(input), naive::read(input));
        assert_eq!(read.is_ok(), second.is_some(), "accepted by one reading only: {read:?}");
        let (Ok(json), Some(second)) = (&read, second) else {
            return Kind::of(read.map_or_else(|error| error.message, |_| String::new()));
        };
        same(json, &second);
        third(input, json);
        let bytes = canonical_of(json);
        assert_eq!(Json::parse(&bytes).as_ref(), Ok(json), "the canonical bytes read back");
        let respelled = spell(&second, &mut prng_of(input));
        let again = Json::parse(respelled.as_bytes()).unwrap_or_else(|error| panic!("{error}: {respelled}"));
        assert_eq!(canonical_of(&again), bytes, "spelled as {respelled}");
        let print = fingerprint(json);
        for (other, other_bytes, other_print, other_second) in &kept {
            let equal = second == *other_second;
            assert_eq!(json == other, equal, "equality");
            assert_eq!(bytes == *other_bytes, equal, "canonical bytes");
            assert_eq!(print == *other_print, equal, "fingerprints");
        }
        let kind = Kind::of(shape(&second, 0));
        kept.push_back((json.clone(), bytes, print, second));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        kind
    })
}

fn canonical_of(json: &Json) -> Vec<u8> {
    let mut bytes = Vec::new();
    canonical(json, &mut bytes);
    bytes
}

fn fingerprint(body: &Json) -> Fingerprint {
    Fingerprint::of(FingerprintInput {
        tenant: TenantId::from_i64(1),
        method: "POST",
        path: "/v1/charges",
        query: &[],
        body,
    })
}

fn same(json: &Json, second: &Value) {
    match (json, second) {
        (Json::Null, Value::Null) => {}
        (Json::Bool(one), Value::Bool(other)) => assert_eq!(one, other),
        (Json::Number(one), Value::Number(other)) => agree(one, other),
        (Json::String(one), Value::Text(other)) => assert_eq!(one, other),
        (Json::Array(one), Value::List(other)) => {
            assert_eq!(one.len(), other.len());
            one.iter().zip(other).for_each(|(one, other)| same(one, other));
        }
        (Json::Object(one), Value::Map(other)) => {
            assert_eq!(one.len(), other.len());
            for (name, value) in other {
                same(one.get(name).expect("a member of both"), value);
            }
        }
        (one, other) => panic!("{one:?} is {other:?}"),
    }
}

/// Compares with serde, which holds numbers as doubles and therefore refuses or rounds exact
/// decimals.
fn third(input: &[u8], json: &Json) {
    match serde_json::from_slice::<serde_json::Value>(input) {
        Ok(value) => alike(json, &value),
        Err(error) => {
            assert!(error.to_string().starts_with("number out of range"), "serde refuses it: {error}");
        }
    }
}

fn alike(json: &Json, value: &serde_json::Value) {
    use serde_json::Value as Third;
    match (json, value) {
        (Json::Null, Third::Null) => {}
        (Json::Bool(one), Third::Bool(other)) => assert_eq!(one, other),
        (Json::Number(one), Third::Number(other)) => {
            if let Some(other) = other.as_i64() {
                assert_eq!(one.to_i64(), Some(other), "serde's integer");
            }
        }
        (Json::String(one), Third::String(other)) => assert_eq!(one, other),
        (Json::Array(one), Third::Array(other)) => {
            assert_eq!(one.len(), other.len());
            one.iter().zip(other).for_each(|(one, other)| alike(one, other));
        }
        (Json::Object(one), Third::Object(other)) => {
            assert_eq!(one.len(), other.len());
            for (name, value) in other {
                alike(one.get(name).expect("a member of both"), value);
            }
        }
        (one, other) => panic!("{one:?} is {other:?} to serde"),
    }
}

/// Writes the value differently: other order of members, white space, escapes and numerals.
fn spell(value: &Value, prng: &mut Prng) -> String {
    let space = prng.pick(&["", "", " ", "\n\t", " \r"], "");
    let spelled = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => spell_number(number, prng),
        Value::Text(text) => spell_text(text, prng),
        Value::List(list) => {
            let list: Vec<String> = list.iter().map(|value| spell(value, prng)).collect();
            format!("[{}{space}]", list.join(","))
        }
        Value::Map(map) => {
            let mut members: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{space}{}:{}", spell_text(name, prng), spell(value, prng)))
                .collect();
            if prng.once_in(2) {
                members.reverse();
            }
            let turn = prng.index(members.len());
            members.rotate_left(turn);
            format!("{{{}}}", members.join(","))
        }
    };
    format!("{space}{spelled}{space}")
}

fn spell_number(number: &Number, prng: &mut Prng) -> String {
    let sign = if number.negative { "-" } else { "" };
    if number.digits.is_empty() {
        return prng.pick(&["0", "-0", "0.0", "0e7", "-0.00E-9"], "0").to_owned();
    }
    let (mark, zeros) = (prng.pick(&['e', 'E'], 'e'), "0".repeat(prng.index(4)));
    match prng.index(3) {
        0 => format!("{sign}{}{mark}{}", number.digits, number.exponent),
        1 => {
            let exponent = number.exponent - i128::try_from(zeros.len()).unwrap_or(0);
            format!("{sign}{}{zeros}.{zeros}0{mark}{exponent:+}", number.digits)
        }
        _ => {
            let exponent = number.exponent + i128::try_from(number.digits.len()).unwrap_or(0);
            format!("{sign}0.{}{zeros}{mark}{exponent}", number.digits)
        }
    }
}

fn spell_text(text: &str, prng: &mut Prng) -> String {
    let mut spelled = String::from("\"");
    for character in text.chars() {
        let must = matches!(character, '"' | '\\' | '\0'..='\u{1f}');
        if must || prng.once_in(4) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let (lower, upper) = (format!("\\u{unit:04x}"), format!("\\u{unit:04X}"));
                spelled.push_str(if prng.once_in(2) { &lower } else { &upper });
            }
        } else {
            spelled.push(character);
        }
    }
    spelled.push('"');
    spelled
}

/// The first levels of a value without its contents.
fn shape(value: &Value, depth: usize) -> String {
    match value {
        Value::Null => "n".to_owned(),
        Value::Bool(_) => "b".to_owned(),
        Value::Number(_) => "d".to_owned(),
        Value::Text(text) => if text.is_ascii() { "t" } else { "u" }.to_owned(),
        Value::List(_) | Value::Map(_) if depth >= 3 => "_".to_owned(),
        Value::List(list) => {
            format!("[{}]", list.iter().take(3).map(|value| shape(value, depth + 1)).collect::<String>())
        }
        Value::Map(map) => {
            format!("{{{}}}", map.values().take(3).map(|value| shape(value, depth + 1)).collect::<String>())
        }
    }
}

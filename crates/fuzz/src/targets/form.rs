//! Form bodies against the URL standard's lenient reader.

use crate::target::{Check, Kind, Target, texts};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::json::{ITEMS_MAX, Json};
use counterfoil_wire::form::{pairs, parse};
use counterfoil_wire::layout::Layout;
use counterfoil_wire::{account, bulk, charge, transaction};

pub(super) const TARGET: Target = Target {
    name: "form",
    seeds,
    words: &[
        "&",
        "=",
        "%",
        "+",
        "[",
        "]",
        "%5B",
        "%5D",
        "%00",
        "%C3%A9",
        "%c3",
        "%zz",
        "metadata",
        "metadata[order]=",
        "amount=",
        "capture=true",
        "currency=usd",
        "entries[0][amount]=",
        "entries[1][side]=debit",
        "[0]",
        "[1]",
        "[00]",
        "transactions[0][entries][0][account]=",
        "1250",
        "1e2",
    ],
    length_max: 2_048,
    short: 12_000,
    start,
};

const LAYOUTS: [&Layout; 4] =
    [&charge::read::LAYOUT, &account::read::LAYOUT, &transaction::read::LAYOUT, &bulk::read::LAYOUT];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "amount=1250&currency=usd&payment_method=pm_card_visa&metadata[order]=1001",
        "metadata%5Ba%5D=1&description=a+b%20c%2B%C3%A9%26",
        "entries[0][account]=ac_1&entries[0][side]=debit&entries[0][amount]=5&entries[1][amount]=5.0",
        "transactions[0][entries][0][account]=ac_1&transactions[0][entries][0][amount]=5&transactions[1][metadata][a]=b",
        "&&a=1&",
        "a",
        "=1",
        "a=%",
        "a=%ff",
        "a[b=1",
        "a[]=1",
        "entries[1]=x",
        "a=1&a=2",
        "a=1&a[b]=2",
    ])
}

fn start() -> Check {
    Box::new(|input| {
        let read = pairs(input);
        match &read {
            Ok(read) => {
                let second: Vec<(String, String)> = form_urlencoded::parse(input).into_owned().collect();
                assert_eq!(*read, second, "the URL standard reads other pairs");
                assert!(sound(input), "a bad escape or a byte that is no text was taken");
            }
            Err(_) => assert!(!sound(input), "a sound form is refused"),
        }
        let kinds: Vec<String> = LAYOUTS
            .into_iter()
            .map(|layout| match parse(input, layout) {
                Ok(json) => {
                    meant(&json, layout, read.as_ref().map_or(0, Vec::len));
                    "form".to_owned()
                }
                Err(Flaw { message, .. }) => message,
            })
            .collect();
        Kind::of(kinds.join(";").replace(|character: char| !character.is_ascii_graphic(), ""))
    })
}

/// Whether every escape is valid and decodes to UTF-8, in each half of each pair.
fn sound(input: &[u8]) -> bool {
    let pairs: Vec<&[u8]> = input.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).collect();
    let halves = pairs.iter().flat_map(|pair| pair.splitn(2, |byte| *byte == b'='));
    halves.into_iter().all(text) && pairs.len() <= ITEMS_MAX
}

/// Whether bytes and escapes decode to UTF-8 together.
fn text(half: &[u8]) -> bool {
    let mut bytes = Vec::new();
    for (piece, escaped) in half.split(|byte| *byte == b'%').zip((0..).map(|place| place > 0)) {
        let (digits, plain) = if escaped { piece.split_at(piece.len().min(2)) } else { piece.split_at(0) };
        if escaped {
            let hex = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
            let digits = std::str::from_utf8(digits).ok().filter(|_| hex);
            let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
                return false;
            };
            bytes.push(byte);
        }
        bytes.extend_from_slice(plain);
    }
    String::from_utf8(bytes).is_ok()
}

/// Checks that the value, written as a form again, has the same meaning and has lost nothing.
fn meant(json: &Json, layout: &Layout, fields: usize) {
    let mut flat = Vec::new();
    flatten(json, String::new(), &mut flat);
    assert_eq!(flat.len(), fields, "a field was lost");
    let mut again = form_urlencoded::Serializer::new(String::new());
    again.extend_pairs(flat.iter().rev());
    let again = again.finish();
    assert_eq!(parse(again.as_bytes(), layout).as_ref(), Ok(json), "{again}");
}

fn flatten(json: &Json, name: String, flat: &mut Vec<(String, String)>) {
    match json {
        Json::Null => panic!("a form has no null"),
        Json::Bool(truth) => flat.push((name, truth.to_string())),
        Json::Number(number) => flat.push((name, number.canonical())),
        Json::String(text) => flat.push((name, text.clone())),
        Json::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                flatten(element, format!("{name}[{index}]"), flat);
            }
        }
        Json::Object(object) => {
            for (member, value) in object.iter() {
                let name = if name.is_empty() { member.to_owned() } else { format!("{name}[{member}]") };
                flatten(value, name, flat);
            }
        }
    }
}

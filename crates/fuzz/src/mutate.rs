//! Inputs from inputs: a few small changes, blind to the language but for its words.

use crate::dice::Dice;

/// Changes that are stacked on one input.
const CHANGES_MAX: usize = 6;
/// Bytes a change moves, repeats or deletes at once.
const RANGE_MAX: usize = 32;
/// Bytes at the edges of classes: ends, signs, brackets, the first and last of each length of UTF-8.
const EDGES: [u8; 24] = [
    0x00, 0x01, 0x09, 0x0a, 0x0d, 0x1f, 0x20, b'"', b'%', b'&', b'+', b'-', b'.', b'0', b'9', b'=', b'[',
    b'\\', b']', 0x7f, 0x80, 0xc3, 0xf4, 0xff,
];

/// A changed copy of `input`, with parts of `other` and of `words`, at most `length_max` bytes long.
pub(crate) fn mutate(
    input: &[u8],
    other: &[u8],
    words: &[&'static str],
    length_max: usize,
    dice: &mut Dice,
) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=dice.below(CHANGES_MAX) {
        change(&mut bytes, other, words, dice);
    }
    bytes.truncate(length_max);
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], words: &[&'static str], dice: &mut Dice) {
    let at = dice.below(bytes.len().saturating_add(1));
    let (from, to) = range(bytes.len(), dice);
    match dice.below(12) {
        0 => set(bytes, at, |byte| byte ^ (1 << (at % 8))),
        1 => {
            let byte = dice.byte();
            set(bytes, at, |_| byte);
        }
        2 => {
            let edge = dice.pick(&EDGES).copied().unwrap_or(0);
            set(bytes, at, |_| edge);
        }
        3 => bytes.insert(at, dice.pick(&EDGES).copied().unwrap_or(0)),
        4 => {
            bytes.drain(from..to);
        }
        5 => {
            let again: Vec<u8> = bytes.get(from..to).unwrap_or_default().to_vec();
            bytes.splice(at..at, again);
        }
        6 | 7 => {
            let word = dice.pick(words).copied().unwrap_or_default();
            bytes.splice(at..at, word.bytes());
        }
        8 => {
            let word = dice.pick(words).copied().unwrap_or_default();
            bytes.splice(from..to, word.bytes());
        }
        9 => {
            let (start, end) = range(other.len(), dice);
            bytes.splice(at..at, other.get(start..end).unwrap_or_default().iter().copied());
        }
        10 => {
            // The head of this, the tail of the other.
            bytes.truncate(at);
            let start = dice.below(other.len().saturating_add(1));
            bytes.extend_from_slice(other.get(start..).unwrap_or_default());
        }
        _ => number(bytes, at, dice),
    }
}

fn set(bytes: &mut [u8], at: usize, change: impl FnOnce(u8) -> u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = change(*byte);
    }
}

/// Puts a number near an edge in the place of the digits at or after `at`.
fn number(bytes: &mut Vec<u8>, at: usize, dice: &mut Dice) {
    const NUMBERS: [&str; 14] = [
        "0",
        "1",
        "-1",
        "255",
        "256",
        "65536",
        "2147483648",
        "4294967296",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "99999999999999999999999999999999999999999",
    ];
    let rest = bytes.get(at..).unwrap_or_default();
    let Some(first) = rest.iter().position(u8::is_ascii_digit) else { return };
    let digits = rest.iter().skip(first).take_while(|byte| byte.is_ascii_digit()).count();
    let number = dice.pick(&NUMBERS).copied().unwrap_or("0");
    bytes.splice(at + first..at + first + digits, number.bytes());
}

fn range(length: usize, dice: &mut Dice) -> (usize, usize) {
    let from = dice.below(length.saturating_add(1));
    let count = dice.below(RANGE_MAX);
    (from, from.saturating_add(count).min(length))
}

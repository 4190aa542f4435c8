//! Mutations: a few small changes of an input, without knowledge of its language except its words.

use counterfoil_prng::Prng;

/// Most changes of one input.
const CHANGES_MAX: usize = 6;
/// Most bytes that one change moves, repeats or deletes.
const RANGE_MAX: usize = 32;
/// Bytes at the edges of classes: controls, signs, brackets, the first and last of each length of
/// UTF-8.
const EDGES: [u8; 24] = [
    0x00, 0x01, 0x09, 0x0a, 0x0d, 0x1f, 0x20, b'"', b'%', b'&', b'+', b'-', b'.', b'0', b'9', b'=', b'[',
    b'\\', b']', 0x7f, 0x80, 0xc3, 0xf4, 0xff,
];

/// A stream seeded with an input (FNV-1a), for checks that need chance.
pub(crate) fn prng_of(input: &[u8]) -> Prng {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    Prng::new(input.iter().fold(0xcbf2_9ce4_8422_2325, mix))
}

/// A changed copy of `input`, with parts of `other` and of `words`, at most `length_max` bytes
/// long.
pub(crate) fn mutate(
    input: &[u8],
    other: &[u8],
    words: &[&'static str],
    length_max: usize,
    prng: &mut Prng,
) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=prng.index(CHANGES_MAX) {
        change(&mut bytes, other, words, prng);
    }
    bytes.truncate(length_max);
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], words: &[&'static str], prng: &mut Prng) {
    let at = prng.index(bytes.len().saturating_add(1));
    let (from, to) = range(bytes.len(), prng);
    match prng.index(12) {
        0 => set(bytes, at, |byte| byte ^ (1 << (at % 8))),
        1 => {
            let byte = prng.next_u64().to_le_bytes()[0];
            set(bytes, at, |_| byte);
        }
        2 => {
            let edge = prng.pick(&EDGES, 0);
            set(bytes, at, |_| edge);
        }
        3 => bytes.insert(at, prng.pick(&EDGES, 0)),
        4 => {
            bytes.drain(from..to);
        }
        5 => {
            let again: Vec<u8> = bytes.get(from..to).unwrap_or_default().to_vec();
            bytes.splice(at..at, again);
        }
        6 | 7 => {
            let word = prng.pick(words, "");
            bytes.splice(at..at, word.bytes());
        }
        8 => {
            let word = prng.pick(words, "");
            bytes.splice(from..to, word.bytes());
        }
        9 => {
            let (start, end) = range(other.len(), prng);
            bytes.splice(at..at, other.get(start..end).unwrap_or_default().iter().copied());
        }
        10 => {
            // The head of this input, the tail of the other.
            bytes.truncate(at);
            let start = prng.index(other.len().saturating_add(1));
            bytes.extend_from_slice(other.get(start..).unwrap_or_default());
        }
        _ => number(bytes, at, prng),
    }
}

fn set(bytes: &mut [u8], at: usize, change: impl FnOnce(u8) -> u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = change(*byte);
    }
}

/// Replaces the digits at or after `at` by a number near an edge.
fn number(bytes: &mut Vec<u8>, at: usize, prng: &mut Prng) {
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
    let number = prng.pick(&NUMBERS, "0");
    bytes.splice(at + first..at + first + digits, number.bytes());
}

fn range(length: usize, prng: &mut Prng) -> (usize, usize) {
    let from = prng.index(length.saturating_add(1));
    let count = prng.index(RANGE_MAX);
    (from, from.saturating_add(count).min(length))
}

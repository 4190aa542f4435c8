//! Decimal numbers against the second reader.

use super::naive::Number;
use crate::target::{Check, Kind, Target, texts};
use counterfoil_core::types::decimal::Decimal;
use std::collections::VecDeque;

pub(super) const TARGET: Target = Target {
    name: "decimal",
    seeds,
    words: &[
        "-",
        "+",
        ".",
        "e",
        "E",
        "0",
        "00",
        "1",
        "9",
        "e+",
        "e-",
        "1e400",
        "0.0",
        "9999",
        "10000",
        "000000000",
        "999999999999999999",
        "9223372036854775807",
        "9223372036854775808",
    ],
    length_max: 600,
    short: 40_000,
    start,
};

/// Earlier numbers that a new number is compared with.
const KEPT: usize = 32;

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        "0",
        "-0",
        "1",
        "-1",
        "100",
        "1e2",
        "100.0",
        "12.50",
        "-12.5",
        "0.001",
        "1e-3",
        "1E+2",
        "01",
        "1.",
        ".5",
        "+1",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "1e9999",
        "1e10000",
        "1e-9999",
        "0.1e-9998",
        "10e-10000",
        "170141183460469231731687303715884105727",
        "0e99999999999999999999",
        "92233720368547758.07e2",
    ]);
    for length in [400, 401] {
        seeds.push(vec![b'9'; length]);
        seeds.push([b"0.", &vec![b'0'; length][..], b"1"].concat());
        seeds.push([b"1", &vec![b'0'; length][..]].concat());
    }
    seeds
}

fn start() -> Check {
    let mut kept: VecDeque<(Decimal, Number)> = VecDeque::new();
    Box::new(move |input| {
        let text = String::from_utf8_lossy(input);
        let (read, second) = (Decimal::parse(&text), Number::read(&text));
        assert_eq!(read.is_ok(), second.is_some(), "accepted by one reading only: {read:?} {second:?}");
        let (Ok(number), Some(second)) = (&read, second) else {
            return Kind::of(read.map_or_else(|error| format!("{error:?}"), |_| String::new()));
        };
        agree(number, &second);
        for (other, other_second) in &kept {
            assert_eq!(
                number == other,
                second == *other_second,
                "equal in one reading only: {number} {other}"
            );
            assert_eq!(
                number.canonical() == other.canonical(),
                number == other,
                "canonical: {number} {other}"
            );
        }
        let kind = Kind::of(format!(
            "{} {:?} {} {}",
            number.is_integer(),
            number.to_i64().is_some(),
            number.scaled().is_some(),
            "x".repeat(number.canonical().len().min(24))
        ));
        kept.push_back((number.clone(), second));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        kind
    })
}

/// Checks that both readings mean the same number.
pub(super) fn agree(number: &Decimal, second: &Number) {
    let whole = second.exponent >= 0;
    assert_eq!(number.is_integer(), whole, "whole");
    assert_eq!(number.is_negative(), second.negative, "negative");
    let integer = second.integer(20).and_then(|digits| digits.parse::<i64>().ok());
    assert_eq!(number.to_i64(), integer, "as an integer");
    let sign = if second.negative { "-" } else { "" };
    let digits = format!("{sign}0{}", second.digits).parse::<i128>().ok();
    let scaled = digits.zip(i32::try_from(second.exponent).ok());
    assert_eq!(number.scaled(), scaled, "scaled");
    let again = Decimal::parse(&number.canonical());
    assert_eq!(again.as_ref(), Ok(number), "the canonical text reads back");
    assert_eq!(Number::read(&number.canonical()).as_ref(), Some(second), "the canonical text means the same");
}

//! RFC 3339 times against a second parser that counts years and months one by one.

use crate::target::{Check, Kind, Target, texts};
use counterfoil_core::types::time::Time;
use counterfoil_wire::time::{Stamp, parse};

pub(super) const TARGET: Target = Target {
    name: "time",
    seeds,
    words: &[
        "-",
        ":",
        ".",
        "T",
        "t",
        "Z",
        "z",
        "+",
        "+00:00",
        "-23:59",
        "+24:00",
        "02-29",
        "00",
        "23:59:59",
        "9999-12-31",
        "0000-01-01",
        "1900",
        "2000",
        "2100",
        ".999",
        ".0009",
        "T23:59:60",
        "\u{0968}",
    ],
    length_max: 48,
    short: 60_000,
    start,
};

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "1970-01-01T00:00:00Z",
        "2024-02-29t23:59:59.999z",
        "2026-01-31T12:00:00.1239999+02:00",
        "2026-01-01T00:30:00.25+05:45",
        "0000-01-01T00:00:00-23:59",
        "9999-12-31T23:59:59.9999-23:59",
        "2100-02-29T00:00:00Z",
        "2026-01-31 12:00:00Z",
    ])
}

fn start() -> Check {
    Box::new(|input| {
        let text = String::from_utf8_lossy(input);
        let read = parse(&text);
        assert_eq!(read.map(Time::ms), second(&text), "two readings");
        if let Some(time) = read {
            let stamp = Stamp::of(time);
            let within = parse(stamp.as_str()).expect("a written time parses");
            let years = (-62_167_219_200_000..=253_402_300_799_999).contains(&time.ms());
            assert_eq!(within == time, years, "{stamp}");
        }
        let class = |character: char| match character {
            '0'..='9' => '#',
            'a'..='z' | 'A'..='Z' => 'a',
            other => other,
        };
        Kind::of(format!("{} {}", read.is_some(), text.chars().take(12).map(class).collect::<String>()))
    })
}

fn second(text: &str) -> Option<i64> {
    let text = text.to_ascii_uppercase();
    let (date, clock) = text.split_once('T')?;
    let date: Vec<&str> = date.split('-').collect();
    let [year, month, day] = date[..] else { return None };
    let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
    let (clock, ahead) = offset(clock)?;
    let (clock, fraction) =
        clock.split_once('.').map_or((clock, None), |(clock, fraction)| (clock, Some(fraction)));
    let clock: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = clock[..] else { return None };
    let (hour, minute, second) = (number(hour, 2)?, number(minute, 2)?, number(second, 2)?);
    let milliseconds = match fraction {
        None => 0,
        Some("") => return None,
        Some(digits) if !digits.bytes().all(|byte| byte.is_ascii_digit()) => return None,
        Some(digits) => format!("{digits}00").get(..3)?.parse().ok()?,
    };
    let months = lengths(year);
    let length = *months.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let before: i64 = months.iter().take(usize::try_from(month).ok()? - 1).sum();
    let days = years_before(year) + before + day - 1;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + milliseconds - ahead * 60_000)
}

/// Splits off the offset, in minutes.
fn offset(clock: &str) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let at = clock.rfind(['+', '-'])?;
    let (clock, offset) = clock.split_at(at);
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    (hours <= 23 && minutes <= 59).then_some((clock, sign * (hours * 60 + minutes)))
}

fn number(text: &str, digits: usize) -> Option<i64> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn lengths(year: i64) -> [i64; 12] {
    [31, 28 + i64::from(leaps(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

fn leaps(year: i64) -> bool {
    year % 400 == 0 || (year % 4 == 0 && year % 100 != 0)
}

/// Days from 1970 to the beginning of a year.
fn years_before(year: i64) -> i64 {
    let days = |year| 365 + i64::from(leaps(year));
    if year >= 1970 { (1970..year).map(days).sum() } else { -(year..1970).map(days).sum::<i64>() }
}

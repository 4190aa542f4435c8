//! Times as clients see them. Written: RFC 3339, UTC, with milliseconds, always 24 characters.
//! Read: RFC 3339 with any offset and any fraction of a second, truncated to milliseconds.

use counterfoil_core::types::time::Time;
use std::fmt;

const DAY_MS: i64 = 86_400_000;
/// 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z: a year has four digits in RFC 3339.
const RANGE: (i64, i64) = (-62_167_219_200_000, 253_402_300_799_999);

/// An instant as text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stamp([u8; 24]);

impl Stamp {
    /// Formats `time`. An instant outside the years 0 to 9999 becomes the nearest one inside.
    pub fn of(time: Time) -> Stamp {
        let ms = time.ms().clamp(RANGE.0, RANGE.1);
        let (year, month, day) = civil(ms.div_euclid(DAY_MS));
        let within = ms.rem_euclid(DAY_MS);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        put(&mut text[0..4], year);
        put(&mut text[5..7], month);
        put(&mut text[8..10], day);
        put(&mut text[11..13], within / 3_600_000);
        put(&mut text[14..16], within / 60_000 % 60);
        put(&mut text[17..19], within / 1_000 % 60);
        put(&mut text[20..23], within % 1_000);
        Stamp(text)
    }

    pub fn as_str(&self) -> &str {
        // Every byte is an ASCII digit or one of the marks above.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parses an RFC 3339 text. Leap seconds are refused: the store's clock has none.
pub fn parse(text: &str) -> Option<Time> {
    let bytes = text.as_bytes();
    let (head, rest) = bytes.split_at_checked(19)?;
    let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    let separated = matches!(head.get(10), Some(b'T' | b't'));
    if !separated || marks.iter().any(|(at, mark)| head.get(*at) != Some(mark)) {
        return None;
    }
    let number = |from: usize, to: usize| digits(head.get(from..to)?);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let days = days_since_epoch(year, month, day);
    // A day that does not exist, like February 30, converts back to another date.
    if civil(days) != (year, month, day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction_ms, rest) = fraction(rest)?;
    let within = ((hour * 60 + minute) * 60 + second) * 1_000 + fraction_ms;
    Some(Time::from_ms(days * DAY_MS + within - offset_ms(rest)?))
}

/// The milliseconds of an optional fraction, and the rest of the text.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(text) = text.strip_prefix(b".") else { return Some((0, text)) };
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction, rest) = text.split_at_checked(count)?;
    let mut first = [b'0'; 3];
    for (place, digit) in first.iter_mut().zip(fraction) {
        *place = *digit;
    }
    (count > 0).then_some(())?;
    Some((digits(&first)?, rest))
}

/// The number of milliseconds by which an offset is ahead of UTC.
fn offset_ms(text: &[u8]) -> Option<i64> {
    let (sign, [h1, h2, b':', m1, m2]) = (match text {
        b"Z" | b"z" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    }) else {
        return None;
    };
    let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes) * 60_000)
}

/// Parses plain digits; callers pass at most four.
fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// The number of days from 1970-01-01 to a date; the inverse of [`civil`] for dates that exist.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let from_march = year - i64::from(month <= 2);
    let (era, year_of_era) = (from_march.div_euclid(400), from_march.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from March 1, so that the leap day is the last day of a year. An era has 400
/// such years.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn put(slots: &mut [u8], number: i64) {
    let mut rest = number;
    for slot in slots.iter_mut().rev() {
        *slot = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_instants_are_formatted() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_735_689_600_000, "2025-01-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(Stamp::of(Time::from_ms(ms)).as_str(), text, "{ms}");
        }
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "2026-01-31 12:00:00Z",
            "2026-01-31T12:00Z",
            "2026-1-31T12:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:60:00Z",
            "2026-01-31T23:59:60Z",
            "2026-02-29T12:00:00Z",
            "2026-00-10T12:00:00Z",
            "2026-13-10T12:00:00Z",
            "2026-01-00T12:00:00Z",
            "2026-01-32T12:00:00Z",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00.5",
            "2026-01-31T12:00:00,5Z",
            "2026-01-31T12:00:00+2:00",
            "2026-01-31T12:00:00+0200",
            "2026-01-31T12:00:00+24:00",
            "2026-01-31T12:00:00+00:60",
            "2026-01-31T12:00:00Z ",
            " 2026-01-31T12:00:00Z",
            "2026-01-31T12:00:00ZZ",
            "+026-01-31T12:00:00Z",
            "2026-01-31T1२:00:00Z",
            "1769860800",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn any_offset_and_fraction_is_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            ("2024-02-29t23:59:59.999z", "2024-02-29T23:59:59.999Z"),
            ("2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.500Z"),
            ("2026-01-31T12:00:00.1239999999999Z", "2026-01-31T12:00:00.123Z"),
            ("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00.000Z"),
            ("2026-01-31T12:00:00-23:59", "2026-02-01T11:59:00.000Z"),
            ("2026-01-01T00:30:00.25+05:45", "2025-12-31T18:45:00.250Z"),
            ("2026-01-31T12:00:00-00:00", "2026-01-31T12:00:00.000Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.9999Z", "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(
                parse(text).map(|time| Stamp::of(time).to_string()).as_deref(),
                Some(expected),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn written_times_read_back(ms in RANGE.0..=RANGE.1) {
            prop_assert_eq!(parse(Stamp::of(Time::from_ms(ms)).as_str()), Some(Time::from_ms(ms)));
        }

        #[test]
        fn arbitrary_texts_never_panic(text in ".*") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..146_097 {
            assert_eq!(civil(days), (year, month, day), "{days}");
            assert_eq!(days_since_epoch(year, month, day), days);
            let last = match month {
                2 => 28 + i64::from(leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > last {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }
}

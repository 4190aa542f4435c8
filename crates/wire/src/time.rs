//! Times as clients see them: RFC 3339, UTC, milliseconds, always 24 characters.

use counterfoil_core::types::time::Time;
use std::fmt;

const DAY_MS: i64 = 86_400_000;
/// 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for the year.
const RANGE: (i64, i64) = (-62_167_219_200_000, 253_402_300_799_999);

/// The text of an instant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stamp([u8; 24]);

impl Stamp {
    /// The text of `time`; instants outside the years 0 to 9999 show the nearest that fits.
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

    /// As text.
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

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from 1 March, so that the leap day is the last of its year; 400 such years are an era.
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

    #[test]
    fn known_instants() {
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
    fn every_day_of_four_centuries_follows_the_one_before() {
        let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..146_097 {
            assert_eq!(civil(days), (year, month, day), "{days}");
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

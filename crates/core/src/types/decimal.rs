//! An exact decimal number, as JSON writes it.
//!
//! Equality and hash are by value: `100`, `1e2` and `100.0` are one number, and `-0` is zero.
//! Nothing is ever rounded. The bounds apply to the value, so two spellings of a number are both
//! accepted or both refused. Integers that fit an `i64` need no allocation. Arithmetic and order
//! are absent, because money is integers.
//!
//! The canonical form, one text per value, is in `decimal/canonical.rs`.

mod canonical;

use std::fmt;

/// Significant digits of a number: far more than any amount or double has, and few enough to copy
/// freely.
pub const DIGITS_MAX: usize = 400;
/// Largest magnitude of the power of ten of a number's first significant digit.
pub const EXPONENT_MAX: i16 = 9999;

/// An exact decimal number.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Decimal(Repr);

/// One representation per value, so the derived equality and hash are by value.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    /// Every integer that fits.
    Small(i64),
    /// Every other number.
    Wide(Box<Wide>),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Wide {
    negative: bool,
    /// ASCII digits; the first and the last are not zero.
    digits: Box<[u8]>,
    /// The power of ten of the first digit.
    lead: i16,
}

/// Why a text is not a [`Decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// Not a number in JSON's grammar.
    Grammar {
        /// The byte at which the grammar is violated.
        offset: usize,
        /// The expected input at that byte.
        expected: &'static str,
    },
    /// More than [`DIGITS_MAX`] significant digits.
    Digits,
    /// A magnitude beyond [`EXPONENT_MAX`].
    Exponent,
}

impl Decimal {
    /// Parses a text that is exactly one JSON number.
    pub fn parse(text: &str) -> Result<Decimal, DecimalError> {
        let (number, used) = Decimal::scan(text.as_bytes())?;
        if used == text.len() {
            Ok(number)
        } else {
            Err(DecimalError::Grammar { offset: used, expected: "the end of the number" })
        }
    }

    /// Parses the JSON number at the beginning of `input`. Returns its length as well.
    pub(crate) fn scan(input: &[u8]) -> Result<(Decimal, usize), DecimalError> {
        let negative = input.first() == Some(&b'-');
        let start = usize::from(negative);
        let whole = digits_at(input, start);
        let mut at = start.saturating_add(whole.len());
        match whole {
            [] => {
                return Err(DecimalError::Grammar { offset: at, expected: "a digit" });
            }
            [b'0', _, ..] => {
                return Err(DecimalError::Grammar { offset: start, expected: "no zero before other digits" });
            }
            [_, ..] => {}
        }
        // The common case, an integer that fits, needs no normalization.
        if !matches!(input.get(at), Some(b'.' | b'e' | b'E'))
            && let Some(value) = integer(negative, whole, &[], 0)
        {
            return Ok((Decimal::from_i64(value), at));
        }

        let mut fraction: &[u8] = &[];
        if input.get(at) == Some(&b'.') {
            at = at.saturating_add(1);
            fraction = digits_at(input, at);
            if fraction.is_empty() {
                return Err(DecimalError::Grammar { offset: at, expected: "a digit after the point" });
            }
            at = at.saturating_add(fraction.len());
        }
        let mut exponent = 0_i64;
        if matches!(input.get(at), Some(b'e' | b'E')) {
            at = at.saturating_add(1);
            let down = input.get(at) == Some(&b'-');
            if matches!(input.get(at), Some(b'+' | b'-')) {
                at = at.saturating_add(1);
            }
            let digits = digits_at(input, at);
            if digits.is_empty() {
                return Err(DecimalError::Grammar { offset: at, expected: "a digit in the exponent" });
            }
            // Saturation is safe: no input is long enough to bring such an exponent back within the
            // bound.
            let size =
                digits.iter().fold(0_i64, |sum, byte| sum.saturating_mul(10).saturating_add(digit(*byte)));
            exponent = if down { size.saturating_neg() } else { size };
            at = at.saturating_add(digits.len());
        }
        Ok((normalise(negative, whole, fraction, exponent)?, at))
    }

    pub const fn from_i64(value: i64) -> Decimal {
        Decimal(Repr::Small(value))
    }

    pub const fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Small(value) => value.is_negative(),
            Repr::Wide(wide) => wide.negative,
        }
    }

    /// The number as an integer without trailing zeros and a power of ten: 12.50 is 125 and -1.
    /// `None` if the integer does not fit.
    pub fn scaled(&self) -> Option<(i128, i32)> {
        match &self.0 {
            Repr::Small(value) => {
                let (mut digits, mut exponent) = (i128::from(*value), 0_i32);
                while digits != 0 && digits.checked_rem(10) == Some(0) {
                    digits = digits.checked_div(10)?;
                    exponent = exponent.checked_add(1)?;
                }
                Some((digits, exponent))
            }
            Repr::Wide(wide) => wide.scaled(),
        }
    }

    /// The number as an integer; `None` if it has a fraction or does not fit.
    pub const fn to_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Small(value) => Some(*value),
            Repr::Wide(_) => None,
        }
    }

    /// Whether the number has no fraction, at any size.
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Repr::Small(_) => true,
            Repr::Wide(wide) => {
                usize::try_from(wide.lead).is_ok_and(|lead| wide.digits.len() <= lead.saturating_add(1))
            }
        }
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        Decimal::from_i64(value)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical())
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decimal({self})")
    }
}

impl fmt::Display for DecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecimalError::Grammar { offset: _, expected } => {
                write!(f, "not a JSON number: expected {expected}; write it like 1250, -12.5 or 1e3")
            }
            DecimalError::Digits => {
                write!(f, "the number has too many digits; send at most {DIGITS_MAX} significant digits")
            }
            DecimalError::Exponent => {
                write!(
                    f,
                    "the number is too large or too close to zero; keep its exponent within -{EXPONENT_MAX} and {EXPONENT_MAX}"
                )
            }
        }
    }
}

impl std::error::Error for DecimalError {}

impl Wide {
    fn scaled(&self) -> Option<(i128, i32)> {
        let mut value = 0_i128;
        for byte in &self.digits {
            let digit = i128::from(digit(*byte));
            let signed = if self.negative { digit.checked_neg()? } else { digit };
            value = value.checked_mul(10)?.checked_add(signed)?;
        }
        let below_lead = i32::try_from(self.digits.len()).ok()?.checked_sub(1)?;
        Some((value, i32::from(self.lead).checked_sub(below_lead)?))
    }
}

/// The unique representation of `whole.fraction` times ten to the `exponent`.
fn normalise(negative: bool, whole: &[u8], fraction: &[u8], exponent: i64) -> Result<Decimal, DecimalError> {
    let mut whole = if whole == b"0" { &[] } else { whole };
    let mut fraction = trim_end_zeros(fraction);
    let lead = if whole.is_empty() {
        let zeros = fraction.iter().take_while(|byte| **byte == b'0').count();
        fraction = fraction.get(zeros..).unwrap_or_default();
        exponent.saturating_sub(length(zeros)).saturating_sub(1)
    } else {
        exponent.saturating_add(length(whole.len())).saturating_sub(1)
    };
    if fraction.is_empty() {
        whole = trim_end_zeros(whole);
    }
    let count = whole.len().saturating_add(fraction.len());
    if count == 0 {
        return Ok(Decimal::from_i64(0));
    }
    if count > DIGITS_MAX {
        return Err(DecimalError::Digits);
    }
    let lead = i16::try_from(lead).map_err(|_| DecimalError::Exponent)?;
    if lead.unsigned_abs() > EXPONENT_MAX.unsigned_abs() {
        return Err(DecimalError::Exponent);
    }
    // The zeros between the last significant digit and the point; `None` if there is a fraction.
    let zeros = usize::try_from(lead).ok().and_then(|lead| lead.saturating_add(1).checked_sub(count));
    if let Some(value) = zeros.and_then(|zeros| integer(negative, whole, fraction, zeros)) {
        return Ok(Decimal::from_i64(value));
    }
    let digits = [whole, fraction].concat().into_boxed_slice();
    Ok(Decimal(Repr::Wide(Box::new(Wide { negative, digits, lead }))))
}

/// The digits of `whole` and `fraction` and a number of zeros, as one integer if it fits.
fn integer(negative: bool, whole: &[u8], fraction: &[u8], zeros: usize) -> Option<i64> {
    let mut below = 0_i64;
    // Counts down from zero, because only the negative side holds every i64.
    for byte in whole.iter().chain(fraction) {
        below = below.checked_mul(10)?.checked_sub(digit(*byte))?;
    }
    below = below.checked_mul(10_i64.checked_pow(u32::try_from(zeros).ok()?)?)?;
    if negative { Some(below) } else { below.checked_neg() }
}

/// The digits of `input` from `start` on.
fn digits_at(input: &[u8], start: usize) -> &[u8] {
    let rest = input.get(start..).unwrap_or_default();
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest.get(..count).unwrap_or_default()
}

fn trim_end_zeros(mut digits: &[u8]) -> &[u8] {
    while let [rest @ .., b'0'] = digits {
        digits = rest;
    }
    digits
}

fn digit(byte: u8) -> i64 {
    i64::from(byte.saturating_sub(b'0'))
}

/// A length as a signed number; no slice is too long for it.
fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;

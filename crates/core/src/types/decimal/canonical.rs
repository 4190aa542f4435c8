//! The canonical text of a number: one per value, never longer than its digits and a few
//! characters.
//!
//! The text has every significant digit. `lead` is the power of ten of the first one:
//! * zero is `0`; a negative number starts with `-`;
//! * `lead` from -6 to 20 is written plainly, without superfluous zeros: `1250`, `-12.5`,
//!   `0.000001`;
//! * any other is scientific, with one digit before the point and a signed exponent: `1e+21`,
//!   `-1.25e-7`.
//!
//! The layout follows ECMAScript's `Number::toString`, without its rounding to a double. Stored
//! fingerprints depend on this form.

use super::{Decimal, Repr, Wide};

/// The range of `lead` in which the canonical form is plain.
const PLAIN: std::ops::RangeInclusive<i16> = -6..=20;

impl Decimal {
    /// The canonical form, described in `decimal/canonical.rs`.
    pub fn canonical(&self) -> String {
        let mut out = Vec::new();
        self.write_canonical(&mut out);
        // Every byte of the form is ASCII.
        out.into_iter().map(char::from).collect()
    }

    /// Appends the canonical form to `out`.
    pub fn write_canonical(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Small(value) => write_i64(*value, out),
            Repr::Wide(wide) => wide.write(out),
        }
    }
}

impl Wide {
    fn write(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        let size = usize::from(self.lead.unsigned_abs());
        if !PLAIN.contains(&self.lead) {
            self.write_split(1, out);
            out.extend_from_slice(if self.lead.is_negative() { b"e-" } else { b"e+" });
            write_i64(i64::from(self.lead.unsigned_abs()), out);
        } else if self.lead.is_negative() {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', size.saturating_sub(1)));
            out.extend_from_slice(&self.digits);
        } else {
            self.write_split(size.saturating_add(1), out);
        }
    }

    /// Writes `whole` digits, padded with zeros, and the rest, if any, after a point.
    fn write_split(&self, whole: usize, out: &mut Vec<u8>) {
        match self.digits.split_at_checked(whole) {
            Some((before, [])) => out.extend_from_slice(before),
            Some((before, after)) => {
                out.extend_from_slice(before);
                out.push(b'.');
                out.extend_from_slice(after);
            }
            None => {
                out.extend_from_slice(&self.digits);
                out.extend(std::iter::repeat_n(b'0', whole.saturating_sub(self.digits.len())));
            }
        }
    }
}

fn write_i64(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let mut rest = value.unsigned_abs();
    let mut text = [b'0'; 20];
    let mut start = 0;
    for (index, slot) in text.iter_mut().enumerate().rev() {
        *slot = u8::try_from(rest % 10).unwrap_or_default().saturating_add(b'0');
        rest /= 10;
        if rest == 0 {
            start = index;
            break;
        }
    }
    out.extend_from_slice(text.get(start..).unwrap_or_default());
}

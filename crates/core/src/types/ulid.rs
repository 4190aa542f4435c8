//! ULIDs for requests, audit records and events: 48 bits of time, 80 random bits, 26 characters.

use super::time::Time;
use std::fmt;

/// A ULID. Its text sorts by time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ulid(u128);

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

impl Ulid {
    /// A ULID from a time and the low 80 bits of `chance`.
    pub fn new(at: Time, chance: u128) -> Ulid {
        let ms = u128::try_from(at.ms().max(0)).unwrap_or(0) & ((1 << 48) - 1);
        Ulid((ms << 80) | (chance & ((1 << 80) - 1)))
    }

    /// The ULID `steps` after this one. Records of one decision share their random bits and stay in
    /// order.
    pub const fn after(self, steps: u8) -> Ulid {
        Ulid(self.0.wrapping_add(widen(steps)))
    }

    pub const fn from_bytes(bytes: [u8; 16]) -> Ulid {
        Ulid(u128::from_be_bytes(bytes))
    }

    /// 16 bytes, big-endian, so that bytes sort by time.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

#[expect(clippy::as_conversions, reason = "u8 always fits u128, and `From` is not const")]
const fn widen(steps: u8) -> u128 {
    steps as u128
}

impl fmt::Display for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [b'0'; 26];
        let mut rest = self.0;
        for slot in text.iter_mut().rev() {
            let digit = usize::try_from(rest & 31).unwrap_or(0);
            *slot = ALPHABET.get(digit).copied().unwrap_or(b'0');
            rest >>= 5;
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Ulid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_text() {
        let id = Ulid::new(Time::from_ms(1_469_918_176_385), 0x1234_5678_9abc_def0_1234);
        assert_eq!(id.to_string(), "01ARYZ6S4128T5CY4TQKFF04HM");
        assert_eq!(Ulid::from_bytes(id.to_bytes()), id);
    }

    #[test]
    fn later_sorts_later_and_siblings_stay_in_order() {
        let early = Ulid::new(Time::from_ms(1), u128::MAX);
        let late = Ulid::new(Time::from_ms(2), 0);
        assert!(early < late && early.to_string() < late.to_string());
        assert!(late < late.after(1) && late.after(1) < late.after(2));
        assert_eq!(late.after(0), late);
    }
}

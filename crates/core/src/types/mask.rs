//! Values that must not reach a log. The type does the masking, so no caller can forget to.

use std::fmt;

/// A secret or personal value. `Debug` and `Display` never show it; [`Masked::reveal`] marks each
/// real use.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Masked<T>(T);

impl<T> Masked<T> {
    pub const fn new(value: T) -> Masked<T> {
        Masked(value)
    }

    /// The value itself, for its legitimate users: the store, the provider, the owner's answer.
    pub const fn reveal(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Masked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T> fmt::Display for Masked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_debug_nor_display_shows_the_value() {
        let card = Masked::new("pm_card_visa");
        assert_eq!(format!("{card:?} {card}"), "*** ***");
        assert_eq!(*card.reveal(), "pm_card_visa");
    }
}

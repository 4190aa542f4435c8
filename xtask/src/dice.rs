//! Chance with a seed (SplitMix64): the same seed asks for the same charges and kills at the same distances.

/// A stream of chance.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Another stream, of its own from here on.
    pub(crate) fn fork(&mut self) -> Dice {
        Dice(self.roll())
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0 if there is none. The bias is far below anything measured here.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.roll().checked_rem(bound).unwrap_or(0)
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_stream() {
        let mut dice = Dice::new(0);
        assert_eq!([dice.roll(), dice.roll()], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
        assert_eq!(dice.below(0), 0);
        assert!((0..100).all(|_| dice.below(7) < 7));
        assert_ne!(dice.fork().roll(), dice.roll());
    }
}

//! Seeded chance (splitmix64): the same seed gives the same throws.

/// Dice that can be thrown for ever.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// True with the given odds from 0 (never) to 1 (always).
    #[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "odds are chances, not money")]
    pub(crate) fn comes_up(&mut self, odds: f64) -> bool {
        // The upper 53 bits fill a float between 0 and 1, 1 excluded, without rounding.
        let throw = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        throw < odds
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn odds_hold_at_the_ends_and_between() {
        let mut dice = Dice::new(7);
        assert!((0..1000).all(|_| dice.comes_up(1.0)));
        assert!((0..1000).all(|_| !dice.comes_up(0.0)));
        let often = (0..10_000).filter(|_| dice.comes_up(0.25)).count();
        assert!((2300..2700).contains(&often), "{often}");
    }

    #[test]
    fn the_same_seed_throws_the_same() {
        let throws = |seed| {
            let mut dice = Dice::new(seed);
            (0..64).map(|_| dice.comes_up(0.5)).collect::<Vec<_>>()
        };
        assert_eq!(throws(1), throws(1));
        assert_ne!(throws(1), throws(2));
    }
}

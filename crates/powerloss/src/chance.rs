//! Seeded random numbers: the same seed gives the same numbers.

/// A stream of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The stream for a place within a seed.
    pub fn at(seed: u64, place: &[usize]) -> Chance {
        let words = place.iter().map(|word| u64::try_from(*word).unwrap_or(u64::MAX));
        Chance(words.fold(scramble(seed), |state, word| scramble(state ^ word)))
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.word().checked_rem(bound).unwrap_or(0)).unwrap_or(0)
    }

    /// True with a probability of `odds` percent.
    pub fn percent(&mut self, odds: usize) -> bool {
        self.below(100) < odds
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.word().to_le_bytes()).take(count).collect()
    }
}

fn scramble(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

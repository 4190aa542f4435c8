//! Seeded random numbers: the same seed gives the same numbers on every machine.

use std::hash::Hasher;

/// A hasher with the same results on every machine.
#[derive(Clone, Debug, Default)]
pub struct FixedHasher(u64);

impl Hasher for FixedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = scramble(self.0 ^ word);
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.0 = scramble(self.0 ^ u64::from_le_bytes(word));
        }
    }
}

/// A stream of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Chance(u64);

/// Mixes words into a single seed, so that every place has a separate stream.
pub fn mix(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |state, word| scramble(state ^ *word))
}

fn scramble(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Chance {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(scramble(seed))
    }

    /// The stream of a place within a seed.
    pub fn at(words: &[u64]) -> Chance {
        Chance(mix(words))
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    pub fn wide(&mut self) -> u128 {
        (u128::from(self.word()) << 64) | u128::from(self.word())
    }

    /// A number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.word().checked_rem(bound).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// True with odds of `odds` in a million.
    pub fn per_million(&mut self, odds: u64) -> bool {
        self.below(1_000_000) < odds
    }

    /// True with odds of `odds` in a hundred.
    pub fn percent(&mut self, odds: u64) -> bool {
        self.below(100) < odds
    }

    /// One element of the list, or `otherwise` if the list is empty.
    pub fn pick<T: Copy>(&mut self, list: &[T], otherwise: T) -> T {
        let place = usize::try_from(self.below(u64::try_from(list.len()).unwrap_or(0))).unwrap_or(0);
        list.get(place).copied().unwrap_or(otherwise)
    }
}

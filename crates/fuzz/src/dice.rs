//! Chance from a seed: the same seed, the same inputs, on every machine.

/// A generator (SplitMix64): small, fast, and good enough to pick mutations.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The sequence of `seed`.
    pub const fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The sequence that belongs to `input`: a check that needs chance takes it from what it checks.
    pub fn of(input: &[u8]) -> Dice {
        let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Dice(input.iter().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; zero if the bound is.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        let drawn = self.roll().checked_rem(bound).unwrap_or(0);
        usize::try_from(drawn).unwrap_or(0)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        let [byte, ..] = self.roll().to_le_bytes();
        byte
    }

    /// One of `choices`.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let at = self.below(choices.len());
        choices.get(at)
    }
}

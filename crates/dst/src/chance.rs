//! Seeded random numbers: the same seed gives the same numbers on every machine.

pub use counterfoil_prng::{Prng as Chance, mix};

use counterfoil_prng::scramble;
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

//! A blocked Bloom filter: 16 bits per key, one cache line per look-up.

use super::partitions::KeyPrefix;
use std::sync::atomic::{AtomicU64, Ordering};

/// A block of 512 bits is made for this many keys.
const KEYS_PER_BLOCK: usize = 32;
/// An odd constant with well-mixed bits.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// An added key is always found; of the other keys, fewer than one in a hundred is.
#[derive(Debug)]
pub(super) struct BloomFilter(Box<[Block]>);

/// One cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Block([AtomicU64; 8]);

impl BloomFilter {
    pub(super) fn with_room(keys: usize) -> BloomFilter {
        let blocks = keys.div_ceil(KEYS_PER_BLOCK).max(1);
        BloomFilter((0..blocks).map(|_| Block::default()).collect())
    }

    pub(super) fn add(&self, key: KeyPrefix) {
        for (word, bit) in self.bits_of(key) {
            // Don't write a bit that is set: other threads read this cache line.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn may_have(&self, key: KeyPrefix) -> bool {
        self.bits_of(key).all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// The six bits of a key. The high bits of the prefix select the block; six 9-bit slices of a
    /// hash of the prefix select bits in the block. Prefixes are uniform, because keys are digests.
    fn bits_of(&self, key: KeyPrefix) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let blocks = u128::try_from(self.0.len()).unwrap_or(1);
        let index = usize::try_from((u128::from(key.0) * blocks) >> 64).unwrap_or(0);
        let hash = (key.0 ^ (key.0 >> 32)).wrapping_mul(MULTIPLIER);
        let hash = hash ^ (hash >> 29);
        let block = self.0.get(index).map(|block| &block.0);
        let slices = (0..6_u32).map(move |slice| hash >> slice.saturating_mul(9));
        slices.filter_map(move |slice| {
            let word = block?.get(usize::try_from((slice >> 6) & 7).unwrap_or(0))?;
            Some((word, 1 << (slice & 63)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::idempotency::claim::ClaimId;
    use counterfoil_core::types::digest::Digest;

    fn key(number: u64) -> KeyPrefix {
        ClaimId::from_digest(Digest::of("key", &[&number.to_be_bytes()])).into()
    }

    #[test]
    fn added_keys_are_always_found_and_other_keys_hardly_ever() {
        let filter = BloomFilter::with_room(10_000);
        (0..10_000).for_each(|number| filter.add(key(number)));
        assert!((0..10_000).all(|number| filter.may_have(key(number))));
        let mistaken = (10_000..30_000).filter(|number| filter.may_have(key(*number))).count();
        assert!(mistaken < 200, "{mistaken} of 20,000");
    }
}

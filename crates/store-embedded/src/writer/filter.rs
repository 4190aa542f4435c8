//! A filter after Bloom: what was added is always known, and of the rest nearly nothing.

use crate::tables::volumes::Abridged;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys for which one block is made: 16 bits each.
const KEYS_PER_BLOCK: usize = 32;
/// An odd number whose bits are in no order.
const STIR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The abridged digest of a key names one block and six bits in it.
#[derive(Debug)]
pub(super) struct Filter(Box<[Block]>);

/// One line of a processor's cache.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Block([AtomicU64; 8]);

impl Filter {
    pub(super) fn with_room(keys: usize) -> Filter {
        let blocks = keys.div_ceil(KEYS_PER_BLOCK).max(1);
        Filter((0..blocks).map(|_| Block::default()).collect())
    }

    pub(super) fn add(&self, key: Abridged) {
        for (word, bit) in self.places(key) {
            // What is there already is not written again: others read this line.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn has(&self, key: Abridged) -> bool {
        self.places(key).all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// The bits of a key: which block says its upper part, which bits in it its lower one, stirred. It is of a digest: every part is
    /// as good as chance.
    fn places(&self, key: Abridged) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let blocks = u128::try_from(self.0.len()).unwrap_or(1);
        let index = usize::try_from((u128::from(key.0) * blocks) >> 64).unwrap_or(0);
        let second = (key.0 ^ (key.0 >> 32)).wrapping_mul(STIR);
        let second = second ^ (second >> 29);
        let block = self.0.get(index).map(|block| &block.0);
        let picks = (0..6_u32).map(move |pick| second >> pick.saturating_mul(9));
        picks.filter_map(move |pick| {
            let word = block?.get(usize::try_from((pick >> 6) & 7).unwrap_or(0))?;
            Some((word, 1 << (pick & 63)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::idempotency::claim::ClaimId;
    use counterfoil_core::types::digest::Digest;

    fn key(number: u64) -> Abridged {
        ClaimId::from_digest(Digest::of("key", &[&number.to_be_bytes()])).into()
    }

    #[test]
    fn what_was_added_is_always_known_and_of_the_rest_nearly_nothing() {
        let filter = Filter::with_room(10_000);
        (0..10_000).for_each(|number| filter.add(key(number)));
        assert!((0..10_000).all(|number| filter.has(key(number))));
        let mistaken = (10_000..30_000).filter(|number| filter.has(key(*number))).count();
        assert!(mistaken < 200, "{mistaken} of 20,000");
    }
}

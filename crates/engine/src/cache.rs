//! Settled claims this process committed itself, kept in memory so that a replay need not ask the store.
//!
//! Only the holder that committed an answer may put it here, a settled claim never changes, and its windows are
//! judged at read time: an entry can be missing, never wrong. When a key is free again the entry says so and the store
//! decides.

use counterfoil_core::idempotency::claim::{Claim, ClaimId};
use counterfoil_store::ClaimMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Entries of one generation in one shard: 16,384 answers of about a kilobyte in all. Retries come soon or never; an
/// answer that is not here costs its retry one refused claim.
const GENERATION_MAX: usize = 512;
const SHARDS: usize = 16;

/// The cache.
#[derive(Default)]
pub(crate) struct Cache {
    shards: [Mutex<Shard>; SHARDS],
}

/// Two generations: when the young one is full it becomes the old one, and the old one is forgotten. What is asked
/// for again moves back to the young one.
#[derive(Default)]
struct Shard {
    young: ClaimMap<Arc<Claim>>,
    old: ClaimMap<Arc<Claim>>,
}

impl Cache {
    /// Keeps a settled claim.
    pub(crate) fn keep(&self, claim: Arc<Claim>) {
        if claim.state.settled().is_some() {
            self.shard(claim.id).keep(claim);
        }
    }

    /// The settled claim of that id, if it is still here.
    pub(crate) fn find(&self, id: ClaimId) -> Option<Arc<Claim>> {
        let mut shard = self.shard(id);
        if let Some(claim) = shard.young.get(&id) {
            return Some(Arc::clone(claim));
        }
        let claim = shard.old.remove(&id)?;
        shard.keep(Arc::clone(&claim));
        Some(claim)
    }

    fn shard(&self, id: ClaimId) -> MutexGuard<'_, Shard> {
        let [first, ..] = id.digest().as_bytes();
        let [fallback, ..] = &self.shards;
        let shard = self.shards.get(usize::from(*first) % SHARDS).unwrap_or(fallback);
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn keep(&mut self, claim: Arc<Claim>) {
        if self.young.len() >= GENERATION_MAX {
            // Its memory is kept for those that come.
            std::mem::swap(&mut self.old, &mut self.young);
            self.young.clear();
        }
        self.old.remove(&claim.id);
        self.young.insert(claim.id, claim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::idempotency::claim::ClaimState;
    use counterfoil_core::types::digest::Digest;
    use counterfoil_store::conformance::fixtures;
    use counterfoil_store::conformance::variants;

    fn settled(number: i64) -> Claim {
        let state =
            variants::states().into_iter().find(|state| matches!(state, ClaimState::Completed(_))).unwrap();
        fixtures::claim_in(number, state)
    }

    #[test]
    fn what_was_kept_is_found_and_nothing_else() {
        let cache = Cache::default();
        cache.keep(Arc::new(settled(1)));
        cache.keep(Arc::new(fixtures::claim(2)));
        assert_eq!(cache.find(settled(1).id).as_deref(), Some(&settled(1)));
        assert_eq!(cache.find(settled(2).id), None, "a claim in flight is not kept");
        assert_eq!(cache.find(settled(3).id), None);
    }

    #[test]
    fn it_is_bounded_and_keeps_what_is_asked_for() {
        let cache = Cache::default();
        let first = settled(0);
        let numbered = |number: u32| {
            let id = ClaimId::from_digest(Digest::of("test", &[&number.to_be_bytes()]));
            Arc::new(Claim { id, ..first.clone() })
        };
        for number in 0..100_000 {
            cache.keep(numbered(number));
            assert!(cache.find(numbered(0).id).is_some(), "forgotten after {number}");
        }
        let shards = cache.shards.iter().map(|shard| shard.lock().unwrap());
        let kept: usize = shards.map(|shard| shard.young.len() + shard.old.len()).sum();
        assert!(kept <= SHARDS * 2 * GENERATION_MAX, "{kept}");
    }
}

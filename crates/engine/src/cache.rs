//! The answer cache: replays come from this process's memory, then from a cache shared by several
//! servers, and only then from the store.
//!
//! Only the holder that committed an answer may put it here. A settled claim never changes, and its
//! windows are judged at read time, so an entry can be missing, never wrong. If an entry says that
//! the key is free again, the store decides.

use crate::answers::SharedAnswers;
use counterfoil_core::idempotency::claim::{Claim, ClaimId};
use counterfoil_core::types::time::Time;
use counterfoil_store::ClaimMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Entries of a generation in a single shard: 16,384 answers of about a kilobyte in all. Retries
/// come soon or never. A retry whose answer is not here costs one refused claim.
const GENERATION_MAX: usize = 512;
const SHARDS: usize = 16;

/// The two levels of the answer cache; the second is optional.
pub(crate) struct AnswerCache {
    memory: MemoryCache,
    shared: Option<SharedAnswers>,
}

impl AnswerCache {
    pub(crate) fn new(shared: Option<SharedAnswers>) -> AnswerCache {
        AnswerCache { memory: MemoryCache::default(), shared }
    }

    pub(crate) async fn find(&self, id: ClaimId) -> Option<Arc<Claim>> {
        match self.memory.find(id) {
            Some(claim) => Some(claim),
            None => self.shared.as_ref()?.find(id).await.map(Arc::new),
        }
    }

    /// Caches a settled claim in memory. Returns its publication to the shared cache, to be run in
    /// the background.
    pub(crate) fn insert(
        &self,
        claim: Arc<Claim>,
        now: Time,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let shared = self.shared.clone();
        let publication = shared.map(|shared| {
            let claim = Arc::clone(&claim);
            async move { shared.keep(&claim, now).await }
        });
        self.memory.insert(claim);
        publication
    }
}

/// Answers that this process committed.
#[derive(Default)]
struct MemoryCache {
    shards: [Mutex<Shard>; SHARDS],
}

/// Two generations: a full young generation replaces the old one. An entry found again moves back
/// to the young generation.
#[derive(Default)]
struct Shard {
    young: ClaimMap<Arc<Claim>>,
    old: ClaimMap<Arc<Claim>>,
}

impl MemoryCache {
    fn insert(&self, claim: Arc<Claim>) {
        if claim.state.settled().is_some() {
            self.shard(claim.id).insert(claim);
        }
    }

    fn find(&self, id: ClaimId) -> Option<Arc<Claim>> {
        let mut shard = self.shard(id);
        if let Some(claim) = shard.young.get(&id) {
            return Some(Arc::clone(claim));
        }
        let claim = shard.old.remove(&id)?;
        shard.insert(Arc::clone(&claim));
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
    fn insert(&mut self, claim: Arc<Claim>) {
        if self.young.len() >= GENERATION_MAX {
            // `clear` keeps the allocation for the next entries.
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
    fn cached_claims_are_found_and_no_others() {
        let cache = MemoryCache::default();
        cache.insert(Arc::new(settled(1)));
        cache.insert(Arc::new(fixtures::claim(2)));
        assert_eq!(cache.find(settled(1).id).as_deref(), Some(&settled(1)));
        assert_eq!(cache.find(settled(2).id), None, "a claim in flight is not cached");
        assert_eq!(cache.find(settled(3).id), None);
    }

    #[tokio::test]
    async fn without_a_shared_cache_answers_are_cached_in_memory_only() {
        let cache = AnswerCache::new(None);
        assert!(cache.insert(Arc::new(settled(1)), fixtures::NOW).is_none());
        assert_eq!(cache.find(settled(1).id).await.as_deref(), Some(&settled(1)));
        assert_eq!(cache.find(settled(2).id).await, None);
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_entries_in_use() {
        let cache = MemoryCache::default();
        let first = settled(0);
        let numbered = |number: u32| {
            let id = ClaimId::from_digest(Digest::of("test", &[&number.to_be_bytes()]));
            Arc::new(Claim { id, ..first.clone() })
        };
        for number in 0..100_000 {
            cache.insert(numbered(number));
            assert!(cache.find(numbered(0).id).is_some(), "forgotten after {number}");
        }
        let shards = cache.shards.iter().map(|shard| shard.lock().unwrap());
        let entries: usize = shards.map(|shard| shard.young.len() + shard.old.len()).sum();
        assert!(entries <= SHARDS * 2 * GENERATION_MAX, "{entries}");
    }
}

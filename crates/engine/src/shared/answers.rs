//! Answers in a cache shared by several servers: a retry at another server is answered without the
//! store.
//!
//! Only the holder that committed an answer publishes it. A tag under the store's secret binds the
//! entry to the claim, so altered, truncated, swapped or forged entries count as missing. The
//! reader judges the windows. An entry can therefore be missing, never wrong, and losing the cache
//! costs only time.

use counterfoil_core::idempotency::claim::{Claim, ClaimId};
use counterfoil_core::types::digest::{Digest, MacKey};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::codec::settled;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Longest entry: about thirty times a usual answer. Longer answers are rare, and their retries can
/// ask the store.
pub const ENTRY_BYTES_MAX: usize = 65_536;

const NAME: &str = "counterfoil/answer/name/1";
const ENTRY: &str = "counterfoil/answer/entry/1";

/// A call to the shared cache.
pub type Fetched<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A cache outside this process. The adapter bounds every call, far below a client's patience. A
/// cache that cannot be reached behaves as an empty one.
pub trait SharedCache: Send + Sync + 'static {
    /// The entry of that name. An entry longer than [`ENTRY_BYTES_MAX`] may be cut one byte after
    /// the limit.
    fn get<'a>(&'a self, name: &'a str) -> Fetched<'a, Option<Vec<u8>>>;

    /// Stores `bytes` under the name for `ttl`, replacing an earlier entry.
    fn put<'a>(&'a self, name: &'a str, bytes: Vec<u8>, ttl: Span) -> Fetched<'a, ()>;
}

/// The shared answers of a store.
#[derive(Clone)]
pub struct SharedAnswers {
    cache: Arc<dyn SharedCache>,
    mac: MacKey,
}

impl SharedAnswers {
    /// Answers in `cache`, sealed under the store's secret.
    pub fn new(cache: Arc<dyn SharedCache>, mac: MacKey) -> SharedAnswers {
        SharedAnswers { cache, mac }
    }

    /// Finds the settled claim of that id. Entries that were not sealed under the store's secret do
    /// not count.
    pub async fn find(&self, id: ClaimId) -> Option<Claim> {
        let entry = self.cache.get(&self.name(id)).await?;
        self.open(id, &entry)
    }

    /// Publishes a settled claim until its replay window ends. Only the holder that committed the
    /// claim may call this, after the commit.
    pub async fn keep(&self, claim: &Claim, now: Time) {
        let Some(settled) = claim.state.settled() else { return };
        let ttl = settled.windows.replay_until.since(now);
        if ttl == Span::ZERO {
            return;
        }
        if let Some(entry) = self.seal(claim) {
            self.cache.put(&self.name(claim.id), entry, ttl).await;
        }
    }

    /// The entry's name, keyed with the store's secret: stores that share a cache have tenants of
    /// the same number, and clients choose the same keys.
    fn name(&self, id: ClaimId) -> String {
        self.mac.tag(NAME, &[id.digest().as_bytes()]).hex()
    }

    /// The entry's bytes: the tag, then the claim.
    fn seal(&self, claim: &Claim) -> Option<Vec<u8>> {
        let bytes = settled::encode(claim)?;
        let tag = self.mac.tag(ENTRY, &[claim.id.digest().as_bytes(), &bytes]);
        let entry = [tag.as_bytes().as_slice(), &bytes].concat();
        (entry.len() <= ENTRY_BYTES_MAX).then_some(entry)
    }

    fn open(&self, id: ClaimId, entry: &[u8]) -> Option<Claim> {
        let (tag, bytes) = entry.split_first_chunk::<32>()?;
        let is_ours = self.mac.is_tag(&Digest::from_bytes(*tag), ENTRY, &[id.digest().as_bytes(), bytes]);
        is_ours.then(|| settled::decode(id, bytes))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::idempotency::claim::ClaimState;
    use counterfoil_store::conformance::{fixtures, variants};
    use std::collections::HashMap;
    use std::future::ready;
    use std::sync::Mutex;

    #[derive(Default)]
    struct FakeCache(Mutex<HashMap<String, (Vec<u8>, Span)>>);

    impl SharedCache for FakeCache {
        fn get<'a>(&'a self, name: &'a str) -> Fetched<'a, Option<Vec<u8>>> {
            Box::pin(ready(self.0.lock().unwrap().get(name).map(|(bytes, _)| bytes.clone())))
        }

        fn put<'a>(&'a self, name: &'a str, bytes: Vec<u8>, ttl: Span) -> Fetched<'a, ()> {
            self.0.lock().unwrap().insert(name.to_owned(), (bytes, ttl));
            Box::pin(ready(()))
        }
    }

    fn fresh_cache() -> (Arc<FakeCache>, SharedAnswers) {
        let cache = Arc::new(FakeCache::default());
        (Arc::clone(&cache), answers(&cache, 7))
    }

    fn answers(cache: &Arc<FakeCache>, secret: u8) -> SharedAnswers {
        SharedAnswers::new(Arc::clone(cache) as Arc<dyn SharedCache>, MacKey::new(&[secret; 32]))
    }

    fn settled(number: i64) -> Claim {
        let is_completed = |state: &ClaimState| matches!(state, ClaimState::Completed(_));
        fixtures::claim_in(number, variants::states().into_iter().find(is_completed).unwrap())
    }

    fn replay_until(claim: &Claim) -> Time {
        claim.state.settled().unwrap().windows.replay_until
    }

    #[tokio::test]
    async fn an_altered_or_truncated_entry_counts_as_missing() {
        let (cache, answers) = fresh_cache();
        let claim = settled(1);
        answers.keep(&claim, fixtures::NOW).await;
        let (name, (entry, ttl)) =
            cache.0.lock().unwrap().iter().next().map(|(k, v)| (k.clone(), v.clone())).unwrap();
        let put = |bytes: Vec<u8>| {
            cache.0.lock().unwrap().insert(name.clone(), (bytes, ttl));
        };
        for bit in 0..entry.len() * 8 {
            let mut flipped = entry.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            put(flipped);
            assert_eq!(answers.find(claim.id).await, None, "bit {bit}");
        }
        for end in 0..entry.len() {
            put(entry[..end].to_vec());
            assert_eq!(answers.find(claim.id).await, None, "cut at {end}");
        }
        put(entry);
        assert_eq!(answers.find(claim.id).await, Some(claim));
    }

    #[tokio::test]
    async fn an_entry_of_another_claim_counts_as_missing() {
        let (cache, answers) = fresh_cache();
        answers.keep(&settled(1), fixtures::NOW).await;
        answers.keep(&settled(2), fixtures::NOW).await;
        let mut kept = cache.0.lock().unwrap().clone().into_iter().collect::<Vec<_>>();
        let [one, two] = &mut kept[..] else { panic!("two entries") };
        std::mem::swap(&mut one.1, &mut two.1);
        cache.0.lock().unwrap().extend(kept);
        assert_eq!(answers.find(settled(1).id).await, None);
        assert_eq!(answers.find(settled(2).id).await, None);
    }

    #[tokio::test]
    async fn stores_that_share_a_cache_do_not_see_each_others_answers() {
        let (cache, mine) = fresh_cache();
        let theirs = answers(&cache, 8);
        mine.keep(&settled(1), fixtures::NOW).await;
        assert_eq!(theirs.find(settled(1).id).await, None);
        theirs.keep(&settled(1), fixtures::NOW).await;
        assert_eq!(mine.find(settled(1).id).await, Some(settled(1)));
        assert_eq!(cache.0.lock().unwrap().len(), 2, "they do not overwrite each other either");
    }

    #[tokio::test]
    async fn only_settled_claims_within_their_window_are_published() {
        let (cache, answers) = fresh_cache();
        let claim = settled(1);
        answers.keep(&fixtures::claim(2), fixtures::NOW).await;
        answers.keep(&claim, replay_until(&claim)).await;
        assert!(cache.0.lock().unwrap().is_empty());
        answers.keep(&claim, replay_until(&claim).minus(Span::from_ms(3))).await;
        let ttls: Vec<Span> = cache.0.lock().unwrap().values().map(|(_, ttl)| *ttl).collect();
        assert_eq!(ttls, [Span::from_ms(3)], "until the window ends");
    }

    #[tokio::test]
    async fn a_long_answer_is_not_published() {
        let (cache, answers) = fresh_cache();
        let mut claim = settled(1);
        let ClaimState::Completed(settled) = &mut claim.state else { panic!("completed") };
        settled.reply.body = vec![b'x'; ENTRY_BYTES_MAX].into();
        answers.keep(&claim, fixtures::NOW).await;
        assert!(cache.0.lock().unwrap().is_empty());
    }
}

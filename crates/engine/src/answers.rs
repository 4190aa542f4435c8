//! Settled claims that processes share, so that a retry which meets another process is answered without the store.
//!
//! Only the holder that committed an answer keeps it here. An entry is bound to its claim by a tag under the store's
//! secret: one that was altered, cut, swapped or made by anybody else is as good as none. Windows are judged by whoever
//! finds it. So an entry can be missing, never wrong, and the shelf may be lost at any time.

use counterfoil_core::idempotency::claim::{Claim, ClaimId};
use counterfoil_core::types::digest::{Digest, MacKey};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::codec::settled;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Longest entry: about thirty times a usual answer. Longer ones are rare, and their retries can ask the store.
pub const ENTRY_BYTES_MAX: usize = 65_536;

const NAME: &str = "counterfoil/answer/name/1";
const ENTRY: &str = "counterfoil/answer/entry/1";

/// Something to come from a shelf.
pub type Fetched<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place outside this process that keeps bytes by name for a while. Every call ends within a bound of the adapter's
/// own, far below a client's patience; a shelf that cannot be reached has nothing and keeps nothing.
pub trait SharedCache: Send + Sync + 'static {
    /// What is kept under the name; of something longer than [`ENTRY_BYTES_MAX`] at most a byte more than that.
    fn get<'a>(&'a self, name: &'a str) -> Fetched<'a, Option<Vec<u8>>>;

    /// Keeps `bytes` under the name for `ttl`, in place of what is there.
    fn put<'a>(&'a self, name: &'a str, bytes: Vec<u8>, ttl: Span) -> Fetched<'a, ()>;
}

/// The shared answers of one store, or none.
#[derive(Clone)]
pub struct SharedAnswers(Option<Arc<Sealed>>);

struct Sealed {
    shelf: Arc<dyn SharedCache>,
    mac: MacKey,
}

impl SharedAnswers {
    /// Nothing is shared.
    pub const fn none() -> SharedAnswers {
        SharedAnswers(None)
    }

    /// On `shelf`, under the store's secret.
    pub fn new(shelf: Arc<dyn SharedCache>, mac: MacKey) -> SharedAnswers {
        SharedAnswers(Some(Arc::new(Sealed { shelf, mac })))
    }

    /// Whether anything is shared.
    pub const fn are_shared(&self) -> bool {
        self.0.is_some()
    }

    /// The settled claim of that id, if one is kept that a holder of the store's secret made.
    pub async fn find(&self, id: ClaimId) -> Option<Claim> {
        let sealed = self.0.as_ref()?;
        let entry = sealed.shelf.get(&sealed.name(id)).await?;
        sealed.open(id, &entry)
    }

    /// Keeps a claim until its replay window ends. Only for the holder that committed it, after the commit.
    pub async fn keep(&self, claim: &Claim, now: Time) {
        let (Some(sealed), Some(settled)) = (&self.0, claim.state.settled()) else { return };
        let ttl = settled.windows.replay_until.since(now);
        if ttl == Span::ZERO {
            return;
        }
        if let Some(entry) = sealed.seal(claim) {
            sealed.shelf.put(&sealed.name(claim.id), entry, ttl).await;
        }
    }
}

impl Sealed {
    /// Under the secret too: stores that share a shelf have tenants of the same number, and clients choose the same keys.
    fn name(&self, id: ClaimId) -> String {
        self.mac.tag(NAME, &[id.digest().as_bytes()]).hex()
    }

    /// The tag, then the claim.
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

impl fmt::Debug for SharedAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Answers").field(&self.0.is_some()).finish()
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
    struct Shelved(Mutex<HashMap<String, (Vec<u8>, Span)>>);

    impl SharedCache for Shelved {
        fn get<'a>(&'a self, name: &'a str) -> Fetched<'a, Option<Vec<u8>>> {
            Box::pin(ready(self.0.lock().unwrap().get(name).map(|(bytes, _)| bytes.clone())))
        }

        fn put<'a>(&'a self, name: &'a str, bytes: Vec<u8>, ttl: Span) -> Fetched<'a, ()> {
            self.0.lock().unwrap().insert(name.to_owned(), (bytes, ttl));
            Box::pin(ready(()))
        }
    }

    fn shelf() -> (Arc<Shelved>, SharedAnswers) {
        let shelf = Arc::new(Shelved::default());
        (Arc::clone(&shelf), answers(&shelf, 7))
    }

    fn answers(shelf: &Arc<Shelved>, secret: u8) -> SharedAnswers {
        SharedAnswers::new(Arc::clone(shelf) as Arc<dyn SharedCache>, MacKey::new(&[secret; 32]))
    }

    fn settled(number: i64) -> Claim {
        let is_completed = |state: &ClaimState| matches!(state, ClaimState::Completed(_));
        fixtures::claim_in(number, variants::states().into_iter().find(is_completed).unwrap())
    }

    fn replay_until(claim: &Claim) -> Time {
        claim.state.settled().unwrap().windows.replay_until
    }

    #[tokio::test]
    async fn an_altered_or_cut_entry_is_none() {
        let (shelf, answers) = shelf();
        let claim = settled(1);
        answers.keep(&claim, fixtures::NOW).await;
        let (name, (entry, ttl)) =
            shelf.0.lock().unwrap().iter().next().map(|(k, v)| (k.clone(), v.clone())).unwrap();
        let put = |bytes: Vec<u8>| {
            shelf.0.lock().unwrap().insert(name.clone(), (bytes, ttl));
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
    async fn another_claims_entry_is_none() {
        let (shelf, answers) = shelf();
        answers.keep(&settled(1), fixtures::NOW).await;
        answers.keep(&settled(2), fixtures::NOW).await;
        let mut kept = shelf.0.lock().unwrap().clone().into_iter().collect::<Vec<_>>();
        let [one, two] = &mut kept[..] else { panic!("two entries") };
        std::mem::swap(&mut one.1, &mut two.1);
        shelf.0.lock().unwrap().extend(kept);
        assert_eq!(answers.find(settled(1).id).await, None);
        assert_eq!(answers.find(settled(2).id).await, None);
    }

    #[tokio::test]
    async fn stores_that_share_a_shelf_do_not_meet() {
        let (shelf, mine) = shelf();
        let theirs = answers(&shelf, 8);
        mine.keep(&settled(1), fixtures::NOW).await;
        assert_eq!(theirs.find(settled(1).id).await, None);
        theirs.keep(&settled(1), fixtures::NOW).await;
        assert_eq!(mine.find(settled(1).id).await, Some(settled(1)));
        assert_eq!(shelf.0.lock().unwrap().len(), 2, "they do not overwrite each other either");
    }

    #[tokio::test]
    async fn only_settled_claims_within_their_window_are_kept() {
        let (shelf, answers) = shelf();
        let claim = settled(1);
        answers.keep(&fixtures::claim(2), fixtures::NOW).await;
        answers.keep(&claim, replay_until(&claim)).await;
        assert!(shelf.0.lock().unwrap().is_empty());
        answers.keep(&claim, replay_until(&claim).minus(Span::from_ms(3))).await;
        let ttls: Vec<Span> = shelf.0.lock().unwrap().values().map(|(_, ttl)| *ttl).collect();
        assert_eq!(ttls, [Span::from_ms(3)], "until the window ends");
    }

    #[tokio::test]
    async fn a_long_answer_is_left_to_the_store() {
        let (shelf, answers) = shelf();
        let mut claim = settled(1);
        let ClaimState::Completed(settled) = &mut claim.state else { panic!("completed") };
        settled.reply.body = vec![b'x'; ENTRY_BYTES_MAX].into();
        answers.keep(&claim, fixtures::NOW).await;
        assert!(shelf.0.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn without_a_shelf_nothing_is_found() {
        SharedAnswers::none().keep(&settled(1), fixtures::NOW).await;
        assert_eq!(SharedAnswers::none().find(settled(1).id).await, None);
    }
}

//! Requests that wait for a claim's next news, woken by the commit that brings it.

use counterfoil_core::idempotency::claim::{Claim, ClaimId};
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::limits::WAITERS_PER_KEY_MAX;
use counterfoil_core::types::time::Span;
use counterfoil_store::ClaimMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// What a waiting request may learn. Only committed state is ever told.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// The answer is stored.
    Settled(Arc<Claim>),
    /// The outcome is not known yet; work goes on later.
    Pending {
        /// The payment it is about.
        payment: Payment,
        /// When it is worth asking again.
        retry_after: Span,
    },
}

/// What work has to tell before its end, for the request that moves it.
#[derive(Default)]
pub(crate) struct InterimNews(Mutex<Option<News>>);

impl InterimNews {
    pub(crate) fn tell(&self, news: News) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(news);
    }

    /// What was told since this was asked last.
    pub(crate) fn take(&self) -> Option<News> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Those who wait for one claim, with their places. Who made it is not among them: it moves the work itself.
type Queue = Vec<(u64, oneshot::Sender<News>)>;

/// All waiting requests of this process, by claim.
#[derive(Default)]
pub(crate) struct Waiters {
    shards: [Mutex<ClaimMap<Queue>>; 16],
    places: AtomicU64,
}

/// A place in the queue of one claim; leaving it gives the place back.
pub(crate) struct Waiting<'a> {
    waiters: &'a Waiters,
    claim: ClaimId,
    place: u64,
    news: oneshot::Receiver<News>,
}

impl Waiters {
    /// Queues for news of `claim`, unless too many already do.
    pub(crate) fn queue(&self, claim: ClaimId) -> Option<Waiting<'_>> {
        let (sender, news) = oneshot::channel();
        let mut shard = self.shard(claim);
        let queue = shard.entry(claim).or_default();
        if queue.len() >= WAITERS_PER_KEY_MAX {
            return None;
        }
        let place = self.places.fetch_add(1, Ordering::Relaxed);
        queue.push((place, sender));
        Some(Waiting { waiters: self, claim, place, news })
    }

    /// Tells everybody who waits for `claim`.
    pub(crate) fn tell(&self, claim: ClaimId, news: &News) {
        let queue = self.shard(claim).remove(&claim).unwrap_or_default();
        for (_, sender) in queue {
            // A receiver that is gone belongs to a client that hung up.
            let _ = sender.send(news.clone());
        }
    }

    fn shard(&self, claim: ClaimId) -> MutexGuard<'_, ClaimMap<Queue>> {
        let [first, ..] = claim.digest().as_bytes();
        let [fallback, ..] = &self.shards;
        let shard = self.shards.get(usize::from(first % 16)).unwrap_or(fallback);
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting<'_> {
    /// The news, once there is any. `None` if the queue was dropped without news.
    pub(crate) async fn news(&mut self) -> Option<News> {
        (&mut self.news).await.ok()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut shard = self.waiters.shard(self.claim);
        if let Some(queue) = shard.get_mut(&self.claim) {
            // Places rise.
            if let Ok(at) = queue.binary_search_by_key(&self.place, |(place, _)| *place) {
                queue.remove(at);
            }
            if queue.is_empty() {
                shard.remove(&self.claim);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::types::digest::Digest;
    use counterfoil_core::types::id::ChargeId;

    fn claim(byte: u8) -> ClaimId {
        ClaimId::from_digest(Digest::from_bytes([byte; 32]))
    }

    #[tokio::test]
    async fn everybody_on_the_key_is_told_and_nobody_else() {
        let waiters = Waiters::default();
        let mut twins: Vec<_> = (0..3).map(|_| waiters.queue(claim(1)).unwrap()).collect();
        let mut other = waiters.queue(claim(17)).unwrap();
        waiters.tell(
            claim(1),
            &News::Pending { payment: Payment::Charge(ChargeId::from_i64(1)), retry_after: Span::from_ms(7) },
        );
        for twin in &mut twins {
            assert!(
                matches!(twin.news().await, Some(News::Pending { retry_after, .. }) if retry_after.ms() == 7)
            );
        }
        assert!(other.news.try_recv().is_err());
    }

    #[test]
    fn a_place_that_is_left_is_given_back() {
        let waiters = Waiters::default();
        drop(waiters.queue(claim(1)).unwrap());
        assert!(waiters.shard(claim(1)).is_empty());
    }

    #[test]
    fn the_queue_of_one_key_is_bounded() {
        let waiters = Waiters::default();
        let places: Vec<_> = (0..WAITERS_PER_KEY_MAX).map(|_| waiters.queue(claim(1)).unwrap()).collect();
        assert!(waiters.queue(claim(1)).is_none());
        assert!(waiters.queue(claim(2)).is_some());
        drop(places);
    }
}

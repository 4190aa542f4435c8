//! Requests that wait for news of a claim, woken after the commit.

use counterfoil_core::idempotency::claim::{Claim, ClaimId};
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::limits::WAITERS_PER_KEY_MAX;
use counterfoil_core::types::time::Span;
use counterfoil_store::ClaimMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// News of a claim. Only committed state is ever sent.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// The claim has the stored answer.
    Settled(Arc<Claim>),
    /// The outcome is not known yet; the work continues later.
    Pending { payment: Payment, retry_after: Span },
}

/// Interim news from running work to the request that drives it.
#[derive(Default)]
pub(crate) struct InterimNews(Mutex<Option<News>>);

impl InterimNews {
    pub(crate) fn tell(&self, news: News) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(news);
    }

    /// The latest news since the last call.
    pub(crate) fn take(&self) -> Option<News> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Requests that wait for one claim, by ticket. The request that made the claim drives the work
/// itself and does not wait.
type Queue = Vec<(u64, oneshot::Sender<News>)>;

/// All waiting requests of this process, by claim.
#[derive(Default)]
pub(crate) struct Waiters {
    shards: [Mutex<ClaimMap<Queue>>; 16],
    tickets: AtomicU64,
}

/// A ticket in the queue of a claim. Dropping it leaves the queue.
pub(crate) struct Waiting<'a> {
    waiters: &'a Waiters,
    claim: ClaimId,
    ticket: u64,
    news: oneshot::Receiver<News>,
}

impl Waiters {
    /// Queues for news of `claim`, unless its queue is full.
    pub(crate) fn queue(&self, claim: ClaimId) -> Option<Waiting<'_>> {
        let (sender, news) = oneshot::channel();
        let mut shard = self.shard(claim);
        let queue = shard.entry(claim).or_default();
        if queue.len() >= WAITERS_PER_KEY_MAX {
            return None;
        }
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        queue.push((ticket, sender));
        Some(Waiting { waiters: self, claim, ticket, news })
    }

    /// Sends the news to all requests that wait for `claim`.
    pub(crate) fn tell(&self, claim: ClaimId, news: &News) {
        let queue = self.shard(claim).remove(&claim).unwrap_or_default();
        for (_, sender) in queue {
            // A closed receiver belongs to a client that hung up.
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
    /// Waits for the news. `None`: the queue was dropped without news.
    pub(crate) async fn news(&mut self) -> Option<News> {
        (&mut self.news).await.ok()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut shard = self.waiters.shard(self.claim);
        if let Some(queue) = shard.get_mut(&self.claim) {
            // Tickets ascend.
            if let Ok(at) = queue.binary_search_by_key(&self.ticket, |(ticket, _)| *ticket) {
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
    async fn all_waiters_of_the_key_get_the_news_and_no_others() {
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
    fn a_dropped_ticket_leaves_the_queue() {
        let waiters = Waiters::default();
        drop(waiters.queue(claim(1)).unwrap());
        assert!(waiters.shard(claim(1)).is_empty());
    }

    #[test]
    fn the_queue_of_one_key_is_bounded() {
        let waiters = Waiters::default();
        let tickets: Vec<_> = (0..WAITERS_PER_KEY_MAX).map(|_| waiters.queue(claim(1)).unwrap()).collect();
        assert!(waiters.queue(claim(1)).is_none());
        assert!(waiters.queue(claim(2)).is_some());
        drop(tickets);
    }
}

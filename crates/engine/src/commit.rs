//! Committing for sure: conflicts are tried again, a commit in doubt is resolved by the set's own id. What is left
//! is certain, or says that it is not.

use crate::engine::Inner;
use crate::recent::posted;
use crate::signal::Signal;
use crate::world::World;
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, CommitError, CommitReceipt, CommitRefusal, Store};
use std::pin::Pin;
use std::time::Duration;

/// A commit that did not happen, or that nobody can be sure of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotCommitted {
    /// A precondition does not hold.
    Refused(Box<CommitRefusal>),
    /// The store could not write; nothing was changed.
    Unavailable(String),
    /// Nobody knows.
    InDoubt,
}

/// Store conflicts: three tries from 50 ms, doubling, with jitter.
const TRIES: u32 = 3;
const BACKOFF: Backoff = Backoff { base: Span::from_ms(50), cap: Span::from_ms(200) };

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    pub(crate) async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, NotCommitted> {
        let begun = self.world.elapsed();
        let posted = posted(&set);
        let result = self.commit_with_retries(set).await;
        if let Ok(receipt) = &result {
            self.recent.note(*receipt, posted);
        }
        self.watch.saw(Signal::Commit(self.world.elapsed().saturating_sub(begun)));
        result
    }

    async fn commit_with_retries(&self, set: ChangeSet) -> Result<CommitReceipt, NotCommitted> {
        let (mut attempt, mut doubted) = (1, false);
        loop {
            let last = attempt >= TRIES;
            match self.store.commit(set.clone()).await {
                Ok(receipt) => return Ok(receipt),
                Err(CommitError::Refused(refusal)) => {
                    // After a doubt, what stands in the way may be this very set.
                    return match doubted.then_some(self.resolve(set.id())) {
                        Some(resolved) => resolved.await.flatten().ok_or(NotCommitted::Refused(refusal)),
                        None => Err(NotCommitted::Refused(refusal)),
                    };
                }
                Err(CommitError::Unavailable(why)) => return Err(NotCommitted::Unavailable(why)),
                Err(CommitError::InDoubt(id)) => match self.resolve(id).await {
                    Some(Some(receipt)) => return Ok(receipt),
                    Some(None) if last => {
                        return Err(NotCommitted::Unavailable("it did not take the change".into()));
                    }
                    Some(None) => doubted = true,
                    None => return Err(NotCommitted::InDoubt),
                },
                Err(CommitError::Conflict) if last => {
                    return Err(NotCommitted::Unavailable("conflicts did not end".into()));
                }
                Err(CommitError::Throttled) if last => {
                    return Err(NotCommitted::Unavailable("it is overloaded".into()));
                }
                Err(CommitError::Conflict | CommitError::Throttled) => self.watch.saw(Signal::Conflict),
            }
            self.pause(BACKOFF, attempt).await;
            attempt = attempt.saturating_add(1);
        }
    }

    /// Whether the set was committed, if that can be learnt. Trying a set again is safe: the store takes one id only
    /// once, and the preconditions are inside.
    ///
    /// Boxed: it is rare, and whoever commits would carry the room for it.
    fn resolve(&self, id: SetId) -> Pin<Box<dyn Future<Output = Option<Option<CommitReceipt>>> + Send + '_>> {
        Box::pin(async move {
            for attempt in 1..=TRIES {
                if let Ok(receipt) = self.store.committed(id).await {
                    return Some(receipt);
                }
                self.pause(BACKOFF, attempt).await;
            }
            None
        })
    }

    pub(crate) async fn pause(&self, backoff: Backoff, attempt: u32) {
        let wait = backoff.wait(attempt, self.dice());
        self.world.sleep(Duration::from_millis(wait.ms())).await;
    }

    /// 64 random bits.
    pub(crate) fn dice(&self) -> u64 {
        u64::try_from(self.world.chance() & u128::from(u64::MAX)).unwrap_or(0)
    }
}

//! Commits with retries: a conflict is retried, and a commit in doubt is resolved by the set's id.
//! The result is either certain or explicitly in doubt.

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

/// A commit that failed or may have failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotCommitted {
    /// A precondition does not hold.
    Refused(Box<CommitRefusal>),
    /// The store could not write; nothing changed.
    Unavailable(String),
    InDoubt,
}

/// Tries of a conflicting commit, with jittered backoff from 50 ms.
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
                    // After a doubt, the refusal may be caused by this very set.
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

    /// Asks whether the set was committed. `None`: the store cannot tell. A retry of the set is
    /// safe, because the store takes each id once and judges the preconditions again.
    ///
    /// Boxed, because it is rare and would enlarge the future of every commit.
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

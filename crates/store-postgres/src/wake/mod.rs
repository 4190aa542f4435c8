//! Wakes the waiters of a claim when another process commits the settlement.
//!
//! One connection listens for all waiters of a process. While a task waits for a claim, the
//! connection holds a shared advisory lock under the claim's key. A committer that settles a claim
//! tries the exclusive lock, and sends a notification only if the lock is taken: notifying
//! transactions commit serially in the whole cluster. The committer keeps the locks until its
//! commit, so no waiter can start unnoticed between the try and the commit.
//!
//! Promises: no lock is waited for, the number of locks is bounded, and no commit fails because of
//! notifications. A lost connection wakes all waiters once and is reopened; until then the waiters
//! poll.

mod listen;
mod waiters;

use crate::shared::Shared;
use counterfoil_core::idempotency::claim::{ClaimId, ClaimState, Custody};
use counterfoil_store::{Change, Row};
use std::sync::Arc;
use tokio::task::JoinHandle;
use waiters::Waiters;

/// A query that notifies each waited-for key of the parameter. Two-part lock keys cannot collide
/// with the one-part keys of committers and migrations. Nothing is sent while the server's
/// notification queue is a quarter full, because a full queue fails commits.
pub(crate) fn notify_sql(parameter: usize) -> String {
    format!(
        "SELECT count(pg_notify('counterfoil_settled', to_hex(k))) \
         FROM (SELECT unnest(${parameter}::bigint[]) AS k) AS u \
         WHERE (SELECT pg_notification_queue_usage()) < 0.25 \
         AND NOT pg_try_advisory_xact_lock((k >> 32)::int, (k << 32 >> 32)::int)"
    )
}

/// The key of a claim: the first 64 bits of its digest. A collision only causes a spurious wake-up.
pub(crate) fn key(claim: &ClaimId) -> i64 {
    claim.digest().as_bytes().first_chunk().map_or(0, |first| i64::from_be_bytes(*first))
}

/// The key of the claim that a change settles or postpones. A new claim cannot have waiters.
pub(crate) fn settled_key(change: &Change) -> Option<i64> {
    let Change::Replace { row, .. } = change else { return None };
    let Row::Claim(claim) = &**row else { return None };
    match &claim.state {
        ClaimState::Completed(_)
        | ClaimState::FailedTerminal(_)
        | ClaimState::FailedRetry { .. }
        | ClaimState::Uncertain(Custody::Waiting { .. }) => Some(key(&claim.id)),
        ClaimState::InFlight(_) | ClaimState::Uncertain(Custody::Held(_)) | ClaimState::Expired { .. } => {
            None
        }
    }
}

/// The listening connection and its waiters. The first waiter opens the connection.
#[derive(Debug)]
pub(crate) struct Wake {
    waiters: Arc<Waiters>,
    listener: JoinHandle<()>,
}

impl Wake {
    pub(crate) fn start(shared: Arc<Shared>) -> Wake {
        let waiters = Arc::new(Waiters::default());
        let listener = tokio::spawn(listen::serve(shared, Arc::clone(&waiters)));
        Wake { waiters, listener }
    }

    /// A future for the next notification about the claim, or `None` without a connection.
    pub(crate) fn wait(&self, claim: &ClaimId) -> Option<impl Future<Output = ()> + Send + use<>> {
        let mut signal = self.waiters.add(key(claim))?;
        Some(async move {
            // An error means that the connection was lost. The waiter polls then as well.
            let _ = signal.changed().await;
        })
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

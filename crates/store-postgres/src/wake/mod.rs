//! Those who wait for a claim that another process works on, woken by the commit that settles it.
//!
//! One connection listens for all of them. While anybody here waits for a claim, it holds a shared advisory lock under
//! the claim's key; a committer that settles a claim tries that lock and sends a word only where it is not to be had,
//! because every transaction that sends one commits alone in its whole cluster. Until it has committed, the committer
//! keeps the locks it did get, so nobody can begin to wait unseen between its try and its commit.
//!
//! Promises: nobody waits for a lock here, the number of locks is bounded, and nothing fails because of this. A lost
//! connection wakes everybody once and is reopened; meanwhile those who wait look by themselves.

mod listen;
mod waiters;

use crate::shared::Shared;
use counterfoil_core::idempotency::claim::{ClaimId, Hold, State};
use counterfoil_store::{Change, Row};
use std::sync::Arc;
use tokio::task::JoinHandle;
use waiters::Waiters;

/// Sends a word for each of the keys in this parameter that somebody waits for, and counts them. Two-part keys are apart
/// from the one-part keys of committers and migrations. A queue that others leave to fill up is left alone: it would warn,
/// and at last fail commits.
pub(crate) fn notify_sql(parameter: usize) -> String {
    format!(
        "SELECT count(pg_notify('counterfoil_settled', to_hex(k))) \
         FROM (SELECT unnest(${parameter}::bigint[]) AS k) AS u \
         WHERE (SELECT pg_notification_queue_usage()) < 0.25 \
         AND NOT pg_try_advisory_xact_lock((k >> 32)::int, (k << 32 >> 32)::int)"
    )
}

/// The key of a claim: the first 64 bits of its digest. Two claims under one key would only be woken for each other.
pub(crate) fn key(claim: &ClaimId) -> i64 {
    claim.digest().as_bytes().first_chunk().map_or(0, |first| i64::from_be_bytes(*first))
}

/// The key of the claim that this change settles or puts off. A claim that is new was waited for by nobody.
pub(crate) fn settled_key(change: &Change) -> Option<i64> {
    let Change::Replace { row, .. } = change else { return None };
    let Row::Claim(claim) = &**row else { return None };
    match &claim.state {
        State::Completed(_)
        | State::FailedTerminal(_)
        | State::FailedRetry { .. }
        | State::Uncertain(Hold::Waiting { .. }) => Some(key(&claim.id)),
        State::InFlight(_) | State::Uncertain(Hold::Held(_)) | State::Expired { .. } => None,
    }
}

/// The listening connection and who waits for it. It is opened when somebody waits for the first time.
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

    /// Waits, from this call on, for a word about the claim; nothing if none can come.
    pub(crate) fn wait(&self, claim: &ClaimId) -> Option<impl Future<Output = ()> + Send + use<>> {
        let mut word = self.waiters.take(key(claim))?;
        Some(async move {
            // An error means that the connection was lost: as good a reason to look.
            let _ = word.changed().await;
        })
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

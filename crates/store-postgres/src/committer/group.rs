//! A committer: the connection, and the outcomes of groups.

use super::answer::WakeBatch;
use super::attempt::{self, LockWait, NextStep, Verdict};
use super::lookups::ReadMode;
use super::{Job, Waiting};
use crate::error::OpenError;
use crate::session::{Purpose, Session};
use crate::shared::{ConnectionId, Doubt, Shared};
use counterfoil_store::{Change, CommitError, KeySet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// Attempts at a group before its sets are tried separately, and attempts at a single set.
const TRIES_MAX: u32 = 3;
/// Groups that read with locks after an optimistic attempt met a conflict.
const LOCKED_FOR: u32 = 32;
/// The total time for which separately tried sets of a group wait for locks. The remaining sets are
/// answered as conflicts.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(3);
/// The wait for the server to end an earlier connection.
const PREVIOUS_ENDS_WITHIN: Duration = Duration::from_secs(5);
const POLL_EVERY: Duration = Duration::from_millis(20);
/// The pause of a committer without a server before it tries again.
const RECONNECT_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Committer {
    shared: Arc<Shared>,
    index: usize,
    /// The key of an advisory lock, held by every connection of this committer until the end of the
    /// connection. A new connection waits for the lock, so all commits of earlier connections are
    /// decided by then.
    lock: i64,
    connection: Option<(Session, ConnectionId)>,
    /// Groups left that must re-read rows, after the cache was found stale.
    locked_groups: u32,
}

impl Committer {
    pub(crate) async fn start(shared: Arc<Shared>, index: usize) -> Result<Committer, OpenError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes)
            .map_err(|error| OpenError::Failed(format!("no random bytes: {error}")))?;
        let mut committer =
            Committer { shared, index, lock: i64::from_be_bytes(bytes), connection: None, locked_groups: 0 };
        committer.connect().await?;
        Ok(committer)
    }

    /// Commits groups until the store is closed.
    pub(crate) async fn serve(mut self, waiting: Arc<Waiting>) {
        loop {
            if self.connection.is_none()
                && let Err(error) = self.connect().await
            {
                if waiting.is_closed() {
                    return;
                }
                // A connected committer would serve the sets; without one they are turned away.
                if self.shared.connected.load(Ordering::Acquire) == 0 {
                    self.turn_away(&waiting, &error.to_string()).await;
                } else {
                    tokio::time::sleep(RECONNECT_EVERY).await;
                }
                continue;
            }
            let Some((group, _in_progress)) = waiting.take().await else { return };
            self.commit(group).await;
        }
    }

    /// Answers all sets as unavailable until the next attempt to connect.
    async fn turn_away(&self, waiting: &Waiting, why: &str) {
        let refusing = async {
            while let Some((group, _in_progress)) = waiting.take().await {
                unavailable(group, why);
            }
        };
        // The loop ends before the timeout only if the store is closed.
        let _ = tokio::time::timeout(RECONNECT_EVERY, refusing).await;
    }

    async fn connect(&mut self) -> Result<(), OpenError> {
        let session = self.shared.connect(Purpose::Commit).await?;
        let locking = async {
            loop {
                let rows = session.query_once("SELECT pg_try_advisory_lock($1)", &[&self.lock]).await?;
                if rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false)) {
                    return Ok::<(), OpenError>(());
                }
                tokio::time::sleep(POLL_EVERY).await;
            }
        };
        let late = |_| OpenError::Unreachable("the server still works on a lost connection".to_owned());
        tokio::time::timeout(PREVIOUS_ENDS_WITHIN, locking).await.map_err(late)??;
        self.shared.memory.clear();
        let connection = self.shared.connected_again(self.index);
        self.shared.connected.fetch_add(1, Ordering::AcqRel);
        self.connection = Some((session, connection));
        Ok(())
    }

    fn disconnect(&mut self) {
        if self.connection.take().is_some() {
            self.shared.connected.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Commits a group and answers every set in it.
    async fn commit(&mut self, group: Vec<Job>) {
        let mut mode = if self.locked_groups == 0 { ReadMode::Optimistic } else { ReadMode::Locked };
        self.locked_groups = self.locked_groups.saturating_sub(1);
        for _ in 0..TRIES_MAX {
            match self.attempt(&group, mode, LockWait::Normal).await {
                NextStep::Race(_) => {
                    if mode == ReadMode::Optimistic {
                        self.locked_groups = LOCKED_FOR;
                    }
                    mode = ReadMode::Locked;
                }
                NextStep::Broken(_) => {}
                NextStep::AtFault { .. } | NextStep::Held(_) => break,
                next_step @ (NextStep::Durable(_) | NextStep::Untouched(_) | NextStep::Doubtful(_)) => {
                    return self.answer(group, next_step);
                }
            }
        }
        self.commit_one_by_one(group).await;
    }

    /// Tries the sets of a group separately, after a broken rule of the tables, a lock timeout or
    /// repeated lost races, so that every set gets the right answer. A set is not tried if an
    /// earlier set has already waited in vain for the same row. This bounds the wait of the later
    /// sets.
    async fn commit_one_by_one(&mut self, group: Vec<Job>) {
        let (mut unavailable_rows, mut waited) = (KeySet::default(), Duration::ZERO);
        for job in group {
            let changed = || job.set.changes().iter().filter(|change| !matches!(change, Change::Insert(_)));
            let next_step = if waited >= LOCK_WAIT_MAX
                || changed().any(|change| unavailable_rows.contains(&change.key()))
            {
                NextStep::Held("another transaction holds a row of this set".to_owned())
            } else {
                let begun = Instant::now();
                let next_step = self.attempt_alone(&job).await;
                if matches!(next_step, NextStep::Held(_)) {
                    waited = waited.saturating_add(begun.elapsed());
                    unavailable_rows.extend(changed().map(Change::key));
                }
                next_step
            };
            self.answer(vec![job], next_step);
        }
    }

    async fn attempt_alone(&mut self, job: &Job) -> NextStep {
        let mut next_step = NextStep::Untouched(String::new());
        for _ in 0..TRIES_MAX {
            next_step = self.attempt(std::slice::from_ref(job), ReadMode::Locked, LockWait::Short).await;
            if !matches!(next_step, NextStep::Race(_) | NextStep::Held(_) | NextStep::Broken(_)) {
                break;
            }
        }
        next_step
    }

    /// Tries a group on the current connection, or on a new one if that has ended.
    async fn attempt(&mut self, group: &[Job], mode: ReadMode, wait: LockWait) -> NextStep {
        if self.connection.as_ref().is_some_and(|(session, _)| session.is_closed()) {
            self.disconnect();
        }
        if let Err(lost) = self.shared.history.is_whole() {
            return NextStep::Untouched(lost.to_string());
        }
        if self.connection.is_none()
            && let Err(error) = self.connect().await
        {
            return NextStep::Untouched(error.to_string());
        }
        let Some((session, connection)) = &self.connection else {
            return NextStep::Untouched("there is no connection".to_owned());
        };
        let after = self.shared.last_known_position();
        let (next_step, keep) = attempt::attempt(session, &self.shared, group, mode, wait).await;
        if !matches!(next_step, NextStep::Durable(_)) {
            self.shared.memory.forget(group.iter().flat_map(|job| job.set.changes()).map(Change::key));
        }
        if matches!(next_step, NextStep::Doubtful(_)) {
            for job in group {
                self.shared.doubt(job.set.id(), Doubt { connection: *connection, after });
            }
        }
        if !keep {
            self.disconnect();
        }
        next_step
    }

    /// Answers the sets. A refusal may depend on a write of another set in the group, so refusals
    /// also wait until the group is durable.
    fn answer(&self, group: Vec<Job>, next_step: NextStep) {
        let mut wakes = WakeBatch::default();
        match next_step {
            NextStep::Durable(verdicts) => {
                for (job, verdict) in group.into_iter().zip(verdicts) {
                    match verdict {
                        Verdict::Committed(receipt) => {
                            self.shared.observe_commit(job.set.id(), receipt);
                            job.answer(Ok(receipt), &mut wakes);
                        }
                        Verdict::Refused(refusal) => {
                            job.answer(Err(CommitError::Refused(refusal)), &mut wakes);
                        }
                    }
                }
            }
            NextStep::Doubtful(why) => {
                tracing::warn!(%why, sets = group.len(), "commits are in doubt");
                in_doubt(group);
            }
            NextStep::Untouched(why) | NextStep::Broken(why) => unavailable(group, &why),
            NextStep::Race(why) | NextStep::Held(why) => {
                tracing::debug!(%why, "conflicts with other writers");
                for job in group {
                    job.answer(Err(CommitError::Conflict), &mut wakes);
                }
            }
            // A set of this id is committed already; its id resolves the doubt.
            NextStep::AtFault { committed: true, .. } => in_doubt(group),
            NextStep::AtFault { why, committed: false } => {
                unavailable(
                    group,
                    &format!("the database refused the set, which is a defect to report: {why}"),
                );
            }
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.disconnect();
    }
}

fn in_doubt(group: Vec<Job>) {
    let mut wakes = WakeBatch::default();
    for job in group {
        let id = job.set.id();
        job.answer(Err(CommitError::InDoubt(id)), &mut wakes);
    }
}

fn unavailable(group: Vec<Job>, why: &str) {
    let mut wakes = WakeBatch::default();
    for job in group {
        job.answer(Err(CommitError::Unavailable(why.to_owned())), &mut wakes);
    }
}

//! One committer: its connection, and what becomes of each group it takes.

use super::answer::Sleepers;
use super::attempt::{self, NextStep, Verdict};
use super::lookups::Care;
use super::{Job, Waiting};
use crate::error::OpenError;
use crate::session::{Purpose, Session};
use crate::shared::{Doubt, Life, Shared};
use counterfoil_store::{Change, CommitError, KeySet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// How often a group is tried whole before its sets are tried one by one, and how often each of those is.
const TRIES_MAX: u32 = 3;
/// How many groups look before they write after one that hoped in vain.
const WARY_FOR: u32 = 32;
/// How long a group waits for rows that others hold, one set after the other; those that are left are told to ask again.
const HELD_WITHIN: Duration = Duration::from_secs(3);
/// How long an earlier connection's end is waited for.
const GONE_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a committer without a server waits before it tries again.
const RECONNECT_EVERY: Duration = Duration::from_millis(200);

/// One committer.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    index: usize,
    /// A lock that every connection of this committer holds for as long as it lives. A new connection has to wait for
    /// it, so whatever the one before it was doing is decided by then.
    lock: i64,
    connection: Option<(Session, Life)>,
    /// How many groups more take nothing for granted that a group before them found otherwise.
    wary: u32,
}

impl Committer {
    /// Connects.
    pub(crate) async fn start(shared: Arc<Shared>, index: usize) -> Result<Committer, OpenError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes)
            .map_err(|error| OpenError::Failed(format!("no random bytes: {error}")))?;
        let mut committer =
            Committer { shared, index, lock: i64::from_be_bytes(bytes), connection: None, wary: 0 };
        committer.connect().await?;
        Ok(committer)
    }

    /// Commits groups until the store is closed.
    pub(crate) async fn serve(mut self, waiting: Arc<Waiting>) {
        loop {
            if self.connection.is_none()
                && let Err(error) = self.connect().await
            {
                if waiting.is_over() {
                    return;
                }
                // While another committer is connected, the sets are better off with that one.
                if self.shared.connected.load(Ordering::Acquire) == 0 {
                    self.turn_away(&waiting, &error.to_string()).await;
                } else {
                    tokio::time::sleep(RECONNECT_EVERY).await;
                }
                continue;
            }
            let Some((group, _taken)) = waiting.take().await else { return };
            self.commit(group).await;
        }
    }

    /// Answers everything that comes while the server is not tried again.
    async fn turn_away(&self, waiting: &Waiting, why: &str) {
        let refusing = async {
            while let Some((group, _taken)) = waiting.take().await {
                unavailable(group, why);
            }
        };
        // It ends by itself only when the store is closed.
        let _ = tokio::time::timeout(RECONNECT_EVERY, refusing).await;
    }

    async fn connect(&mut self) -> Result<(), OpenError> {
        let session = self.shared.connect(Purpose::Commit).await?;
        let ours = async {
            loop {
                let rows = session.ask("SELECT pg_try_advisory_lock($1)", &[&self.lock]).await?;
                if rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false)) {
                    return Ok::<(), OpenError>(());
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let late = |_| OpenError::Unreachable("it still works for a connection that was lost".to_owned());
        tokio::time::timeout(GONE_WITHIN, ours).await.map_err(late)??;
        self.shared.memory.clear();
        let life = self.shared.reborn(self.index);
        self.shared.connected.fetch_add(1, Ordering::AcqRel);
        self.connection = Some((session, life));
        Ok(())
    }

    fn disconnect(&mut self) {
        if self.connection.take().is_some() {
            self.shared.connected.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Commits the group and answers every set in it.
    async fn commit(&mut self, group: Vec<Job>) {
        let mut care = if self.wary == 0 { Care::Hopeful } else { Care::Trusting };
        self.wary = self.wary.saturating_sub(1);
        for _ in 0..TRIES_MAX {
            match self.attempt(&group, care).await {
                NextStep::Race(_) => {
                    if care == Care::Hopeful {
                        self.wary = WARY_FOR;
                    }
                    care = Care::Thorough;
                }
                NextStep::Broken(_) => {}
                NextStep::AtFault(..) | NextStep::Held(_) => break,
                next_step @ (NextStep::Durable(_) | NextStep::Untouched(_) | NextStep::Doubtful(_)) => {
                    return self.answer(group, next_step);
                }
            }
        }
        self.commit_one_by_one(group).await;
    }

    /// One set hit a rule of the tables, or waits for a lock, or others were always faster. Alone, each gets the answer that is its own;
    /// but who wants a row of somebody that was held up is held up, too, and nobody waits for long behind them all.
    async fn commit_one_by_one(&mut self, group: Vec<Job>) {
        let (mut held, mut waited) = (KeySet::default(), Duration::ZERO);
        for job in group {
            let wants = || job.set.changes().iter().filter(|change| !matches!(change, Change::Insert(_)));
            let next_step = if waited >= HELD_WITHIN || wants().any(|change| held.contains(&change.key())) {
                NextStep::Held("somebody else holds a row that others want, too".to_owned())
            } else {
                let begun = Instant::now();
                let next_step = self.attempt_alone(&job).await;
                if matches!(next_step, NextStep::Held(_)) {
                    waited = waited.saturating_add(begun.elapsed());
                    held.extend(wants().map(Change::key));
                }
                next_step
            };
            self.answer(vec![job], next_step);
        }
    }

    async fn attempt_alone(&mut self, job: &Job) -> NextStep {
        let mut next_step = NextStep::Untouched(String::new());
        for _ in 0..TRIES_MAX {
            next_step = self.attempt(std::slice::from_ref(job), Care::Alone).await;
            if !matches!(next_step, NextStep::Race(_) | NextStep::Held(_) | NextStep::Broken(_)) {
                break;
            }
        }
        next_step
    }

    /// Tries a group on the connection at hand, or on a new one if that is gone.
    async fn attempt(&mut self, group: &[Job], care: Care) -> NextStep {
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
        let Some((session, life)) = &self.connection else {
            return NextStep::Untouched("there is no connection".to_owned());
        };
        let after = self.shared.seen();
        let (next_step, keep) = attempt::attempt(session, &self.shared, group, care).await;
        if !matches!(next_step, NextStep::Durable(_)) {
            self.shared.memory.forget(group.iter().flat_map(|job| job.set.changes()).map(Change::key));
        }
        if matches!(next_step, NextStep::Doubtful(_)) {
            for job in group {
                self.shared.doubt(job.set.id(), Doubt { life: *life, after });
            }
        }
        if !keep {
            self.disconnect();
        }
        next_step
    }

    /// A refusal may rest on a neighbour's write, so it counts only once the group is durable.
    fn answer(&self, group: Vec<Job>, next_step: NextStep) {
        let mut sleepers = Sleepers::default();
        match next_step {
            NextStep::Durable(verdicts) => {
                for (job, verdict) in group.into_iter().zip(verdicts) {
                    match verdict {
                        Verdict::Committed(receipt) => {
                            self.shared.saw(job.set.id(), receipt);
                            job.answer(Ok(receipt), &mut sleepers);
                        }
                        Verdict::Refused(refusal) => {
                            job.answer(Err(CommitError::Refused(refusal)), &mut sleepers);
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
                tracing::debug!(%why, "other writers are in the way");
                for job in group {
                    job.answer(Err(CommitError::Conflict), &mut sleepers);
                }
            }
            // Its id tells that it is there, and from when.
            NextStep::AtFault(_, true) => in_doubt(group),
            NextStep::AtFault(why, false) => {
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
    let mut sleepers = Sleepers::default();
    for job in group {
        let id = job.set.id();
        job.answer(Err(CommitError::InDoubt(id)), &mut sleepers);
    }
}

fn unavailable(group: Vec<Job>, why: &str) {
    let mut sleepers = Sleepers::default();
    for job in group {
        job.answer(Err(CommitError::Unavailable(why.to_owned())), &mut sleepers);
    }
}

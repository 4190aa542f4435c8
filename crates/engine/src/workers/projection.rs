//! The projection: follows the commits in order and takes a snapshot of each account after so many entries, so that a
//! balance is one snapshot and a short tail. Commits of this process it is told of; those of others it reads from the
//! store's feed.
//!
//! A snapshot is the fold of an account's entries up to a position and carries that position, so applying the same commits
//! twice, or by two processes at once, gives the same snapshot: it is stored exactly once.

use crate::engine::Inner;
use crate::policy::PROJECTION_INTERVAL;
use crate::recent::{Gained, Owned, Run, count, entries};
use crate::signal::Signal;
use crate::world::World;
use counterfoil_core::ledger::snapshot::{Cursor, FeedReader, Snapshot, superfluous};
use counterfoil_core::ledger::totals::Totals;
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::limits::{SCAN_MAX, SNAPSHOT_EVERY, SNAPSHOTS_MAX};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, CommitReceipt, ReadError, Row, RowKey, Scan, Store, Upto};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Accounts whose tails are counted at once; beyond this counting starts anew from the store.
const COUNTED_MAX: usize = 100_000;
/// Commits are told in nearly their order. So many behind a gap may be that; more are behind another process's.
const STRAGGLERS: usize = 64;
/// Accounts whose snapshots are remembered, so that those of hot ones are not read again and again.
const REMEMBERED_MAX: usize = 1_024;

/// What the projection knows between two rounds.
struct Projection {
    /// Where it stands, and the row that says so if one was stored.
    at: CommitReceipt,
    stored: Option<Cursor>,
    /// Entries since the last snapshot.
    tails: HashMap<Owned, u64>,
    /// Snapshots of accounts that got one lately, newest first, where nobody else takes any.
    taken: HashMap<Owned, Vec<Snapshot>>,
}

/// Commits that follow one another.
struct Page {
    /// The last of them.
    last: Option<CommitReceipt>,
    gained: Gained,
    /// Whether none is known to follow.
    is_whole: bool,
}

fn is_transaction(key: &RowKey) -> bool {
    matches!(key, RowKey::Transaction(..))
}

pub(crate) async fn run<S: Store, G: Gateway, W: World>(inner: Arc<Inner<S, G, W>>) {
    let mut projection: Option<Projection> = None;
    while !inner.is_stopped() {
        let caught_up = match inner.project(&mut projection).await {
            Ok(caught_up) => caught_up,
            Err(error) => {
                tracing::warn!(%error, "the projection could not go on; trying again");
                projection = None;
                true
            }
        };
        if caught_up {
            inner.world.sleep(Duration::from_millis(PROJECTION_INTERVAL.ms())).await;
        }
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// Applies one page of commits; says whether that was the last.
    async fn project(&self, projection: &mut Option<Projection>) -> Result<bool, ReadError> {
        let state = match projection {
            Some(state) => state,
            None => projection.insert(self.resume_projection().await?),
        };
        let Page { last, gained, is_whole } = self.page(state.at.position).await?;
        let Some(last) = last else {
            self.watch.saw(Signal::ProjectionLag(Duration::ZERO));
            return Ok(true);
        };
        let posted = !gained.is_empty();
        if state.tails.len() > COUNTED_MAX {
            state.tails.clear();
        }
        for (account, gained) in gained {
            let tail = match state.tails.get(&account) {
                Some(known) => known.saturating_add(gained),
                // Not counted since this process began: the store knows.
                None => self.tail(account, last.position).await?.1.entries,
            };
            let tail = if tail >= SNAPSHOT_EVERY {
                self.snapshot(&mut state.taken, account, last.position).await?
            } else {
                tail
            };
            state.tails.insert(account, tail);
        }
        state.at = last;
        let lag = if is_whole {
            Duration::ZERO
        } else {
            Duration::from_millis(self.store.now().since(last.at).ms())
        };
        self.watch.saw(Signal::ProjectionLag(lag));
        if posted {
            self.store_cursor(state).await;
        }
        Ok(is_whole)
    }

    /// What comes right behind a position: this process's own commits; and what the feed tells, if others committed, too.
    async fn page(&self, after: Position) -> Result<Page, ReadError> {
        let Run { last, mut gained, behind } = self.recent.run(after);
        if last.is_some() && behind < STRAGGLERS {
            return Ok(Page { last, gained, is_whole: true });
        }
        let after = last.map_or(after, |receipt| receipt.position);
        let commits = self.store.feed(after, SCAN_MAX).await?;
        let mut unknown = Vec::new();
        for committed in &commits {
            match self.recent.take(committed.receipt.position) {
                Some(posted) => count(posted, &mut gained),
                None => unknown.extend(committed.touched.iter().filter(|key| is_transaction(key)).cloned()),
            }
        }
        for keys in unknown.chunks(SCAN_MAX) {
            for row in self.store.read(keys.to_vec()).await?.into_iter().flatten() {
                count(entries(&row), &mut gained);
            }
        }
        let last = commits.last().map(|committed| committed.receipt).or(last);
        Ok(Page { last, gained, is_whole: commits.len() < SCAN_MAX })
    }

    async fn resume_projection(&self) -> Result<Projection, ReadError> {
        let rows = self.store.read(vec![RowKey::Cursor(FeedReader::Projection)]).await?;
        let stored = match rows.into_iter().next().flatten() {
            Some(Row::Cursor(cursor)) => Some(cursor),
            _ => None,
        };
        let start = CommitReceipt { position: Position::START, at: Time::EPOCH };
        let at = stored.map_or(start, |cursor| CommitReceipt { position: cursor.position, at: cursor.at });
        Ok(Projection { at, stored, tails: HashMap::new(), taken: HashMap::new() })
    }

    /// The last snapshot's position and the entries after it, up to `upto`.
    async fn tail(
        &self,
        (tenant, account): Owned,
        upto: Position,
    ) -> Result<(Option<Snapshot>, Totals), ReadError> {
        let upto = Upto::Position(upto);
        let rows = self.store.scan(Scan::Snapshots { tenant, account, upto, limit: 1 }).await?;
        let snapshot = rows.into_iter().find_map(|row| match row {
            Row::Snapshot(snapshot) => Some(snapshot),
            _ => None,
        });
        let after = snapshot.map_or(Position::START, |snapshot| snapshot.position);
        Ok((snapshot, self.store.fold(tenant, account, after, upto).await?.totals))
    }

    /// Takes a snapshot at `upto` and drops one that is no longer needed. Says how long the tail is then.
    async fn snapshot(
        &self,
        taken: &mut HashMap<Owned, Vec<Snapshot>>,
        owned @ (tenant, account): Owned,
        upto: Position,
    ) -> Result<u64, ReadError> {
        let mut older = match taken.remove(&owned) {
            Some(older) => older,
            None => self.snapshots(owned, upto).await?,
        };
        let (after, totals) =
            older.first().map_or((Position::START, Totals::default()), |last| (last.position, last.totals));
        let tail = self.store.fold(tenant, account, after, Upto::Position(upto)).await?;
        let Some(last) = tail.last.filter(|_| tail.totals.entries >= SNAPSHOT_EVERY) else {
            return Ok(tail.totals.entries);
        };
        let totals = totals.and(tail.totals);
        let next = Snapshot { tenant, account, position: last.position, at: last.at, totals };
        let Some(id) = self.next_id(self.store.now()).await else { return Ok(tail.totals.entries) };
        let mut set = ChangeSet::new(SetId::from_i64(id)).insert(next);
        if let Some(position) = superfluous(&next, &older) {
            set = set.remove(RowKey::Snapshot(tenant, account, position), 1);
            older.retain(|snapshot| snapshot.position != position);
        }
        if let Err(error) = self.commit(set).await {
            // Another process took the same one; the next count comes from the store.
            tracing::debug!(?error, "a snapshot was put off");
            return Ok(tail.totals.entries);
        }
        if self.store.is_exclusive() {
            older.insert(0, next);
            if taken.len() >= REMEMBERED_MAX {
                taken.clear();
            }
            taken.insert(owned, older);
        }
        Ok(0)
    }

    /// The account's snapshots up to there, newest first.
    async fn snapshots(&self, (tenant, account): Owned, upto: Position) -> Result<Vec<Snapshot>, ReadError> {
        let upto = Upto::Position(upto);
        let rows = self
            .store
            .scan(Scan::Snapshots { tenant, account, upto, limit: SNAPSHOTS_MAX })
            .await?
            .into_iter();
        Ok(rows
            .filter_map(|row| if let Row::Snapshot(snapshot) = row { Some(snapshot) } else { None })
            .collect())
    }

    /// Stores how far it came. Losing this costs counting anew, nothing else.
    async fn store_cursor(&self, state: &mut Projection) {
        let Some(id) = self.next_id(self.store.now()).await else { return };
        let set = ChangeSet::new(SetId::from_i64(id));
        let next = Cursor {
            reader: FeedReader::Projection,
            position: state.at.position,
            at: state.at.at,
            revision: state.stored.map_or(1, |stored| stored.revision.saturating_add(1)),
        };
        let set = match state.stored {
            None => set.insert(next),
            Some(stored) => set.replace(next, stored.revision),
        };
        match self.commit(set).await {
            Ok(_) => state.stored = Some(next),
            // Another process keeps it too: go on from theirs.
            Err(_) => {
                if let Ok(resumed) = self.resume_projection().await {
                    state.stored = resumed.stored;
                }
            }
        }
    }
}

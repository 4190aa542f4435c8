//! The projection: follows the commits in order and snapshots each account every `SNAPSHOT_EVERY`
//! entries. A balance is then one snapshot and a short tail. Commits of this process come from
//! memory (`recent.rs`), commits of other processes from the store's feed.
//!
//! A snapshot is the fold of an account's entries up to a position, and carries that position.
//! Applying the same commits twice, or in two processes at once, gives the same snapshot, which is
//! stored exactly once.

use crate::engine::Inner;
use crate::policy::PROJECTION_INTERVAL;
use crate::recent::{Gained, Owned, Run, count, entries};
use crate::signal::Signal;
use crate::world::World;
use counterfoil_core::ledger::snapshot::{Cursor, FeedReader, Snapshot, snapshot_to_drop};
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

/// Accounts with a counted tail. At the limit the counts are dropped and read from the store again.
const COUNTED_MAX: usize = 100_000;
/// Own commits behind a gap that still count as slightly out of order. More means that another
/// process filled the gap.
const STRAGGLERS: usize = 64;
/// Accounts with cached snapshots, so that hot accounts do not read theirs every time.
const REMEMBERED_MAX: usize = 1_024;

/// State between two rounds.
struct Projection {
    /// The last applied commit, and the stored cursor row, if any.
    at: CommitReceipt,
    stored: Option<Cursor>,
    /// Entries since the last snapshot.
    tails: HashMap<Owned, u64>,
    /// Cached snapshots by account, newest first. Only used if no other process can take snapshots.
    taken: HashMap<Owned, Vec<Snapshot>>,
}

/// A run of consecutive commits.
struct Page {
    last: Option<CommitReceipt>,
    gained: Gained,
    /// Whether no later commit is known.
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
                tracing::warn!(%error, "the projection failed; trying again");
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
    /// Applies one page of commits; returns whether it was the last.
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
                // Not counted by this process yet.
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

    /// The commits after a position: from memory, and from the feed if other processes committed
    /// too.
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

    /// The last snapshot and the fold of the entries after it, up to `upto`.
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

    /// Takes a snapshot at `upto` and drops one that is no longer needed. Returns the length of the
    /// tail after it.
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
        if let Some(position) = snapshot_to_drop(&next, &older) {
            set = set.remove(RowKey::Snapshot(tenant, account, position), 1);
            older.retain(|snapshot| snapshot.position != position);
        }
        if let Err(error) = self.commit(set).await {
            // Another process took the same snapshot; the next count comes from the store.
            tracing::debug!(?error, "a snapshot was postponed");
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

    /// The account's snapshots up to `upto`, newest first.
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

    /// Stores the cursor. Losing it only costs counting again.
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
            // Another process stores the cursor too: continue from its row.
            Err(_) => {
                if let Ok(resumed) = self.resume_projection().await {
                    state.stored = resumed.stored;
                }
            }
        }
    }
}

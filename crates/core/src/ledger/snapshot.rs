//! Snapshots: an account's sums at a position. With them, no read of a balance needs the whole
//! history.

use super::totals::Totals;
use crate::types::id::{AccountId, TenantId};
use crate::types::limits::SNAPSHOTS_MAX;
use crate::types::position::Position;
use crate::types::time::Time;

/// An account's sums up to and including a position. Snapshots follow from the entries, so repeated
/// snapshots are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub tenant: TenantId,
    pub account: AccountId,
    /// The last commit included.
    pub position: Position,
    /// The store's time of the last entry included.
    pub at: Time,
    pub totals: Totals,
}

/// The progress of a feed reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub reader: FeedReader,
    /// The last commit processed.
    pub position: Position,
    /// The store's time of the commit.
    pub at: Time,
    pub revision: u64,
}

/// The readers of the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeedReader {
    /// The writer of account snapshots.
    Projection,
}

impl FeedReader {
    /// The name in stores.
    pub const fn name(self) -> &'static str {
        match self {
            FeedReader::Projection => "projection",
        }
    }

    pub fn parse(name: &str) -> Option<FeedReader> {
        [FeedReader::Projection].into_iter().find(|reader| reader.name() == name)
    }
}

/// The snapshot to drop when `next` is added to `older` (newest first). `None` while there is room,
/// else the snapshot with the closest neighbours relative to age. Younger snapshots therefore
/// remain denser.
pub fn snapshot_to_drop(next: &Snapshot, older: &[Snapshot]) -> Option<Position> {
    if older.len() < SNAPSHOTS_MAX {
        return None;
    }
    let younger = std::iter::once(next).chain(older);
    let triples = younger.zip(older).zip(older.iter().skip(1));
    let crowded = triples.map(|((young, middle), old)| {
        let gap = u128::from(young.totals.entries.saturating_sub(old.totals.entries));
        let age = u128::from(next.totals.entries.saturating_sub(middle.totals.entries)).max(1);
        (gap, age, middle.position)
    });
    // The smallest gap / age, compared without division: both are below 2^64.
    crowded
        .reduce(|least, other| {
            let smaller = other.0.saturating_mul(least.1) < least.0.saturating_mul(other.1);
            if smaller { other } else { least }
        })
        .map(|(_, _, position)| position)
}

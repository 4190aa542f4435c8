//! Snapshots: what an account's entries added up to at a position, so that no balance ever reads a whole history.

use super::totals::Totals;
use crate::types::id::{AccountId, TenantId};
use crate::types::limits::SNAPSHOTS_MAX;
use crate::types::position::Position;
use crate::types::time::Time;

/// An account's sums up to and with a position. It follows from the entries, so taking it twice gives the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The account's tenant.
    pub tenant: TenantId,
    /// Whose it is.
    pub account: AccountId,
    /// The last commit it includes.
    pub position: Position,
    /// The store's time of the last entry it includes.
    pub at: Time,
    /// The sums.
    pub totals: Totals,
}

/// How far a reader of the feed has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Which reader.
    pub reader: FeedReader,
    /// The last commit it has dealt with.
    pub position: Position,
    /// The store's time of that commit.
    pub at: Time,
    /// Grows with every write of the row.
    pub revision: u64,
}

/// Who reads the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeedReader {
    /// The one that keeps snapshots of accounts.
    Projection,
}

impl FeedReader {
    /// The word in stores.
    pub const fn name(self) -> &'static str {
        match self {
            FeedReader::Projection => "projection",
        }
    }

    /// The reader of that name.
    pub fn parse(name: &str) -> Option<FeedReader> {
        [FeedReader::Projection].into_iter().find(|reader| reader.name() == name)
    }
}

/// Which snapshot to drop when `next` joins `older` (newest first): none while there is room, else the one whose
/// neighbours are closest together for its age. What is left lies closer together the younger it is.
pub fn superfluous(next: &Snapshot, older: &[Snapshot]) -> Option<Position> {
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
    // gap / age is smallest, compared without dividing: both are below 2^64.
    crowded
        .reduce(|least, other| {
            let smaller = other.0.saturating_mul(least.1) < least.0.saturating_mul(other.1);
            if smaller { other } else { least }
        })
        .map(|(_, _, position)| position)
}

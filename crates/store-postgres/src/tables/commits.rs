//! The log of commits, read by the feed and to resolve commits in doubt.
//!
//! A row is a group of change sets: set ids and the keys of the written rows, in the order of
//! positions. The row's own position is that of the group's last set.

use super::{Damage, RowReader};
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::limits::SETS_PER_GROUP_MAX;
use counterfoil_store::codec::touched;
use counterfoil_store::{CommitReceipt, Committed, Position};
use tokio_postgres::Row;

/// The position and time of a set, searched for in the groups after a position.
pub(crate) const FIND_SET_AFTER: &str = "SELECT position - cardinality(sets) + array_position(sets, $1), at \
    FROM commit_groups WHERE position > $2 AND $1 = ANY (sets) ORDER BY position LIMIT 1";
/// One row if the set is at the position.
pub(crate) const SET_IS_AT: &str = "SELECT 1 FROM (SELECT position, sets FROM commit_groups WHERE position >= $1 \
    ORDER BY position LIMIT 1) AS g WHERE sets[(cardinality(sets) - (position - $1))::int] = $2";
/// The groups whose last position is between two bounds.
pub(crate) const GROUPS_AFTER: &str = "SELECT position, at, sets, touched FROM commit_groups \
    WHERE position > $1 AND position < $2 ORDER BY position";

/// A page of the feed as a range of positions. Positions are dense, so the end of the page is known
/// in advance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) after: i64,
    upto: i64,
    /// Every set of the page is in a group that ends before this position.
    pub(crate) groups_before: i64,
}

impl Page {
    /// At most `limit` sets after a position, or `None` if no such position can exist.
    pub(crate) fn after(position: Position, limit: i64) -> Option<Page> {
        let after = i64::try_from(position.0).ok()?;
        let upto = after.saturating_add(limit);
        let longest = i64::try_from(SETS_PER_GROUP_MAX).unwrap_or(i64::MAX);
        Some(Page { after, upto, groups_before: upto.saturating_add(longest) })
    }

    /// The sets of the page, from the rows of [`GROUPS_AFTER`]. A gap is an error: a reader that
    /// continued behind the gap would never see the sets in it.
    pub(crate) fn take(self, groups: &[Row]) -> Result<Vec<Committed>, Damage> {
        let mut page = Vec::new();
        for row in groups {
            page.extend(sets_of(row)?.into_iter().filter(|commit| self.contains(commit.receipt.position)));
        }
        let gap = (self.after.saturating_add(1)..)
            .zip(&page)
            .find(|(position, commit)| i64::try_from(commit.receipt.position.0).ok() != Some(*position));
        match gap {
            Some((missing, _)) => {
                Err(Damage(format!("the log of commits has no position {missing}; ask again")))
            }
            None => Ok(page),
        }
    }

    fn contains(self, position: Position) -> bool {
        i64::try_from(position.0).is_ok_and(|position| position > self.after && position <= self.upto)
    }
}

pub(crate) fn receipt(row: &Row) -> Result<CommitReceipt, Damage> {
    take_receipt(&mut RowReader::new(row, "commit_groups"))
}

fn take_receipt(reader: &mut RowReader<'_>) -> Result<CommitReceipt, Damage> {
    Ok(CommitReceipt { position: Position(reader.number()?), at: reader.time()? })
}

fn sets_of(row: &Row) -> Result<Vec<Committed>, Damage> {
    let mut reader = RowReader::new(row, "commit_groups");
    let last = take_receipt(&mut reader)?;
    let (sets, touched): (Vec<i64>, Vec<&[u8]>) = (reader.raw()?, reader.raw()?);
    let before = u64::try_from(sets.len()).ok().and_then(|sets| last.position.0.checked_sub(sets));
    let Some(before) = before.filter(|_| sets.len() == touched.len()) else {
        return Err(reader.damage("the numbers of sets, positions and key lists differ"));
    };
    let positions = before.saturating_add(1)..;
    let sets = positions.zip(sets.into_iter().zip(touched));
    sets.map(|(position, (set, keys))| {
        Ok(Committed {
            receipt: CommitReceipt { position: Position(position), at: last.at },
            set: SetId::from_i64(set),
            touched: touched::decode(keys).ok_or_else(|| reader.damage("a list of keys is not readable"))?,
        })
    })
    .collect()
}

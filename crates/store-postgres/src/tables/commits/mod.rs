//! The log of commits: the feed, and how a commit in doubt is resolved.
//!
//! A group is one row: the ids of its sets and what each touched, in the order of their positions, of which the row has the last. Before
//! schema 14 each set was a row of its own ([`Log::BySet`]); those rows stay, and are read with the others.

mod seal;
pub(crate) mod words;

pub(crate) use seal::Sealing;

use super::{Damage, Line};
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::limits::SETS_PER_GROUP_MAX;
use counterfoil_store::codec::touched;
use counterfoil_store::{CommitReceipt, Committed, Position, RowKey};
use tokio_postgres::Row;

/// How commits are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// A row for each set: all that tables before schema 14 know.
    BySet,
    /// A row for each group.
    ByGroup,
}

/// Where a set was committed, of those that have a row of their own.
pub(crate) const OF_SET: &str = "SELECT position, at FROM commits WHERE set_id = $1";
/// Where a set was committed, of those after a position that are in groups.
pub(crate) const OF_SET_AFTER: &str = "SELECT position - cardinality(sets) + array_position(sets, $1), at \
    FROM commit_groups WHERE position > $2 AND $1 = ANY (sets) ORDER BY position LIMIT 1";
/// Whether a set is at a position, of those that have a row of their own.
pub(crate) const IS_SET: &str = "SELECT 1 FROM commits WHERE position = $1 AND set_id = $2";
/// Whether a set is at a position, of those that are in groups.
pub(crate) const IS_IN_GROUP: &str = "SELECT 1 FROM (SELECT position, sets FROM commit_groups WHERE position >= $1 \
    ORDER BY position LIMIT 1) AS g WHERE sets[(cardinality(sets) - (position - $1))::int] = $2";
/// Sets after one position and up to another.
pub(crate) const SETS_AFTER: &str = "SELECT position, at, set_id, touched FROM commits WHERE position > $1 AND position <= $2 ORDER BY position";
/// Groups that end after one position and before another.
pub(crate) const GROUPS_AFTER: &str = "SELECT position, at, sets, touched FROM commit_groups WHERE position > $1 AND position < $2 ORDER BY position";

/// Whether the tables have groups.
pub(crate) const ARE_GROUPS: &str = "SELECT to_regclass('counterfoil.commit_groups') IS NOT NULL";

/// A page of the feed, as positions: they are dense, so it is known where it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) after: i64,
    pub(crate) upto: i64,
    /// Whatever is in the page is in a group that ends before this.
    pub(crate) groups_before: i64,
}

impl Page {
    /// At most so many after a position; nothing if there is no such position.
    pub(crate) fn after(position: Position, limit: i64) -> Option<Page> {
        let after = i64::try_from(position.0).ok()?;
        let upto = after.saturating_add(limit);
        let longest = i64::try_from(SETS_PER_GROUP_MAX).unwrap_or(i64::MAX);
        Some(Page { after, upto, groups_before: upto.saturating_add(longest) })
    }

    /// The sets of both kinds of rows, in order.
    pub(crate) fn take(self, sets: &[Row], groups: &[Row]) -> Result<Vec<Committed>, Damage> {
        let mut page = Vec::new();
        for row in sets {
            page.push(committed(row)?);
        }
        for row in groups {
            page.extend(group(row)?.into_iter().filter(|commit| self.has(commit.receipt.position)));
        }
        page.sort_unstable_by_key(|commit| commit.receipt.position);
        let gap = (self.after.saturating_add(1)..)
            .zip(&page)
            .find(|(position, commit)| i64::try_from(commit.receipt.position.0).ok() != Some(*position));
        match gap {
            // Who reads on behind a gap would never learn what is in it.
            Some((missing, _)) => {
                Err(Damage(format!("the log of commits has no position {missing}; ask again")))
            }
            None => Ok(page),
        }
    }

    fn has(self, position: Position) -> bool {
        i64::try_from(position.0).is_ok_and(|position| position > self.after && position <= self.upto)
    }
}

/// Whose the rows of these numbers are, for commits that do not say it. Numbers are unique over all tenants, and what bears the
/// same number in several tables belongs to one. Nothing leads to them but each tenant's keys.
pub(crate) const OWNERS: &str = "SELECT k.id, o.id FROM (SELECT unnest($1::bigint[]) AS id) AS k CROSS JOIN tenants AS o \
    CROSS JOIN LATERAL (SELECT 1 FROM journal_transactions AS t WHERE t.tenant = o.id AND t.id = k.id \
        UNION ALL SELECT 1 FROM charges AS t WHERE t.tenant = o.id AND t.id = k.id \
        UNION ALL SELECT 1 FROM operations AS t WHERE t.tenant = o.id AND t.id = k.id \
        UNION ALL SELECT 1 FROM payouts AS t WHERE t.tenant = o.id AND t.id = k.id \
        UNION ALL SELECT 1 FROM accounts AS t WHERE t.tenant = o.id AND t.id = k.id \
        UNION ALL SELECT 1 FROM holds AS t WHERE t.tenant = o.id AND t.id = k.id LIMIT 1) AS found";

/// The number by which [`OWNERS`] finds whose a row is.
pub(crate) fn sought(key: &RowKey) -> Option<i64> {
    match key {
        RowKey::Charge(_, id) => Some(id.to_i64()),
        RowKey::Operation(_, id) => Some(id.to_i64()),
        RowKey::Payout(_, id) => Some(id.to_i64()),
        RowKey::Outbox(_, subject) | RowKey::Audit(_, subject, _) => Some(subject.to_i64()),
        RowKey::Account(_, account) | RowKey::Balance(_, account, _) | RowKey::Snapshot(_, account, _) => {
            Some(account.to_i64())
        }
        RowKey::Transaction(_, id) | RowKey::Reversal(_, id) => Some(id.to_i64()),
        RowKey::Hold(_, id) => Some(id.to_i64()),
        RowKey::Claim(..)
        | RowKey::Tenant(_)
        | RowKey::ApiKey(_)
        | RowKey::Slot(_)
        | RowKey::Name(..)
        | RowKey::Asset(..)
        | RowKey::Cursor(_) => None,
    }
}

/// The name of the index that keeps a set from being committed twice.
pub(crate) const BY_SET: &str = "commits_by_set";

pub(crate) fn receipt(row: &Row) -> Result<CommitReceipt, Damage> {
    take_receipt(&mut Line::new(row, "commits"))
}

fn take_receipt(line: &mut Line<'_>) -> Result<CommitReceipt, Damage> {
    Ok(CommitReceipt { position: Position(line.number()?), at: line.time()? })
}

fn committed(row: &Row) -> Result<Committed, Damage> {
    let mut line = Line::new(row, "commits");
    Ok(Committed {
        receipt: take_receipt(&mut line)?,
        set: SetId::from_i64(line.int()?),
        touched: line.word(words::decode)?,
    })
}

/// A row of the table of groups, set by set.
fn group(row: &Row) -> Result<Vec<Committed>, Damage> {
    let mut line = Line::new(row, "commit_groups");
    let last = take_receipt(&mut line)?;
    let (sets, told): (Vec<i64>, Vec<&[u8]>) = (line.raw()?, line.raw()?);
    let before = u64::try_from(sets.len()).ok().and_then(|sets| last.position.0.checked_sub(sets));
    let Some(before) = before.filter(|_| sets.len() == told.len()) else {
        return Err(line.damage("its sets are not as many as what they touched, or as its positions"));
    };
    let positions = before.saturating_add(1)..;
    let sets = positions.zip(sets.into_iter().zip(told));
    sets.map(|(position, (set, told))| {
        Ok(Committed {
            receipt: CommitReceipt { position: Position(position), at: last.at },
            set: SetId::from_i64(set),
            touched: touched::decode(told)
                .ok_or_else(|| line.damage("what a set touched is not readable"))?,
        })
    })
    .collect()
}

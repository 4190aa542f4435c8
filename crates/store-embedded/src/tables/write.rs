//! Judged changes, as the tables write them.

use crate::key_index::Partition;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::types::id::{SetId, SubjectId};
use counterfoil_store::judge::Image;
use counterfoil_store::{Change, CommitReceipt, Row};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) enum Write {
    Insert(Arc<Row>, Origin),
    Replace(Arc<Row>),
    /// Replaces an expired claim of the same key, which had created `SubjectId`.
    Reuse(Arc<Row>, SubjectId, Partition),
    /// Removes a row, given in its last version.
    Remove(Arc<Row>),
    /// The commit row, with the encoded keys of the touched rows.
    Commit(CommitReceipt, SetId, Vec<u8>),
}

/// The commit and the partition of an insertion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) receipt: CommitReceipt,
    /// Used by claims only.
    pub(crate) partition: Partition,
}

impl Write {
    /// The write for `change`; `image` has the row before the change. None for balances, which are
    /// written once for a whole group.
    pub(crate) fn of(change: &Change, image: &Image, origin: Origin) -> Option<Write> {
        match change {
            Change::Insert(row) if matches!(**row, Row::Balance(_)) => None,
            Change::Insert(row) => Some(Write::Insert(Arc::clone(row), origin)),
            Change::Replace { row, .. } => Some(match replaced_subject(row, image) {
                Some(subject) => Write::Reuse(Arc::clone(row), subject, origin.partition),
                None => Write::Replace(Arc::clone(row)),
            }),
            // The judge refuses to remove a missing row.
            Change::Remove { key, .. } => image.shared(key).map(Write::Remove),
            Change::Move(_) => None,
        }
    }

    /// The new or reused key that the write adds to a partition.
    pub(crate) fn new_key(&self) -> Option<(ClaimId, Partition)> {
        let (row, partition) = match self {
            Write::Insert(row, origin) => (row, origin.partition),
            Write::Reuse(row, _, partition) => (row, *partition),
            Write::Replace(_) | Write::Remove(_) | Write::Commit(..) => return None,
        };
        if let Row::Claim(claim) = &**row { Some((claim.id, partition)) } else { None }
    }
}

/// The subject of the old claim, if the new one reuses its key.
fn replaced_subject(row: &Row, image: &Image) -> Option<SubjectId> {
    match (row, image.get(&row.key())) {
        (Row::Claim(new), Some(Row::Claim(old))) => (new.subject != old.subject).then_some(old.subject),
        _ => None,
    }
}

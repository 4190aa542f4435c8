//! A change that was judged, as the tables take it.

use super::volumes::Volume;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::types::id::{SetId, SubjectId};
use counterfoil_store::judge::Image;
use counterfoil_store::{Change, CommitReceipt, Row};
use std::sync::Arc;

/// What becomes of one row.
#[derive(Debug)]
pub(crate) enum Write {
    /// It is new.
    Insert(Arc<Row>, Origin),
    /// It takes the place of an older one.
    Replace(Arc<Row>),
    /// A claim that takes the place of the one which made this.
    Reuse(Arc<Row>, SubjectId, Volume),
    /// It goes, as it was.
    Remove(Arc<Row>),
    /// The commit itself, with the rows it touched.
    Commit(CommitReceipt, SetId, Vec<u8>),
}

/// Where a row comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Of the commit that made it.
    pub(crate) receipt: CommitReceipt,
    /// Into which its key goes, if it is a claim.
    pub(crate) volume: Volume,
}

impl Write {
    /// What `change` means for its row, which `image` has as it was before. Balances are written once for a whole group,
    /// so a change of one is none of these.
    pub(crate) fn of(change: &Change, image: &Image, origin: Origin) -> Option<Write> {
        match change {
            Change::Insert(row) if matches!(**row, Row::Balance(_)) => None,
            Change::Insert(row) => Some(Write::Insert(Arc::clone(row), origin)),
            Change::Replace { row, .. } => Some(match left(row, image) {
                Some(subject) => Write::Reuse(Arc::clone(row), subject, origin.volume),
                None => Write::Replace(Arc::clone(row)),
            }),
            // One that is not there is not removed: the judge refuses.
            Change::Remove { key, .. } => image.shared(key).map(Write::Remove),
            Change::Move(_) => None,
        }
    }

    /// The key that goes into a volume by this, and which: a new one, or one that is used again.
    pub(crate) fn entering(&self) -> Option<(ClaimId, Volume)> {
        let (row, volume) = match self {
            Write::Insert(row, origin) => (row, origin.volume),
            Write::Reuse(row, _, volume) => (row, *volume),
            Write::Replace(_) | Write::Remove(_) | Write::Commit(..) => return None,
        };
        if let Row::Claim(claim) = &**row { Some((claim.id, volume)) } else { None }
    }
}

/// What a claim has made, if its key means a new request now.
fn left(row: &Row, image: &Image) -> Option<SubjectId> {
    match (row, image.get(&row.key())) {
        (Row::Claim(new), Some(Row::Claim(old))) => (new.subject != old.subject).then_some(old.subject),
        _ => None,
    }
}

//! A change that was judged, as the tables take it.

use counterfoil_core::types::id::SetId;
use counterfoil_store::judge::Image;
use counterfoil_store::{Change, Receipt, Row, RowKey};
use std::sync::Arc;

/// What becomes of one row.
#[derive(Debug)]
pub(crate) enum Write {
    /// It is new, by this commit.
    Insert(Arc<Row>, Receipt),
    /// It takes the place of an older one.
    Replace(Arc<Row>),
    /// A claim that takes the place of one which made something else.
    Reuse(Arc<Row>),
    /// It goes.
    Remove(RowKey),
    /// The commit itself, with the rows it touched.
    Commit(Receipt, SetId, Vec<u8>),
}

impl Write {
    /// What `change` means for its row, which `image` has as it was before. Balances are written once for a whole group,
    /// so a change of one is none of these.
    pub(crate) fn of(change: &Change, image: &Image, receipt: Receipt) -> Option<Write> {
        match change {
            Change::Insert(row) if matches!(**row, Row::Balance(_)) => None,
            Change::Insert(row) => Some(Write::Insert(Arc::clone(row), receipt)),
            Change::Replace { row, .. } if moves(row, image) => Some(Write::Reuse(Arc::clone(row))),
            Change::Replace { row, .. } => Some(Write::Replace(Arc::clone(row))),
            Change::Remove { key, .. } => Some(Write::Remove(key.clone())),
            Change::Move(_) => None,
        }
    }
}

/// Whether the row is a claim whose key means a new request.
fn moves(row: &Row, image: &Image) -> bool {
    match (row, image.get(&row.key())) {
        (Row::Claim(new), Some(Row::Claim(old))) => new.subject != old.subject,
        _ => false,
    }
}

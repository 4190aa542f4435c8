//! What a group has to look at before it is judged, and what it may take on trust.

use super::Job;
use super::memory::{Memory, Remembered};
use crate::tables::Place;
use counterfoil_store::{Change, KeyMap, KeySet, Row, RowKey};
use std::collections::{BTreeMap, BTreeSet};

/// What is looked up before judging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// Neither claims to be inserted nor rows that this process remembers: the tables refuse a second claim, and a row
    /// that is no longer the remembered one is not written.
    Hopeful,
    /// Not the absence of rows whose ids were just minted: their tables refuse a second one.
    Trusting,
    /// Everything.
    Thorough,
    /// Everything, and locks of others are waited for only briefly: there may be many such attempts in a row.
    Alone,
}

impl Care {
    /// Whether the row is inserted without looking for it: its unique key is the guard.
    pub(super) fn takes_for_new(self, change: &Change) -> bool {
        match self {
            Care::Hopeful => is_claim(change) || is_new_by_construction(change),
            Care::Trusting => is_new_by_construction(change),
            Care::Thorough | Care::Alone => false,
        }
    }
}

fn is_claim(change: &Change) -> bool {
    matches!(change, Change::Insert(row) if matches!(&**row, Row::Claim(_)))
}

/// New ids bring new rows: looking for one would find nothing.
fn is_new_by_construction(change: &Change) -> bool {
    matches!(change, Change::Insert(_)) && Place::of_change(change).is_minted()
}

/// Keys to look at, by table and whether they must stay as they are found. The order of the map is the one in which
/// all processes lock: tables first, and within one the statement's own order.
#[derive(Default)]
pub(super) struct Lookups(pub(super) BTreeMap<(bool, Place), Vec<RowKey>>);

impl Lookups {
    /// What the group needs, and the rows that are remembered instead.
    ///
    /// Only rows that may change are locked, and with them claims that are to be inserted: who finds one there that somebody changes must
    /// not wait for it with other rows in hand. A row that is to be inserted and found there makes its set refused, and one that is not
    /// found is guarded by its unique key.
    pub(super) fn of(group: &[Job], care: Care, memory: &Memory) -> (Lookups, KeyMap<Remembered>) {
        let (mut locked, mut read) = (KeySet::default(), KeySet::default());
        for change in group.iter().flat_map(|job| job.set.changes()) {
            match change {
                Change::Replace { .. } | Change::Remove { .. } | Change::Move(_) => {
                    locked.insert(change.key());
                }
                // Who is known to be there is looked at, whatever is hoped: the set will be refused.
                Change::Insert(_) => {
                    if !care.takes_for_new(change) || (is_claim(change) && memory.has(&change.key())) {
                        read.insert(change.key());
                    }
                }
            }
        }
        let remembered = (care == Care::Hopeful).then(|| remembered(group, &locked, memory)).flatten();
        if remembered.is_none() && !locked.is_empty() {
            let changes = group.iter().flat_map(|job| job.set.changes());
            locked.extend(changes.filter(|change| is_claim(change)).map(Change::key));
        }
        let mut all = Lookups::default();
        for key in read.into_iter().filter(|key| !locked.contains(key)) {
            all.add(false, key);
        }
        if remembered.is_none() {
            for key in locked {
                all.add(!Place::of(&key).lasts(), key);
            }
        }
        (all, remembered.unwrap_or_default())
    }

    /// Adds a key that is not in it yet.
    pub(super) fn add(&mut self, locked: bool, key: RowKey) {
        self.0.entry((locked, Place::of(&key))).or_default().push(key);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The rows to be changed, if all of them are remembered; they are then locked by the writes themselves. One that is
/// not would be locked before those, and a table with updates and removals is locked in two goes: neither is in the
/// order that all processes keep, so then everything is looked up.
fn remembered(group: &[Job], changing: &KeySet, memory: &Memory) -> Option<KeyMap<Remembered>> {
    let (mut updated, mut removed) = (BTreeSet::new(), BTreeSet::new());
    for change in group.iter().flat_map(|job| job.set.changes()) {
        match change {
            Change::Replace { .. } | Change::Move(_) => updated.insert(Place::of_change(change)),
            Change::Remove { .. } => removed.insert(Place::of_change(change)),
            Change::Insert(_) => false,
        };
    }
    if updated.is_disjoint(&removed) { memory.recall(changing.iter()) } else { None }
}

//! The answers to a workload, each with the number of recorded operations at that time.

use counterfoil_core::types::id::SetId;
use counterfoil_store::{ChangeSet, CommitReceipt, RowKey};
use std::collections::BTreeMap;

/// A set that was answered as committed.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    pub set: SetId,
    pub receipt: CommitReceipt,
    /// Recorded operations when the store reported the group as durable.
    pub after: usize,
}

/// All submitted sets and their answers.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// Every set that was submitted, committed or not.
    pub sets: BTreeMap<i64, ChangeSet>,
    /// Sets that were answered as committed.
    pub acknowledged: Vec<Acknowledged>,
    /// Sets that were reported as not committed and then given up: they must never appear.
    pub denied: Vec<(SetId, usize)>,
    /// The secret that each opening found.
    pub secrets: Vec<([u8; 32], usize)>,
    /// The last position of each group.
    pub groups: Vec<u64>,
    /// A set was left in doubt, so not all groups are known.
    pub doubtful: bool,
    /// The next unused number.
    pub next: i64,
}

impl Story {
    /// The story after `point` operations, as the start of another recording.
    pub fn upto(&self, point: usize) -> Story {
        let acknowledged = self.acknowledged.iter().filter(|acknowledged| acknowledged.after <= point);
        Story {
            sets: self.sets.clone(),
            acknowledged: acknowledged.map(|known| Acknowledged { after: 0, ..*known }).collect(),
            denied: self
                .denied
                .iter()
                .filter(|denied| denied.1 <= point)
                .map(|denied| (denied.0, 0))
                .collect(),
            secrets: self
                .secrets
                .iter()
                .filter(|secret| secret.1 <= point)
                .map(|secret| (secret.0, 0))
                .collect(),
            groups: Vec::new(),
            // The group under way at the cut is unknown.
            doubtful: true,
            next: self.next,
        }
    }

    /// The keys of all rows in any set.
    pub fn keys(&self) -> Vec<RowKey> {
        let changes = self.sets.values().flat_map(ChangeSet::changes);
        let mut keys: Vec<RowKey> = changes.map(counterfoil_store::Change::key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

//! What a workload was told, and after which recorded operation.

use counterfoil_core::types::id::SetId;
use counterfoil_store::{ChangeSet, CommitReceipt, RowKey};
use std::collections::BTreeMap;

/// A set that was answered as committed.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Which set.
    pub set: SetId,
    /// The answer.
    pub receipt: CommitReceipt,
    /// So many operations had been recorded when its group was durable, by the store's word.
    pub after: usize,
}

/// All that was submitted and answered.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// Every set that was submitted, committed or not.
    pub sets: BTreeMap<i64, ChangeSet>,
    /// Sets that were answered as committed.
    pub acknowledged: Vec<Acknowledged>,
    /// Sets that were said not to be committed, and given up: they may never appear.
    pub denied: Vec<(SetId, usize)>,
    /// The secret each opening found, and when.
    pub secrets: Vec<([u8; 32], usize)>,
    /// The last position of each group.
    pub groups: Vec<u64>,
    /// A set was left in doubt, so not all groups are known.
    pub doubtful: bool,
    /// The next number that was not used yet.
    pub next: i64,
}

impl Story {
    /// The story as it stood after `point` operations, as the beginning of another.
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
            // Which group was under way at the cut is not told.
            doubtful: true,
            next: self.next,
        }
    }

    /// Every row that any set is about.
    pub fn keys(&self) -> Vec<RowKey> {
        let changes = self.sets.values().flat_map(ChangeSet::changes);
        let mut keys: Vec<RowKey> = changes.map(counterfoil_store::Change::key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

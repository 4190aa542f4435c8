//! A map over many small tables.
//!
//! A big table blocks everything while it doubles. With millions of keys that pause shows in a
//! client's latency measurement. Many small tables double one at a time.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

const TABLES: usize = 256;

/// A map from shared text to `V`.
pub(crate) struct Spread<V> {
    hasher: RandomState,
    tables: Vec<HashMap<Arc<str>, V, RandomState>>,
}

impl<V> Spread<V> {
    pub(crate) fn new() -> Self {
        let hasher = RandomState::new();
        let tables = (0..TABLES).map(|_| HashMap::with_hasher(hasher.clone())).collect();
        Spread { hasher, tables }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&V> {
        self.tables[self.table_of(key)].get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let table = self.table_of(key);
        self.tables[table].get_mut(key)
    }

    pub(crate) fn insert(&mut self, key: Arc<str>, value: V) -> Option<V> {
        let table = self.table_of(&key);
        self.tables[table].insert(key, value)
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<V> {
        let table = self.table_of(key);
        self.tables[table].remove(key)
    }

    /// Bits from the middle of the hash: the tables themselves use both ends.
    fn table_of(&self, key: &str) -> usize {
        (self.hasher.hash_one(key) >> 32) as usize % TABLES
    }
}

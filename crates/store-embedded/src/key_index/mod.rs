//! The index of idempotency keys: partitions by arrival, in front of them a Bloom filter.
//!
//! Digests of keys are random, so one tree of all keys would dirty one page per new key. New keys
//! go into the youngest partition instead, whose pages are in the cache ([`partitions`]). A look-up
//! tries every partition, youngest first. Nearly every request brings a new key, and the filter
//! ([`filter`], filled by [`fill`]) spares new keys the look-up.
//!
//! Promise: a key with a record, or with an admitted set, is never called new. The reverse error is
//! allowed: a few new keys in a thousand are looked up for nothing.

mod fill;
mod filter;
mod partitions;

pub(crate) use fill::Home;
pub(crate) use partitions::{Partition, is_listed, list_closed_partitions, youngest_partition};

use crate::flush::Progress;
use counterfoil_core::idempotency::claim::ClaimId;
use fill::{FILTER_ROOM_MAX, KeyFilter};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The room of a partition at the least. Most pages of a partition this small are written with
/// every flush of a busy server, which is what makes new keys cheap.
const PARTITION_KEYS_MIN: usize = 1 << 14;
/// About as many partitions as a store has at most; larger stores get larger partitions.
const PARTITIONS: usize = 32;

/// The writer's view of the key index.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    home: Home,
    progress: Arc<Progress>,
    filter: KeyFilter,
    /// A filter with more room that is still being filled.
    larger: Option<KeyFilter>,
    youngest: Partition,
    /// Keys in the youngest partition: those added by the writer, and once the filter is whole
    /// those that it found there.
    in_youngest: usize,
    is_counted: bool,
}

impl KeyIndex {
    /// Fills a filter in the background: keys up to `position` come from the database, later keys
    /// from the writer. `room` is the expected number of keys.
    pub(crate) fn open(
        home: Home,
        progress: &Arc<Progress>,
        position: u64,
        room: usize,
        youngest: Partition,
    ) -> KeyIndex {
        let filter = KeyFilter::fill(&home, progress, position, room, youngest);
        let progress = Arc::clone(progress);
        KeyIndex { home, progress, filter, larger: None, youngest, in_youngest: 0, is_counted: false }
    }

    /// Whether no record of this key can be in the database or in the memtable.
    pub(crate) fn is_new(&self, id: ClaimId) -> bool {
        self.filter.is_whole() && !self.filter.may_have(id)
    }

    /// Adds the key of an admitted set.
    pub(crate) fn add(&mut self, id: ClaimId) {
        self.in_youngest = self.in_youngest.saturating_add(1);
        self.filter.add(id);
        if let Some(larger) = &mut self.larger {
            larger.add(id);
        }
    }

    /// The partition for new keys.
    pub(crate) fn youngest(&self) -> Partition {
        self.youngest
    }

    /// Begins a partition or a larger filter if there is too little room. Called between two
    /// groups; `position` is that of the last admitted set.
    pub(crate) fn make_room(&mut self, position: u64) {
        if !self.is_counted && self.filter.is_whole() {
            let found = self.filter.filling.found_in_youngest.load(Ordering::Relaxed);
            self.in_youngest = self.in_youngest.saturating_add(found);
            self.is_counted = true;
        }
        let keys = self.filter.keys();
        if self.in_youngest > (keys / PARTITIONS).max(PARTITION_KEYS_MIN) {
            (self.youngest, self.in_youngest) = (self.youngest.next(), 0);
            // Keys that the filter still finds belong to the partition before.
            self.is_counted = true;
        }
        if let Some(larger) = self.larger.take_if(|larger| larger.is_whole()) {
            self.filter = larger;
        } else if keys > self.filter.room && self.filter.room < FILTER_ROOM_MAX && self.larger.is_none() {
            let room = keys.saturating_mul(2);
            self.larger = Some(KeyFilter::fill(&self.home, &self.progress, position, room, self.youngest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fill::FILTER_ROOM_MIN;
    use super::partitions::KeyPrefix;
    use super::*;
    use crate::log::Lineage;
    use crate::open::connect;
    use counterfoil_core::types::digest::Digest;
    use rusqlite::Connection;
    use std::path::Path;

    const LINEAGE: Lineage = Lineage(77);

    fn home(dir: &Path) -> Home {
        Home { dir: dir.to_owned(), lineage: LINEAGE }
    }

    fn key(number: u64) -> ClaimId {
        ClaimId::from_digest(Digest::of("key", &[&number.to_be_bytes()]))
    }

    /// A database with these keys in its first partition.
    fn database(keys: std::ops::Range<u64>) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let db = connection(dir.path());
        let tables = "PRAGMA journal_mode = WAL; \
            CREATE TABLE claims (id BLOB, partition INTEGER, PRIMARY KEY (partition, id)); \
            CREATE TABLE meta (key TEXT PRIMARY KEY, value); \
            CREATE TABLE key_partitions (partition INTEGER PRIMARY KEY, keys)";
        db.execute_batch(tables).unwrap();
        db.execute("INSERT INTO meta VALUES ('redo_lineage', ?1)", [LINEAGE.0]).unwrap();
        db.execute_batch("BEGIN").unwrap();
        for number in keys {
            insert(&db, number, 1);
        }
        db.execute_batch("COMMIT").unwrap();
        dir
    }

    fn connection(dir: &Path) -> Connection {
        Connection::open(connect::file(dir)).unwrap()
    }

    fn insert(db: &Connection, number: u64, partition: u64) {
        let id = key(number);
        db.execute("INSERT INTO claims VALUES (?1, ?2)", (id.digest().as_bytes(), partition)).unwrap();
    }

    fn open(dir: &Path, room: usize) -> KeyIndex {
        KeyIndex::open(home(dir), &Arc::new(Progress::new(5)), 5, room, Partition::FIRST)
    }

    fn filled(mut keys: KeyIndex) -> KeyIndex {
        fill(&mut keys.filter);
        keys
    }

    fn fill(filter: &mut KeyFilter) {
        filter.thread.take().unwrap().join().unwrap();
    }

    #[test]
    fn keys_of_the_database_and_of_the_writer_are_not_new() {
        let dir = database(0..9_000);
        let mut keys = filled(open(dir.path(), 0));
        keys.add(key(9_000));
        assert!((0..=9_000).all(|number| !keys.is_new(key(number))));
        assert!(keys.is_new(key(9_001)));
    }

    #[test]
    fn no_key_is_new_before_the_filter_is_whole() {
        let dir = database(0..1);
        let progress = Arc::new(Progress::new(5));
        let keys = KeyIndex::open(home(dir.path()), &progress, 6, 0, Partition::FIRST);
        assert!(!keys.is_new(key(1)));
        // A set that was durable when the filter was begun is flushed only now.
        insert(&connection(dir.path()), 2, 1);
        progress.set_flushed(6);
        let keys = filled(keys);
        assert!(!keys.is_new(key(2)) && keys.is_new(key(1)));
    }

    #[test]
    fn no_key_is_new_if_the_database_cannot_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let progress = Arc::new(Progress::new(0));
        let keys = filled(KeyIndex::open(home(dir.path()), &progress, 0, 0, Partition::FIRST));
        assert!(!keys.is_new(key(1)));
    }

    #[test]
    fn a_database_of_another_lineage_does_not_fill_the_filter() {
        let dir = database(0..10);
        let moved = Home { lineage: Lineage(78), ..home(dir.path()) };
        let keys = filled(KeyIndex::open(moved, &Arc::new(Progress::new(5)), 5, 0, Partition::FIRST));
        assert!(!keys.is_new(key(11)));
    }

    #[test]
    fn a_filter_that_waits_for_a_flush_ends_with_the_store() {
        let dir = database(0..1);
        drop(KeyIndex::open(home(dir.path()), &Arc::new(Progress::new(5)), 6, 0, Partition::FIRST));
    }

    /// More than one page of keys in each of several partitions, inserted in no order.
    #[test]
    fn keys_of_all_partitions_are_known() {
        let dir = database(0..0);
        let mut db = connection(dir.path());
        let together = db.transaction().unwrap();
        (0..15_000).for_each(|number| insert(&together, number, 7 - number % 3));
        together.commit().unwrap();
        let keys = filled(open(dir.path(), 0));
        assert!((0..15_000).all(|number| !keys.is_new(key(number))));
        assert!(keys.is_new(key(15_000)));
        assert_eq!(keys.filter.keys(), 15_000);
    }

    #[test]
    fn keys_of_a_closed_partition_are_known_by_its_list() {
        let dir = database(0..10);
        let db = connection(dir.path());
        (10..20).for_each(|number| insert(&db, number, 2));
        // Key 20 was removed after the list was made.
        let listed: Vec<u8> =
            (10..21).flat_map(|number| KeyPrefix::from(key(number)).0.to_be_bytes()).collect();
        db.execute("INSERT INTO key_partitions VALUES (2, ?1)", [listed]).unwrap();
        let keys = filled(open(dir.path(), 0));
        assert!((0..21).all(|number| !keys.is_new(key(number))));
        assert!(keys.is_new(key(21)));
        assert_eq!(keys.filter.keys(), 21);
    }

    #[test]
    fn a_full_filter_serves_until_a_larger_one_is_whole() {
        let dir = database(0..10);
        let mut keys = filled(open(dir.path(), 0));
        keys.make_room(5);
        assert!(keys.larger.is_none());
        // One key more than there is room for, with the ten that were found.
        keys.filter.added = FILTER_ROOM_MIN - 9;
        keys.make_room(5);
        keys.add(key(11));
        assert!(!keys.is_new(key(0)) && !keys.is_new(key(11)) && keys.is_new(key(12)));
        fill(keys.larger.as_mut().unwrap());
        keys.make_room(5);
        assert_eq!((keys.filter.room, keys.filter.added), (2 * FILTER_ROOM_MIN + 2, 1));
        assert!(keys.larger.is_none());
        assert!((0..10).chain([11]).all(|number| !keys.is_new(key(number))) && keys.is_new(key(12)));
    }

    #[test]
    fn a_full_partition_is_followed_by_the_next() {
        let dir = database(0..10);
        let mut keys = filled(open(dir.path(), 0));
        // The partition is full with the ten keys that were found.
        keys.in_youngest = PARTITION_KEYS_MIN - 10;
        keys.make_room(5);
        assert_eq!(keys.youngest(), Partition::FIRST);
        keys.add(key(10));
        keys.make_room(5);
        assert_eq!((keys.youngest(), keys.in_youngest), (Partition::FIRST.next(), 0));
        keys.in_youngest = PARTITION_KEYS_MIN;
        keys.make_room(5);
        assert_eq!(keys.youngest(), Partition::FIRST.next(), "the ten are in the partition before");
    }

    #[test]
    fn partitions_grow_with_the_number_of_keys() {
        let dir = database(0..10);
        let mut keys = filled(open(dir.path(), FILTER_ROOM_MAX));
        keys.filter.added = 3 * PARTITIONS * PARTITION_KEYS_MIN;
        keys.in_youngest = 3 * PARTITION_KEYS_MIN - 10;
        keys.make_room(5);
        assert_eq!(keys.youngest(), Partition::FIRST);
        keys.in_youngest += 1;
        keys.make_room(5);
        assert_eq!(keys.youngest(), Partition::FIRST.next());
    }
}

//! Which idempotency keys cannot have a record yet, and into which volume of the index those go that get one. Nearly every request
//! brings a key that was never used; to look for each would be to look into every volume each time.
//!
//! Promises: a key that has a record, or will have one by a set this writer admitted, is never called new. The other way round
//! mistakes are allowed: a few new keys in a thousand are looked for in vain.

use super::filter::Filter;
use crate::background::stand_back;
use crate::connect;
use crate::error::OpenError;
use crate::progress::Progress;
use crate::redo::Lineage;
use crate::tables::meta;
use crate::tables::volumes::{self, Abridged, Volume};
use counterfoil_core::idempotency::claim::ClaimId;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

/// Keys there is room for at the least, and at the most: 2 MiB and 128 MiB.
const ROOM_MIN: usize = 1 << 20;
const ROOM_MAX: usize = 1 << 26;
/// Keys for which a volume has room at the least: few enough for most of its pages to be written with every transaction of a
/// busy server, which is what makes keys cheap.
const VOLUME_MIN: usize = 1 << 14;
/// Volumes that a store has about, at the most: who looks for a key looks into each. With more keys they grow.
const VOLUMES: usize = 32;
/// How often to look whether the database has caught up.
const LOOK: Duration = Duration::from_millis(10);

/// What the writer knows of keys.
#[derive(Debug)]
pub(super) struct Keys {
    home: Home,
    progress: Arc<Progress>,
    known: Known,
    /// One with more room, that is not whole yet.
    larger: Option<Known>,
    /// The volume for new keys, those that were found in it, if they were not counted yet, and those that it got.
    volume: Volume,
    is_counted: bool,
    added: usize,
}

/// Where the store is, and how to know that it is still the one that was opened.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) dir: PathBuf,
    pub(crate) lineage: Lineage,
}

impl Keys {
    /// Learns which keys the store has, while the writer goes on: everything up to `position` comes from the database,
    /// everything after it from the writer. `youngest` is the store's volume for new ones.
    pub(super) fn of(
        home: Home,
        progress: &Arc<Progress>,
        position: u64,
        room: usize,
        youngest: Volume,
    ) -> Keys {
        let known = Known::begin(&home, progress, position, room, youngest);
        let progress = Arc::clone(progress);
        Keys { home, progress, known, larger: None, volume: youngest, is_counted: false, added: 0 }
    }

    /// Whether nothing can be there under this key, unless the writer itself has it at hand.
    pub(super) fn is_new(&self, id: ClaimId) -> bool {
        self.known.is_whole() && !self.known.learnt.filter.has(id.into())
    }

    /// A set with this key was admitted.
    pub(super) fn admitted(&mut self, id: ClaimId) {
        self.added = self.added.saturating_add(1);
        self.known.tell(id);
        if let Some(larger) = &mut self.larger {
            larger.tell(id);
        }
    }

    /// Where the next key goes.
    pub(super) fn volume(&self) -> Volume {
        self.volume
    }

    /// Makes room, if there is too little. Between two groups: `position` is that of the last set that was admitted.
    pub(super) fn make_room(&mut self, position: u64) {
        if !self.is_counted && self.known.is_whole() {
            self.added = self.added.saturating_add(self.known.learnt.in_youngest.load(Ordering::Relaxed));
            self.is_counted = true;
        }
        let held = self.known.held();
        if self.added > (held / VOLUMES).max(VOLUME_MIN) {
            (self.volume, self.added) = (self.volume.next(), 0);
            // What is found from here on is in the one before.
            self.is_counted = true;
        }
        if let Some(larger) = self.larger.take_if(|larger| larger.is_whole()) {
            self.known = larger;
        } else if held > self.known.room && self.known.room < ROOM_MAX && self.larger.is_none() {
            let room = held.saturating_mul(2);
            self.larger = Some(Known::begin(&self.home, &self.progress, position, room, self.volume));
        }
    }
}

/// A filter, and who fills it.
#[derive(Debug)]
struct Known {
    learnt: Arc<Learnt>,
    /// Keys it has room for, and those it was told by the writer.
    room: usize,
    told: usize,
    filling: Option<JoinHandle<()>>,
}

impl Known {
    fn begin(home: &Home, progress: &Arc<Progress>, position: u64, room: usize, youngest: Volume) -> Known {
        let room = room.clamp(ROOM_MIN, ROOM_MAX);
        let learnt = Arc::new(Learnt::with_room(room, youngest));
        let filling = {
            let (learnt, home, progress) = (Arc::clone(&learnt), home.clone(), Arc::clone(progress));
            Builder::new().name("store-keys".to_owned()).spawn(move || {
                stand_back();
                // Everything is looked for, as long as nothing is known.
                if let Err(error) = learnt.fill(&home, &progress, position) {
                    tracing::warn!(%error, "the keys of the store could not be read");
                }
            })
        };
        Known { learnt, room, told: 0, filling: filling.ok() }
    }

    fn is_whole(&self) -> bool {
        self.learnt.is_whole.load(Ordering::Acquire)
    }

    fn tell(&mut self, id: ClaimId) {
        self.learnt.filter.add(id.into());
        self.told = self.told.saturating_add(1);
    }

    fn held(&self) -> usize {
        self.told.saturating_add(self.learnt.found.load(Ordering::Relaxed))
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.learnt.is_over.store(true, Ordering::Relaxed);
        if let Some(filling) = self.filling.take() {
            // One that panicked has left the filter as it was: not whole.
            let _ = filling.join();
        }
    }
}

/// What is known of keys, as it is learnt.
#[derive(Debug)]
struct Learnt {
    filter: Filter,
    /// Keys the database had, and those of them in its youngest volume.
    found: AtomicUsize,
    youngest: Volume,
    in_youngest: AtomicUsize,
    /// It has all keys.
    is_whole: AtomicBool,
    /// Nobody needs it any more.
    is_over: AtomicBool,
}

impl Learnt {
    fn with_room(keys: usize, youngest: Volume) -> Learnt {
        Learnt {
            filter: Filter::with_room(keys),
            found: AtomicUsize::new(0),
            youngest,
            in_youngest: AtomicUsize::new(0),
            is_whole: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }
    }

    /// Adds all keys of the database, once it shows everything up to `position`.
    fn fill(&self, home: &Home, progress: &Progress, position: u64) -> Result<(), OpenError> {
        while progress.visible() < position {
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            sleep(LOOK);
        }
        let db = connect::reader(&home.dir)?;
        if meta::lineage(&db)? != Some(home.lineage) {
            let why = "another database has taken the place of the store's; stop the server before you move its files";
            return Err(OpenError::Io(why.to_owned()));
        }
        let is_over = || self.is_over.load(Ordering::Relaxed);
        let see = |volume, keys: &[Abridged]| {
            for key in keys {
                self.filter.add(*key);
            }
            self.found.fetch_add(keys.len(), Ordering::Relaxed);
            if volume == self.youngest {
                self.in_youngest.fetch_add(keys.len(), Ordering::Relaxed);
            }
        };
        volumes::all_keys(&db, see, || !is_over())?;
        if is_over() {
            return Ok(());
        }
        self.is_whole.store(true, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// A store whose table of keys has these.
    fn store(keys: std::ops::Range<u64>) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let db = Connection::open(connect::file(dir.path())).unwrap();
        let tables = "PRAGMA journal_mode = WAL; CREATE TABLE claims (id BLOB, volume INTEGER, PRIMARY KEY (volume, id)); \
            CREATE TABLE meta (key TEXT PRIMARY KEY, value); CREATE TABLE volume_keys (volume INTEGER PRIMARY KEY, keys)";
        db.execute_batch(tables).unwrap();
        db.execute("INSERT INTO meta VALUES ('redo_lineage', ?1)", [LINEAGE.0]).unwrap();
        db.execute_batch("BEGIN").unwrap();
        for number in keys {
            insert(&db, number, 1);
        }
        db.execute_batch("COMMIT").unwrap();
        dir
    }

    fn insert(db: &Connection, number: u64, volume: u64) {
        let id = key(number);
        db.execute("INSERT INTO claims VALUES (?1, ?2)", (id.digest().as_bytes(), volume)).unwrap();
    }

    fn opened(dir: &Path, room: usize) -> Keys {
        Keys::of(home(dir), &Arc::new(Progress::new(5)), 5, room, Volume::FIRST)
    }

    fn filled(mut keys: Keys) -> Keys {
        fill(&mut keys.known);
        keys
    }

    fn fill(known: &mut Known) {
        known.filling.take().unwrap().join().unwrap();
    }

    #[test]
    fn keys_of_the_database_and_of_the_writer_are_not_new() {
        let dir = store(0..9_000);
        let mut keys = filled(opened(dir.path(), 0));
        keys.admitted(key(9_000));
        assert!((0..=9_000).all(|number| !keys.is_new(key(number))));
        assert!(keys.is_new(key(9_001)));
    }

    #[test]
    fn nothing_is_new_as_long_as_not_everything_is_known() {
        let dir = store(0..1);
        let progress = Arc::new(Progress::new(5));
        let keys = Keys::of(home(dir.path()), &progress, 6, 0, Volume::FIRST);
        assert!(!keys.is_new(key(1)));
        // A set that was durable when the filter was begun is shown only now.
        let db = Connection::open(connect::file(dir.path())).unwrap();
        insert(&db, 2, 1);
        progress.show(6);
        let keys = filled(keys);
        assert!(!keys.is_new(key(2)) && keys.is_new(key(1)));
    }

    #[test]
    fn what_cannot_be_read_is_never_called_new() {
        let dir = tempfile::tempdir().unwrap();
        let keys = filled(Keys::of(home(dir.path()), &Arc::new(Progress::new(0)), 0, 0, Volume::FIRST));
        assert!(!keys.is_new(key(1)));
    }

    #[test]
    fn another_store_in_its_place_says_nothing() {
        let dir = store(0..10);
        let moved = Home { lineage: Lineage(78), ..home(dir.path()) };
        let keys = filled(Keys::of(moved, &Arc::new(Progress::new(5)), 5, 0, Volume::FIRST));
        assert!(!keys.is_new(key(11)));
    }

    #[test]
    fn who_waits_for_the_database_does_not_keep_the_store_from_ending() {
        let dir = store(0..1);
        drop(Keys::of(home(dir.path()), &Arc::new(Progress::new(5)), 6, 0, Volume::FIRST));
    }

    /// More than a page of them in each of several volumes, and in no order.
    #[test]
    fn keys_of_all_volumes_are_known() {
        let dir = store(0..0);
        let mut db = Connection::open(connect::file(dir.path())).unwrap();
        let together = db.transaction().unwrap();
        (0..15_000).for_each(|number| insert(&together, number, 7 - number % 3));
        together.commit().unwrap();
        let keys = filled(opened(dir.path(), 0));
        assert!((0..15_000).all(|number| !keys.is_new(key(number))));
        assert!(keys.is_new(key(15_000)));
        assert_eq!(keys.known.held(), 15_000);
    }

    #[test]
    fn keys_of_a_listed_volume_are_known_by_its_list() {
        let dir = store(0..10);
        let db = Connection::open(connect::file(dir.path())).unwrap();
        (10..20).for_each(|number| insert(&db, number, 2));
        // One of them is gone since.
        let listed: Vec<u8> =
            (10..21).flat_map(|number| Abridged::from(key(number)).0.to_be_bytes()).collect();
        db.execute("INSERT INTO volume_keys VALUES (2, ?1)", [listed]).unwrap();
        let keys = filled(opened(dir.path(), 0));
        assert!((0..21).all(|number| !keys.is_new(key(number))));
        assert!(keys.is_new(key(21)));
        assert_eq!(keys.known.held(), 21);
    }

    #[test]
    fn more_keys_get_more_room_and_nothing_is_forgotten_meanwhile() {
        let dir = store(0..10);
        let mut keys = filled(opened(dir.path(), 0));
        keys.make_room(5);
        assert!(keys.larger.is_none());
        // With the ten that were found.
        keys.known.told = ROOM_MIN - 9;
        keys.make_room(5);
        keys.admitted(key(11));
        assert!(
            !keys.is_new(key(0)) && !keys.is_new(key(11)) && keys.is_new(key(12)),
            "the one of before knows"
        );
        fill(keys.larger.as_mut().unwrap());
        keys.make_room(5);
        assert_eq!((keys.known.room, keys.known.told), (2 * ROOM_MIN + 2, 1));
        assert!(keys.larger.is_none());
        assert!((0..10).chain([11]).all(|number| !keys.is_new(key(number))) && keys.is_new(key(12)));
    }

    #[test]
    fn a_volume_that_is_full_is_followed_by_the_next() {
        let dir = store(0..10);
        let mut keys = filled(opened(dir.path(), 0));
        // With the ten that were found.
        keys.added = VOLUME_MIN - 10;
        keys.make_room(5);
        assert_eq!(keys.volume(), Volume::FIRST);
        keys.admitted(key(10));
        keys.make_room(5);
        assert_eq!((keys.volume(), keys.added), (Volume::FIRST.next(), 0));
        keys.added = VOLUME_MIN;
        keys.make_room(5);
        assert_eq!(keys.volume(), Volume::FIRST.next(), "what was found is not in this one");
    }

    #[test]
    fn with_more_keys_volumes_grow() {
        let dir = store(0..10);
        let mut keys = filled(opened(dir.path(), ROOM_MAX));
        (keys.known.told, keys.added) = (3 * VOLUMES * VOLUME_MIN, 3 * VOLUME_MIN - 10);
        keys.make_room(5);
        assert_eq!(keys.volume(), Volume::FIRST);
        keys.added += 1;
        keys.make_room(5);
        assert_eq!(keys.volume(), Volume::FIRST.next());
    }
}

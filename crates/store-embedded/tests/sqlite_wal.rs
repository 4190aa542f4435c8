//! SQLite's WAL: bounded under constant load, and back to its bound after a reader has held it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::types::id::SetId;
use counterfoil_store::{ChangeSet, CommitError, Position, Store};
use counterfoil_store_embedded::{
    EmbeddedStore, Fault, FaultHook, FaultPoint, OpenError, Options, SqliteWalBounds, SystemTime, TimeSource,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use support::rows::work;
use support::{claim_of, one_charge, open, open_with_fault, raw};
use tokio::task::JoinSet;

const MIB: u64 = 1 << 20;

/// Commits charges with large answers from many tasks at once, and returns the greatest length of
/// the WAL.
async fn load(store: &Arc<EmbeddedStore>, dir: &Path, from: i64, charges: i64) -> u64 {
    let next = Arc::new(AtomicI64::new(from));
    let log = dir.join("counterfoil.db-wal");
    let mut producers = JoinSet::new();
    for _ in 0..32 {
        let (store, next, log) = (Arc::clone(store), Arc::clone(&next), log.clone());
        producers.spawn(async move {
            let mut longest = 0;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= from + charges {
                    return longest;
                }
                let work = work(number, store.now());
                let body = bytes::Bytes::from(vec![b'x'; 32 * 1_024]);
                store.commit(work.opening(number * 2)).await.unwrap();
                store.commit(work.settling(number * 2 + 1, store.now(), body)).await.unwrap();
                longest = longest.max(std::fs::metadata(&log).unwrap().len());
            }
        });
    }
    producers.join_all().await.into_iter().max().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wal_restarts_under_constant_load() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    let longest = load(&store, dir.path(), 1, 5_000).await;
    let written = 5_000 * 32 * 1_024;
    assert!(written > 150 * MIB && longest < 80 * MIB, "the log had {longest} bytes of more than {written}");
}

/// Freeing and allocating the end of the file at every restart would cost the disk more than the
/// space is worth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wal_that_restarts_keeps_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let sqlite_wal =
        SqliteWalBounds { step: 16, long: 32, too_long: 64, rest: 8, ..SqliteWalBounds::default() };
    let options = Options { sqlite_wal, ..Options::default() };
    let store = Arc::new(EmbeddedStore::open(dir.path(), options).unwrap());
    let longest = load(&store, dir.path(), 1, 1_000).await;
    assert!(longest < 32 * MIB, "it started over: {longest} bytes of 32 MB in answers alone");
    // Many short rounds.
    for number in 10_000..10_200 {
        store.commit(one_charge(&store, number)).await.unwrap();
        store.tally(store.now()).await.unwrap();
    }
    let after = std::fs::metadata(dir.path().join("counterfoil.db-wal")).unwrap().len();
    assert!(after >= longest && after > 64 * 4_096, "{after} after {longest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_reader_only_delays_the_restart_of_the_wal() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    load(&store, dir.path(), 1, 10).await;
    assert_eq!(store.feed(Position::START, 100).await.unwrap().len(), 20);
    let reader = raw(dir.path());
    reader.execute_batch("BEGIN; SELECT count(*) FROM commits").unwrap();
    let held = load(&store, dir.path(), 1_000, 3_000).await;
    // The last groups may not be flushed yet.
    assert!(held > 80 * MIB, "the reader must have held the log: {held}");
    let seen: i64 = reader.query_row("SELECT count(*) FROM commits", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 20, "a reader sees one moment");
    reader.execute_batch("COMMIT").unwrap();
    load(&store, dir.path(), 5_000, 3_000).await;
    store.tally(store.now()).await.unwrap();
    // The WAL restarts between two transactions, so the last one may have passed 64 MiB.
    let after = std::fs::metadata(dir.path().join("counterfoil.db-wal")).unwrap().len();
    assert!(after < 80 * MIB, "{after}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_the_disk_does_not_confirm_stops_writing_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let fault: FaultHook = Arc::new(|point| (point == FaultPoint::Checkpoint).then_some(Fault::Sync));
    let store = open_with_fault(dir.path(), fault);
    let mut stored = 0;
    let why = loop {
        let work = work(stored + 1, store.now());
        let large = bytes::Bytes::from(vec![b'x'; 512 * 1_024]);
        let set = ChangeSet::new(SetId::from_i64(stored + 1)).insert(work.answered(store.now(), large));
        match store.commit(set).await {
            Ok(_) => stored += 1,
            Err(CommitError::Unavailable(why)) => break why,
            other => panic!("{other:?}"),
        }
    };
    assert!(why.contains("restart to recover") && stored >= 16, "{stored}: {why}");
    drop(store);
    let log = std::fs::metadata(dir.path().join("counterfoil.db-wal")).unwrap().len();
    assert!(log > 8 * MIB, "the log is kept for the next opening: {log}");
    let store = open(dir.path());
    for number in 1..=stored {
        assert!(claim_of(&store, work(number, store.now()).claim.id).await.is_some(), "{number}");
    }
    store.commit(one_charge(&store, stored + 1)).await.unwrap();
}

/// The machine's clocks with a boot id of the test.
struct Boot(&'static str);

impl TimeSource for Boot {
    fn wall_ms(&self) -> i64 {
        SystemTime.wall_ms()
    }
    fn boottime_ms(&self) -> i64 {
        SystemTime.boottime_ms()
    }
    fn boot_id(&self) -> Option<String> {
        Some(self.0.to_owned())
    }
}

/// Opens the store in a boot where every sync of a rewritten WAL ends in `end`, and counts these
/// syncs.
fn reopen(dir: &Path, boot: &'static str, end: Option<Fault>) -> (Result<EmbeddedStore, OpenError>, usize) {
    let written = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&written);
    let fault: FaultHook = Arc::new(move |point| {
        if point != FaultPoint::RewriteWal {
            return None;
        }
        seen.fetch_add(1, Ordering::Relaxed);
        end
    });
    let options = Options { time: Arc::new(Boot(boot)), fault: Some(fault), ..Options::default() };
    let opened = EmbeddedStore::open(dir, options);
    (opened, written.load(Ordering::Relaxed))
}

/// Makes a store in boot `first` whose WAL has one charge and was not copied, because a sync
/// failed.
async fn left_behind(dir: &Path) {
    let syncs = AtomicUsize::new(0);
    let fault: FaultHook = Arc::new(move |point| {
        let second = point == FaultPoint::Append && syncs.fetch_add(1, Ordering::Relaxed) == 1;
        second.then_some(Fault::Sync)
    });
    let options = Options { time: Arc::new(Boot("first")), fault: Some(fault), ..Options::default() };
    let store = EmbeddedStore::open(dir, options).unwrap();
    store.commit(one_charge(&store, 1)).await.unwrap();
    assert!(store.commit(one_charge(&store, 2)).await.is_err());
}

#[tokio::test]
async fn a_wal_that_cannot_be_rewritten_keeps_the_store_closed() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path()).await;
    let log = std::fs::read(dir.path().join("counterfoil.db-wal")).unwrap();
    let (refused, written) = reopen(dir.path(), "first", Some(Fault::Sync));
    assert!(matches!(refused, Err(OpenError::Io(_))) && written == 1);
    assert_eq!(std::fs::read(dir.path().join("counterfoil.db-wal")).unwrap(), log);
    let store = open(dir.path());
    assert!(support::charge_is_there(&store, 1).await);
}

#[tokio::test]
async fn a_wal_left_behind_is_rewritten_only_in_the_same_boot() {
    for (boot, times) in [("first", 1), ("second", 0)] {
        let dir = tempfile::tempdir().unwrap();
        left_behind(dir.path()).await;
        let (store, written) = reopen(dir.path(), boot, None);
        let store = store.unwrap();
        assert_eq!(written, times, "{boot}");
        assert!(support::charge_is_there(&store, 1).await);
        store.commit(one_charge(&store, 2)).await.unwrap();
        store.close();
        let (store, written) = reopen(dir.path(), boot, None);
        assert!(support::charge_is_there(&store.unwrap(), 2).await);
        assert_eq!(written, 0, "a clean end leaves no log");
    }
}

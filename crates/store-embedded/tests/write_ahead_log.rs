//! The write-ahead log: commits that are durable there and not yet in the database.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::types::id::{AccountId, ChargeId, SetId};
use counterfoil_store::{ChangeSet, CommitError, Folded, Position, ReadError, RowKey, Store, Upto};
use counterfoil_store_embedded::{
    EmbeddedStore, Fault, FaultHook, FaultPoint, LogBounds, OpenError, Options,
};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use support::rows::work;
use support::{charge_is_there, claim_of, one_charge, open, open_with_fault, raw};

/// Flushes fail while this is set.
fn full(is_full: &Arc<AtomicBool>) -> FaultHook {
    let is_full = Arc::clone(is_full);
    Arc::new(move |point| {
        (point == FaultPoint::Flush && is_full.load(Ordering::Relaxed)).then_some(Fault::DiskFull)
    })
}

/// Leaves charges 1 to `charges` in the log alone, one record each: the database loses its unsynced
/// pages.
async fn left_behind(dir: &Path, charges: i64) {
    let store = open(dir);
    let files = ["counterfoil.db", "counterfoil.db-wal"].map(|name| dir.join(name));
    let before = files.clone().map(|path| fs::read(path).unwrap());
    for number in 1..=charges {
        store.commit(one_charge(&store, number)).await.unwrap();
    }
    drop(store);
    for (path, bytes) in files.into_iter().zip(before) {
        fs::write(path, bytes).unwrap();
    }
    let _ = fs::remove_file(dir.join("counterfoil.db-shm"));
}

/// The offsets of the records in the first segment.
fn records(dir: &Path) -> Vec<usize> {
    let bytes = fs::read(dir.join("counterfoil.redo-0")).unwrap();
    bytes.windows(4).enumerate().filter(|(_, bytes)| bytes == b"Cfr1").map(|(at, _)| at).collect()
}

/// Changes one byte of the entry after the head at `at`.
fn damage(dir: &Path, at: usize) {
    let path = dir.join("counterfoil.redo-0");
    let mut bytes = fs::read(&path).unwrap();
    bytes[at + 60] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_full_disk_at_a_flush_refuses_new_sets_until_there_is_space() {
    let dir = tempfile::tempdir().unwrap();
    let is_full = Arc::new(AtomicBool::new(true));
    let store = open_with_fault(dir.path(), full(&is_full));
    store.commit(one_charge(&store, 1)).await.unwrap();
    let Err(ReadError(why)) = store.tally(store.now()).await else { panic!("no flush succeeds") };
    assert!(why.contains("no space left"), "{why}");
    let refused = store.commit(one_charge(&store, 2)).await;
    assert!(matches!(refused, Err(CommitError::Unavailable(why)) if why.contains("no space left")));
    is_full.store(false, Ordering::Relaxed);
    assert!(charge_is_there(&store, 1).await, "an answered commit is kept");
    assert!(!charge_is_there(&store, 2).await);
    store.commit(one_charge(&store, 2)).await.unwrap();
    assert!(charge_is_there(&store, 2).await);
}

#[tokio::test]
async fn unflushed_commits_are_replayed_by_the_next_opening() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path(), 1).await;
    let rows: i64 = raw(dir.path()).query_row("SELECT count(*) FROM charges", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0, "only the log has it");
    let store = open(dir.path());
    assert!(charge_is_there(&store, 1).await);
    store.commit(one_charge(&store, 2)).await.unwrap();
    drop(store);
    let store = open(dir.path());
    assert!(charge_is_there(&store, 1).await && charge_is_there(&store, 2).await);
}

/// The tables refuse a second record of a key in every partition.
#[tokio::test]
async fn a_key_that_another_program_used_after_a_crash_keeps_the_store_closed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with_fault(dir.path(), full(&Arc::new(AtomicBool::new(true))));
    let claim = work(1, store.now()).claim;
    store.commit(ChangeSet::new(SetId::from_i64(1)).insert(claim.clone())).await.unwrap();
    drop(store);
    let by_hand = "INSERT INTO claims (subject, id, tenant, fingerprint, request, created_at, fence, revision, attempts, \
        state, makes, partition) VALUES (2, ?1, 1, x'', x'', 0, 1, 1, 1, 'in_flight', 'charge', 9)";
    raw(dir.path()).execute(by_hand, [claim.id.digest().as_bytes()]).unwrap();
    for _ in 0..2 {
        let closed = EmbeddedStore::open(dir.path(), Options::default()).expect_err("a key has two records");
        assert!(
            matches!(&closed, OpenError::Refused { why, .. } if why.contains("one record")),
            "{closed:?}"
        );
    }
    raw(dir.path()).execute_batch("DROP TRIGGER claims_are_kept_while_needed; DELETE FROM claims").unwrap();
    assert_eq!(claim_of(&open(dir.path()), claim.id).await, Some(claim));
}

#[tokio::test]
async fn a_read_only_opening_replays_unflushed_commits() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path(), 1).await;
    assert!(charge_is_there(&EmbeddedStore::open_read_only(dir.path()).unwrap(), 1).await);
}

fn blocked_at_flush(arrive: Sender<()>, wait: Receiver<Option<Fault>>) -> FaultHook {
    let held = Mutex::new((arrive, wait));
    Arc::new(move |point| {
        if point != FaultPoint::Flush {
            return None;
        }
        let (arrive, wait) = &*held.lock().unwrap();
        let _ = arrive.send(());
        wait.recv().ok().flatten()
    })
}

#[tokio::test]
async fn a_database_that_fails_for_a_while_loses_nothing_that_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let is_failing = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&is_failing);
    let failing: FaultHook = Arc::new(move |point| {
        (point == FaultPoint::Flush && asked.load(Ordering::Relaxed)).then_some(Fault::Sync)
    });
    let store = open_with_fault(dir.path(), failing);
    store.commit(one_charge(&store, 1)).await.unwrap();
    let Err(ReadError(why)) = store.tally(store.now()).await else { panic!("no flush succeeds") };
    assert!(why.contains("disk I/O error"), "{why}");
    assert!(matches!(store.commit(one_charge(&store, 2)).await, Err(CommitError::Unavailable(_))));
    is_failing.store(false, Ordering::Relaxed);
    assert!(charge_is_there(&store, 1).await && !charge_is_there(&store, 2).await);
    store.commit(one_charge(&store, 2)).await.unwrap();
    assert!(charge_is_there(&store, 2).await);
}

/// Waits until a program beside the server finds `wanted` charges, and returns the number it found
/// last.
fn found_beside(dir: &Path, wanted: i64) -> i64 {
    let beside = raw(dir);
    let mut found = -1;
    for _ in 0..1_000 {
        found = beside.query_row("SELECT count(*) FROM charges", [], |row| row.get(0)).unwrap();
        if found == wanted {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    found
}

#[tokio::test]
async fn commits_are_flushed_without_a_request_also_after_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let is_full = Arc::new(AtomicBool::new(false));
    let store = open_with_fault(dir.path(), full(&is_full));
    store.commit(one_charge(&store, 1)).await.unwrap();
    assert_eq!(found_beside(dir.path(), 1), 1);
    is_full.store(true, Ordering::Relaxed);
    store.commit(one_charge(&store, 2)).await.unwrap();
    assert!(store.tally(store.now()).await.is_err(), "the flush fails");
    is_full.store(false, Ordering::Relaxed);
    assert_eq!(found_beside(dir.path(), 2), 2);
}

#[tokio::test]
async fn a_writer_that_dies_over_a_group_leaves_a_database_that_can_be_closed() {
    let dir = tempfile::tempdir().unwrap();
    let observe = Some(Arc::new(|sets: usize, _| assert_eq!(sets, 0, "the writer dies")) as _);
    let store = EmbeddedStore::open(dir.path(), Options { observe, ..Options::default() }).unwrap();
    let doubtful = store.commit(one_charge(&store, 1)).await;
    assert!(matches!(doubtful, Err(CommitError::InDoubt(_))), "{doubtful:?}");
    drop(store);
    assert!(!dir.path().join("counterfoil.db-wal").exists(), "the log is copied at the end");
    assert!(charge_is_there(&open(dir.path()), 1).await);
}

#[tokio::test]
async fn a_commit_that_the_tables_refuse_stops_the_store_and_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.commit(one_charge(&store, 1)).await.unwrap();
    drop(store);
    raw(dir.path()).execute_batch("CREATE UNIQUE INDEX no_more ON charges (1 = 1)").unwrap();
    let store = open(dir.path());
    // The judge does not know this rule.
    store.commit(one_charge(&store, 2)).await.unwrap();
    let Err(ReadError(why)) = store.tally(store.now()).await else { panic!("no flush succeeds") };
    assert!(why.contains("no_more"), "{why}");
    assert!(store.tally(store.now()).await.is_err(), "later readers get the reason, too");
    let refused = store.commit(one_charge(&store, 3)).await;
    assert!(
        matches!(&refused, Err(CommitError::Unavailable(why)) if why.contains("a defect to report")),
        "{refused:?}"
    );
    assert!(charge_is_there(&store, 1).await, "flushed rows are still read");
    drop(store);

    let refused = EmbeddedStore::open(dir.path(), Options::default()).unwrap_err();
    assert!(
        matches!(&refused, OpenError::Refused { commit: 2, why } if why.contains("no_more")),
        "{refused:?}"
    );
    raw(dir.path()).execute_batch("DROP INDEX no_more").unwrap();
    let store = open(dir.path());
    assert!(charge_is_there(&store, 2).await && !charge_is_there(&store, 3).await);
}

#[tokio::test]
async fn a_torn_last_record_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path(), 3).await;
    damage(dir.path(), records(dir.path())[2]);
    let store = open(dir.path());
    assert!(charge_is_there(&store, 2).await && !charge_is_there(&store, 3).await);
    store.commit(one_charge(&store, 3)).await.unwrap();
    assert!(charge_is_there(&store, 3).await);
}

#[tokio::test]
async fn a_damaged_record_before_others_keeps_the_store_closed() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path(), 3).await;
    damage(dir.path(), records(dir.path())[1]);
    let refused = EmbeddedStore::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(&refused, OpenError::Corrupt(why) if why.contains("commit 2")), "{refused:?}");
}

#[tokio::test]
async fn the_log_of_another_lineage_is_not_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.commit(one_charge(&store, 7)).await.unwrap();
    drop(store);
    let backup = fs::read(dir.path().join("counterfoil.db")).unwrap();
    left_behind(dir.path(), 1).await;
    fs::write(dir.path().join("counterfoil.db"), backup).unwrap();
    for log in ["counterfoil.db-wal", "counterfoil.db-shm"] {
        let _ = fs::remove_file(dir.path().join(log));
    }
    let store = open(dir.path());
    assert!(charge_is_there(&store, 7).await, "the backup is what was put back");
    assert!(!charge_is_there(&store, 1).await, "later commits were given up with the restore");
    store.commit(one_charge(&store, 1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_find_unflushed_rows_and_lists_wait_for_the_flush() {
    let dir = tempfile::tempdir().unwrap();
    let (arrive, reached) = channel();
    let (go_on, wait) = channel();
    let store = Arc::new(open_with_fault(dir.path(), blocked_at_flush(arrive, wait)));
    store.commit(one_charge(&store, 1)).await.unwrap();
    reached.recv().unwrap();
    assert!(charge_is_there(&store, 1).await, "it is read from memory");
    assert!(!charge_is_there(&store, 2).await, "a row nobody changed is read at once");
    let tenant = work(1, store.now()).charge.tenant;
    let both = [1, 2].map(|number| RowKey::Charge(tenant, ChargeId::from_i64(number))).to_vec();
    let rows = store.read(both).await.unwrap();
    assert!(rows[0].is_some() && rows[1].is_none(), "unflushed and missing rows are read together");
    let feed = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.feed(Position(0), 10).await.unwrap().len() })
    };
    assert!(!feed.is_finished());
    go_on.send(None).unwrap();
    drop(go_on);
    assert_eq!(feed.await.unwrap(), 1);
    assert!(charge_is_there(&store, 1).await, "and now from the database");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_that_end_before_the_first_unflushed_commit_do_not_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (arrive, reached) = channel();
    let (go_on, wait) = channel();
    let store = open_with_fault(dir.path(), blocked_at_flush(arrive, wait));
    store.commit(one_charge(&store, 1)).await.unwrap();
    reached.recv().unwrap();
    go_on.send(None).unwrap();
    assert_eq!(store.feed(Position(0), 10).await.unwrap().len(), 1);
    store.commit(one_charge(&store, 2)).await.unwrap();
    reached.recv().unwrap();
    // The second flush is blocked, so these reads would never end if they waited for it.
    let feed = store.feed(Position(0), 1).await.unwrap();
    assert_eq!(feed.iter().map(|commit| commit.receipt.position).collect::<Vec<_>>(), [Position(1)]);
    let (tenant, account) = (work(1, store.now()).charge.tenant, AccountId::from_i64(1));
    let upto = Upto::Position(Position(1));
    assert_eq!(store.fold(tenant, account, Position(0), upto).await.unwrap(), Folded::default());
    go_on.send(None).unwrap();
    drop(go_on);
    assert_eq!(store.feed(Position(0), 10).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_segments_are_reused() {
    let dir = tempfile::tempdir().unwrap();
    let log = LogBounds { segment: 16 << 10, extent: 4 << 10 };
    let store = EmbeddedStore::open(dir.path(), Options { log, ..Options::default() }).unwrap();
    for number in 1..=400 {
        store.commit(one_charge(&store, number)).await.unwrap();
    }
    let sizes = (0..4)
        .map(|number| fs::metadata(dir.path().join(format!("counterfoil.redo-{number}"))).unwrap().len());
    let total: u64 = sizes.sum();
    assert!(total < 400 * 800, "{total} bytes for four hundred charges: segments are not used again");
    drop(store);
    let store = open(dir.path());
    for number in [1, 200, 400] {
        assert!(charge_is_there(&store, number).await);
    }
}

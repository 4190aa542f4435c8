//! The write-ahead log: bounded under constant load, and back to its bound after a reader held it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::types::id::SetId;
use counterfoil_store::{ChangeSet, CommitError, Store};
use counterfoil_store_embedded::{EmbeddedStore, Fault, FaultHook, FaultPoint};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use support::rows::work;
use support::{claim_of, one_charge, open, open_with_fault, raw};
use tokio::task::JoinSet;

const MIB: u64 = 1 << 20;

/// Commits charges with large answers from many tasks at once, and tells how long the log ever was.
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
async fn the_log_starts_over_under_constant_load() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    let longest = load(&store, dir.path(), 1, 5_000).await;
    let written = 5_000 * 32 * 1_024;
    assert!(written > 150 * MIB && longest < 64 * MIB, "the log had {longest} bytes of more than {written}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_reader_only_delays_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    load(&store, dir.path(), 1, 10).await;
    let reader = raw(dir.path());
    reader.execute_batch("BEGIN; SELECT count(*) FROM commits").unwrap();
    let held = load(&store, dir.path(), 1_000, 3_000).await;
    assert!(held > 90 * MIB, "the reader must have held the log: {held}");
    let seen: i64 = reader.query_row("SELECT count(*) FROM commits", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 20, "a reader sees one moment");
    reader.execute_batch("COMMIT").unwrap();
    load(&store, dir.path(), 5_000, 3_000).await;
    let after = std::fs::metadata(dir.path().join("counterfoil.db-wal")).unwrap().len();
    assert!(after <= 64 * MIB, "{after}");
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

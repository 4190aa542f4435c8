//! Other programs beside the store may read and cannot write. A foreign write stops the store.

#![allow(clippy::unwrap_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::conformance::fixtures::ledger::{FLOOR, moving, posted};
use counterfoil_store::conformance::fixtures::set;
use counterfoil_store::{CommitError, Position, ReadError, RefusalReason, Store};
use counterfoil_store_embedded::{FaultHook, FaultPoint};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{charge_is_there, one_charge, open, open_with_fault, raw, unavailable};

/// Controls a foreign write between the first two flushes.
struct Gap {
    reached: Receiver<()>,
    write: Sender<()>,
}

fn foreign_write(dir: &Path, sql: &'static str) -> (Gap, FaultHook) {
    let (arrive, reached) = channel();
    let (write, wait) = channel();
    let gap = Mutex::new(Some((arrive, wait)));
    let dir = dir.to_owned();
    let hook: FaultHook = Arc::new(move |point| {
        if point == FaultPoint::BetweenFlushes
            && let Some((arrive, wait)) = gap.lock().unwrap().take()
        {
            arrive.send(()).unwrap();
            wait.recv().unwrap();
            raw(&dir).execute_batch(sql).unwrap();
        }
        None
    });
    (Gap { reached, write }, hook)
}

#[tokio::test]
async fn other_programs_read_and_cannot_write_while_the_store_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let other = raw(dir.path());
    other.busy_timeout(Duration::ZERO).unwrap();
    for number in 1..=3 {
        store.commit(one_charge(&store, number)).await.unwrap();
        store.tally(store.now()).await.unwrap();
        // The flusher begins its next transaction a moment after it has committed.
        while other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok() {
            std::thread::yield_now();
        }
        let refused = other.execute("INSERT INTO meta VALUES ('by hand', 1)", []).unwrap_err();
        assert!(refused.to_string().contains("locked"), "{refused}");
        let seen: i64 = other.query_row("SELECT count(*) FROM charges", [], |row| row.get(0)).unwrap();
        assert_eq!(seen, number);
    }
    store.close();
    other.execute("INSERT INTO meta VALUES ('by hand', 1)", []).unwrap();
}

#[tokio::test]
async fn a_foreign_write_stops_the_store_and_nothing_that_was_answered_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (gap, hook) = foreign_write(dir.path(), "INSERT INTO meta VALUES ('by hand', 1)");
    let store = open_with_fault(dir.path(), hook);
    store.commit(one_charge(&store, 1)).await.unwrap();
    store.tally(store.now()).await.unwrap();
    gap.reached.recv().unwrap();
    store.commit(one_charge(&store, 2)).await.unwrap();
    gap.write.send(()).unwrap();
    let Err(ReadError(why)) = store.tally(store.now()).await else { panic!("the second is not flushed") };
    assert!(why.contains("another program wrote to the database"), "{why}");
    for number in 3..5 {
        let why = unavailable(store.commit(one_charge(&store, number)).await);
        assert!(why.contains("stop that program and restart"), "{why}");
    }
    assert!(charge_is_there(&store, 1).await && charge_is_there(&store, 2).await, "rows are still read");
    drop(store);
    let store = open(dir.path());
    let feed = store.feed(Position::START, 10).await.unwrap();
    assert_eq!(feed.iter().map(|commit| commit.receipt.position.0).collect::<Vec<_>>(), [1, 2]);
    assert!(charge_is_there(&store, 1).await && charge_is_there(&store, 2).await);
    assert!(!charge_is_there(&store, 3).await);
    store.commit(one_charge(&store, 3)).await.unwrap();
}

#[tokio::test]
async fn the_next_opening_rests_on_what_the_other_program_has_written() {
    let dir = tempfile::tempdir().unwrap();
    let taken = "UPDATE balances SET posted = 20, revision = revision + 1";
    let (gap, hook) = foreign_write(dir.path(), taken);
    let store = open_with_fault(dir.path(), hook);
    store.commit(set(1).shift(moving(1, FLOOR, posted(50)))).await.unwrap();
    store.tally(store.now()).await.unwrap();
    gap.reached.recv().unwrap();
    gap.write.send(()).unwrap();
    // Nothing is unflushed, and yet a store that has stopped is not ready.
    while store.tally(store.now()).await.is_ok() {
        tokio::task::yield_now().await;
    }
    drop(store);
    let store = open(dir.path());
    let too_much = store.commit(set(2).shift(moving(1, FLOOR, posted(-30)))).await;
    assert!(
        matches!(too_much, Err(CommitError::Refused(refusal)) if refusal.reason == RefusalReason::Insufficient)
    );
    store.commit(set(3).shift(moving(1, FLOOR, posted(-20)))).await.unwrap();
}

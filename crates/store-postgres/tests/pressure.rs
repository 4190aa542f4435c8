//! Contention: deadlocks, races, locked rows, endless statements, exhausted connections. Each has
//! its own answer, and nothing is half done.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::payments::charge::Charge;
use counterfoil_store::conformance::fixtures::ledger::{BOTH, moving, opened, posted};
use counterfoil_store::conformance::fixtures::{TENANT, charge, charge_id, claim, opening, set};
use counterfoil_store::{ChangeSet, CommitError, RefusalReason, RowKey, Store};
use counterfoil_store_postgres::{Options, PostgresStore};
use counterfoil_testkit::postgres::connect;
use rustix::process::{Pid, Signal, kill_process};
use std::sync::Arc;
use std::time::Duration;
use support::{TERMINATE, database, eventually, fresh, open, own_server, raw, waiting_backend};
use tokio::task::JoinSet;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

fn moved(number: i64, charges: &[i64]) -> ChangeSet {
    charges.iter().fold(set(number), |set, &id| set.replace(Charge { revision: 2, ..charge(id) }, 1))
}

/// Makes the server refuse the next `times` insertions of charges with an error code. Rolled-back
/// attempts count.
async fn refuse(db: &Client, code: &str, times: i64) {
    let sql = format!(
        "DROP SEQUENCE IF EXISTS tries; CREATE SEQUENCE tries; \
         CREATE OR REPLACE FUNCTION in_the_way() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('counterfoil.tries') <= {times} THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '{code}'; END IF; \
             RETURN NEW; END $$; \
         CREATE OR REPLACE TRIGGER in_the_way BEFORE INSERT ON charges FOR EACH ROW EXECUTE FUNCTION in_the_way()"
    );
    db.batch_execute(&sql).await.unwrap();
}

#[tokio::test]
async fn lost_races_are_retried_and_finally_a_conflict() {
    let (store, database) = fresh().await;
    let db = raw(&database.url()).await;
    for (number, code) in [(1, "40001"), (3, "40P01")] {
        refuse(&db, code, 2).await;
        store.commit(opening(number)).await.unwrap();
        refuse(&db, code, 1_000).await;
        assert_eq!(store.commit(opening(number + 1)).await, Err(CommitError::Conflict), "{code}");
        assert_eq!(store.committed(opening(number + 1).id()).await, Ok(None));
    }
    refuse(&db, "40001", 0).await;
    store.commit(opening(4)).await.unwrap();
}

#[tokio::test]
async fn a_deadlock_ends_and_both_writers_continue() {
    let (store, database) = fresh().await;
    store.commit(set(1).insert(charge(1)).insert(charge(2))).await.unwrap();
    let (other, looking) = (raw(&database.url()).await, raw(&database.url()).await);
    other.batch_execute("BEGIN; UPDATE charges SET revision = 3 WHERE id = 2").await.unwrap();
    let committing = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.commit(moved(2, &[1, 2])).await }
    });
    waiting_backend(&looking, "Lock").await;
    // The transactions now wait for each other until the server cancels one.
    let others = other.batch_execute("UPDATE charges SET revision = 3 WHERE id = 1").await;
    other.batch_execute("ROLLBACK").await.unwrap();
    let answer = committing.await.unwrap();
    // If this transaction succeeded, the server ended that of the store.
    if let Err(error) = others {
        assert_eq!(error.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED), "{error}");
    }
    assert!(matches!(answer, Ok(_) | Err(CommitError::Conflict)), "{answer:?}");
    if answer.is_err() {
        store.commit(moved(2, &[1, 2])).await.unwrap();
    }
    let there =
        store.read(vec![RowKey::Charge(TENANT, charge_id(1)), RowKey::Charge(TENANT, charge_id(2))]).await;
    let revisions: Vec<u64> = there.unwrap().into_iter().flatten().map(|row| row.revision()).collect();
    assert_eq!(revisions, [2, 2]);
}

/// The store inserts a claim while a second process changes the claim and wants a row of the same
/// set next. The insertion must wait before the store locks the row.
#[tokio::test]
async fn a_set_that_waits_for_a_claim_holds_no_rows() {
    let (store, database) = fresh().await;
    let elsewhere = open(&database.url()).await;
    elsewhere.commit(set(1).insert(claim(2))).await.unwrap();
    let opened = set(2).insert(claim(1)).insert(opened(1, Some(0), None)).insert(charge(7));
    store.commit(opened).await.unwrap();
    let renewed = Claim { revision: 2, ..claim(1) };
    let (other, looking) = (raw(&database.url()).await, raw(&database.url()).await);
    for (number, asked, wanted) in [
        // Remembered rows: nothing is read first.
        (
            3,
            set(3).insert(claim(2)).replace(renewed, 1),
            "SELECT 1 FROM claims WHERE subject = 1 FOR UPDATE NOWAIT",
        ),
        // A balance, which is always read first.
        (
            4,
            set(4).insert(claim(2)).shift(moving(1, BOTH, posted(5))),
            "SELECT 1 FROM balances FOR UPDATE NOWAIT",
        ),
    ] {
        other.batch_execute("BEGIN; UPDATE claims SET revision = 9 WHERE subject = 2").await.unwrap();
        let committing = tokio::spawn({
            let store = Arc::clone(&store);
            async move { store.commit(asked).await }
        });
        waiting_backend(&looking, "Lock").await;
        other.batch_execute(wanted).await.expect("the row is not locked");
        other.batch_execute("ROLLBACK").await.unwrap();
        let answer = committing.await.unwrap();
        assert!(
            matches!(&answer, Err(CommitError::Refused(refusal)) if refusal.reason == RefusalReason::Present),
            "{number}: {answer:?}"
        );
    }
}

/// Sets that do not need the locked row do not wait for all sets that do.
#[tokio::test]
async fn a_contended_row_does_not_delay_other_sets() {
    let (store, database) = fresh().await;
    store.commit(set(1).insert(charge(1))).await.unwrap();
    let holder = raw(&database.url()).await;
    holder.batch_execute("BEGIN; SELECT 1 FROM charges WHERE id = 1 FOR UPDATE").await.unwrap();
    let mut wanting = JoinSet::new();
    let mut others = JoinSet::new();
    for number in 0..400 {
        let store = Arc::clone(&store);
        wanting.spawn(async move { store.commit(moved(1_000 + number, &[1])).await });
    }
    for number in 2..=9 {
        let store = Arc::clone(&store);
        others.spawn(async move {
            // A set queued behind too many waiting ones is answered as a conflict.
            while let Err(error) = store.commit(opening(number)).await {
                assert_eq!(error, CommitError::Conflict);
            }
        });
    }
    // Tried alone, each of the four hundred sets would wait for most of a second.
    let done = tokio::time::timeout(Duration::from_mins(1), others.join_all()).await;
    done.expect("other sets wait for the contended row");
    let answers = wanting.join_all().await;
    assert!(answers.iter().all(|answer| *answer == Err(CommitError::Conflict)), "{answers:?}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    store.commit(moved(2_000, &[1])).await.unwrap();
}

#[tokio::test]
async fn an_endless_statement_is_cancelled_and_writes_nothing() {
    let (store, database) = fresh().await;
    let db = raw(&database.url()).await;
    db.batch_execute(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$; \
         CREATE TRIGGER slow BEFORE INSERT ON charges FOR EACH ROW EXECUTE FUNCTION slow()",
    )
    .await
    .unwrap();
    let answer = store.commit(opening(1)).await;
    assert!(matches!(&answer, Err(CommitError::Unavailable(why)) if why.contains("57014")), "{answer:?}");
    assert_eq!(store.committed(opening(1).id()).await, Ok(None));
    db.batch_execute("DROP TRIGGER slow ON charges").await.unwrap();
    store.commit(opening(1)).await.unwrap();
}

#[tokio::test]
async fn a_read_fails_when_all_connections_are_busy() {
    let database = database().await;
    let options = Options { readers: 1, ..Options::default() };
    let store = Arc::new(PostgresStore::open(&database.url(), options).await.unwrap());
    let (holder, looking) = (raw(&database.url()).await, raw(&database.url()).await);
    holder.batch_execute("BEGIN; LOCK TABLE charges IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let key = || vec![RowKey::Charge(TENANT, charge_id(1))];
    let stuck = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.read(key()).await }
    });
    waiting_backend(&looking, "Lock").await;
    let busy = store.read(vec![RowKey::Outbox(TENANT, charge_id(1).into())]).await;
    assert!(busy.is_err_and(|error| error.to_string().contains("busy")));
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(stuck.await.unwrap().unwrap(), [None]);
    assert_eq!(store.read(key()).await.unwrap(), [None]);
}

#[tokio::test]
async fn a_store_without_free_connections_recovers_when_there_are_some() {
    let (_server, database) =
        own_server(&[("max_connections", "8"), ("superuser_reserved_connections", "0")]).await;
    let store = open(&database.url()).await;
    store.commit(opening(1)).await.unwrap();
    let operator = raw(&database.url()).await;
    let mut guests = Vec::new();
    let mut number = 1;
    let answer = loop {
        while let Ok(guest) = connect(&database.url()).await {
            guests.push(guest);
        }
        operator.batch_execute(TERMINATE).await.unwrap();
        while let Ok(guest) = connect(&database.url()).await {
            guests.push(guest);
        }
        number += 1;
        assert!(number < 50, "the store is always faster than its guests");
        // The store may have been faster than the guests. Without room the store gets no
        // connection.
        match store.commit(opening(number)).await {
            Err(CommitError::Unavailable(why)) => break why,
            Err(CommitError::InDoubt(_)) | Ok(_) => {}
            Err(error) => panic!("{error:?}"),
        }
    };
    assert!(answer.contains("takes no more connections"), "{answer}");
    guests.clear();
    eventually(&store, number + 1).await;
}

/// The machine still acknowledges packets, so only a timeout can detect the frozen process.
#[tokio::test]
async fn a_frozen_server_process_is_given_up() {
    let (_server, database) = own_server(&[]).await;
    let store = open(&database.url()).await;
    let operator = raw(&database.url()).await;
    // The committing connections are those with an advisory lock.
    let backends =
        "SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()";
    let found = operator.query(backends, &[]).await.unwrap();
    let pids: Vec<Pid> = found.iter().filter_map(|row| Pid::from_raw(row.get::<_, i32>(0))).collect();
    assert_eq!(pids.len(), 2);
    let all = |signal: Signal| pids.iter().for_each(|pid| kill_process(*pid, signal).unwrap());
    all(Signal::STOP);
    // The commit hangs while preparing its statements, so nothing is written.
    let answer = tokio::time::timeout(Duration::from_mins(2), store.commit(opening(1))).await;
    all(Signal::CONT);
    assert!(matches!(&answer, Ok(Err(CommitError::Unavailable(_)))), "{answer:?}");
    eventually(&store, 1).await;
}

//! Others in the way: deadlocks, races, rows that are held, statements without end, no connection left. Each is told apart, and
//! nothing is half done.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::payments::charge::Charge;
use counterfoil_store::conformance::fixtures::ledger::{BOTH, moving, opened, posted};
use counterfoil_store::conformance::fixtures::{TENANT, charge, charge_id, claim, opening, set};
use counterfoil_store::{ChangeSet, CommitError, Reason, RowKey, Store};
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

/// Makes the server refuse new charges by this code, so many times; each try counts, whatever becomes of it.
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
async fn a_lost_race_is_run_again_and_one_that_is_always_lost_is_a_conflict() {
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
async fn who_locks_in_another_order_meets_a_deadlock_and_both_get_on() {
    let (store, database) = fresh().await;
    store.commit(set(1).insert(charge(1)).insert(charge(2))).await.unwrap();
    let (other, looking) = (raw(&database.url()).await, raw(&database.url()).await);
    other.batch_execute("BEGIN; UPDATE charges SET revision = 3 WHERE id = 2").await.unwrap();
    let committing = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.commit(moved(2, &[1, 2])).await }
    });
    waiting_backend(&looking, "Lock").await;
    // Now each waits for the other, until the server ends one of them.
    let others = other.batch_execute("UPDATE charges SET revision = 3 WHERE id = 1").await;
    other.batch_execute("ROLLBACK").await.unwrap();
    let answer = committing.await.unwrap();
    // If it got what the store had, the store's transaction was ended.
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

/// A key that another process works on is asked for here, together with rows that it wants next: whoever inserts a claim has nothing in
/// hand yet that the other could wait for.
#[tokio::test]
async fn who_waits_for_a_claim_holds_nothing_that_its_holder_wants() {
    let (store, database) = fresh().await;
    let elsewhere = open(&database.url()).await;
    elsewhere.commit(set(1).insert(claim(2))).await.unwrap();
    let opened = set(2).insert(claim(1)).insert(opened(1, Some(0), None)).insert(charge(7));
    store.commit(opened).await.unwrap();
    let renewed = Claim { revision: 2, ..claim(1) };
    let (other, looking) = (raw(&database.url()).await, raw(&database.url()).await);
    for (number, asked, wanted) in [
        // Rows this process remembers: nothing is looked at first.
        (
            3,
            set(3).insert(claim(2)).replace(renewed, 1),
            "SELECT 1 FROM claims WHERE subject = 1 FOR UPDATE NOWAIT",
        ),
        // A balance, which always is.
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
        other.batch_execute(wanted).await.expect("nobody holds it");
        other.batch_execute("ROLLBACK").await.unwrap();
        let answer = committing.await.unwrap();
        assert!(
            matches!(&answer, Err(CommitError::Refused(refusal)) if refusal.reason == Reason::Present),
            "{number}: {answer:?}"
        );
    }
}

/// However many want it: who does not is not kept waiting by all of them in turn.
#[tokio::test]
async fn a_held_row_that_many_want_keeps_nobody_else_waiting() {
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
            // Who came behind too many of them is told to ask again.
            while let Err(error) = store.commit(opening(number)).await {
                assert_eq!(error, CommitError::Conflict);
            }
        });
    }
    // Each of the four hundred by itself would wait for most of a second.
    let done = tokio::time::timeout(Duration::from_mins(1), others.join_all()).await;
    done.expect("they wait for all who want the row");
    let answers = wanting.join_all().await;
    assert!(answers.iter().all(|answer| *answer == Err(CommitError::Conflict)), "{answers:?}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    store.commit(moved(2_000, &[1])).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_does_not_end_is_ended_and_writes_nothing() {
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
async fn a_read_that_finds_every_connection_busy_says_so() {
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
async fn a_store_that_lost_its_connections_to_others_comes_back_when_there_is_room() {
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
        // Whoever was faster: without room it is the store that goes without.
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

/// Its machine goes on and takes what is sent: only the silence tells.
#[tokio::test]
async fn a_server_process_that_stands_still_is_not_waited_for_for_ever() {
    let (_server, database) = own_server(&[]).await;
    let store = open(&database.url()).await;
    let operator = raw(&database.url()).await;
    // Those that commit hold a lock each.
    let backends =
        "SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()";
    let found = operator.query(backends, &[]).await.unwrap();
    let pids: Vec<Pid> = found.iter().filter_map(|row| Pid::from_raw(row.get::<_, i32>(0))).collect();
    assert_eq!(pids.len(), 2);
    let all = |signal: Signal| pids.iter().for_each(|pid| kill_process(*pid, signal).unwrap());
    all(Signal::STOP);
    // Nothing was prepared yet, so that is where it stands.
    let answer = tokio::time::timeout(Duration::from_mins(2), store.commit(opening(1))).await;
    all(Signal::CONT);
    assert!(matches!(&answer, Ok(Err(CommitError::Unavailable(_)))), "{answer:?}");
    eventually(&store, 1).await;
}

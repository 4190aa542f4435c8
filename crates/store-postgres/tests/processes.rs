//! Several processes on one database: independent stores commit to the same rows.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::types::id::SetId;
use counterfoil_store::conformance::fixtures::ledger::{BOTH, account_id, moving, opened, posted, transfer};
use counterfoil_store::conformance::fixtures::{TENANT, at, charge, charge_id, claim, opening, outbox, set};
use counterfoil_store::{
    ChangeSet, CommitError, CommitReceipt, Due, EntryPage, Position, RefusalReason, Row, RowKey, Store, Upto,
};
use counterfoil_store_postgres::PostgresStore;
use std::collections::HashMap;
use std::sync::Arc;
use support::{database, open, raw};
use tokio::task::JoinSet;

/// The whole feed, in order.
async fn whole_feed(store: &PostgresStore) -> Vec<(SetId, CommitReceipt)> {
    let mut all = Vec::new();
    loop {
        let page = store.feed(Position(u64::try_from(all.len()).unwrap()), 1_000).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page.into_iter().map(|entry| (entry.set, entry.receipt)));
    }
}

async fn commit(store: &PostgresStore, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
    loop {
        match store.commit(set.clone()).await {
            Err(CommitError::Conflict) => tokio::task::yield_now().await,
            answer => return answer,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_shared_rows_never_lose_or_double_anything() {
    const ROWS: i64 = 8;
    const WRITERS: i64 = 12;
    const ROUNDS: i64 = 20;
    let database = database().await;
    let stores = [Arc::new(open(&database.url()).await), Arc::new(open(&database.url()).await)];
    let first = (1..=ROWS).fold(set(1), |set, row| set.insert(charge(row)).insert(opened(row, None, None)));
    stores[0].commit(first).await.unwrap();

    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(&stores[usize::from(writer % 2 == 1)]);
        writers.spawn(async move {
            let mut receipts = Vec::new();
            for round in 0..ROUNDS {
                // Changes two rows in a random order, and a balance that all writers move.
                let (one, other) = ((writer * 5 + round) % ROWS + 1, (writer * 3 + round * 7 + 1) % ROWS + 1);
                let number = 1_000 + writer * ROUNDS + round;
                loop {
                    let keys = [one, other].map(|row| RowKey::Charge(TENANT, charge_id(row)));
                    let mut rows = store.read(keys.to_vec()).await.unwrap();
                    rows.dedup();
                    let mut next = set(number);
                    for row in rows.into_iter().flatten() {
                        let Row::Charge(found) = row else { panic!("not a charge") };
                        let expect = found.revision;
                        next = next.replace(Charge { revision: expect + 1, ..found }, expect);
                    }
                    next = next.shift(moving(number % ROWS + 1, BOTH, posted(1)));
                    match commit(&store, next).await {
                        Ok(receipt) => {
                            receipts.push((SetId::from_i64(number), receipt));
                            break;
                        }
                        Err(CommitError::Refused(_)) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            }
            receipts
        });
    }
    let told: HashMap<SetId, CommitReceipt> = writers.join_all().await.into_iter().flatten().collect();
    assert_eq!(i64::try_from(told.len()), Ok(WRITERS * ROUNDS));

    let feed = whole_feed(&stores[1]).await;
    assert_eq!(i64::try_from(feed.len()), Ok(WRITERS * ROUNDS + 1));
    for (position, (id, receipt)) in (1..).zip(&feed) {
        assert_eq!(receipt.position, Position(position), "positions are dense");
        assert!(told.get(id).is_none_or(|told| told == receipt), "{id:?} was told another place");
    }
    assert!(feed.is_sorted_by_key(|(_, receipt)| receipt.at), "time goes along with positions");

    let balances = (1..=ROWS).map(|row| RowKey::Balance(TENANT, account_id(row), 0)).collect();
    let moved: i64 = stores[0]
        .read(balances)
        .await
        .unwrap()
        .into_iter()
        .flatten()
        .map(|row| match row {
            Row::Balance(balance) => balance.posted,
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(moved, WRITERS * ROUNDS, "every move counts once");
    let deadlocks = raw(&database.url()).await;
    let row = deadlocks
        .query_one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 0, "rows are locked in one order");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_claimed_in_two_processes_has_one_winner() {
    let database = database().await;
    let stores = [Arc::new(open(&database.url()).await), Arc::new(open(&database.url()).await)];
    for round in 0..20_i64 {
        let mut rivals = JoinSet::new();
        for rival in 0..8_i64 {
            let store = Arc::clone(&stores[usize::from(rival % 2 == 1)]);
            let number = 100 + round * 8 + rival;
            let mut wanted = claim(round + 1);
            wanted.subject = charge_id(number).into();
            rivals.spawn(async move {
                (wanted.clone(), commit(&store, set(number).insert(wanted).insert(charge(number))).await)
            });
        }
        let answers = rivals.join_all().await;
        let winners: Vec<_> = answers.iter().filter(|(_, answer)| answer.is_ok()).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        for (_, answer) in answers.iter().filter(|(_, answer)| answer.is_err()) {
            let Err(CommitError::Refused(refusal)) = answer else { panic!("{answer:?}") };
            assert_eq!(refusal.found, Some(Row::Claim(winners[0].0.clone())), "the loser is told who won");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_positions_never_misses_a_later_commit() {
    let database = database().await;
    let stores = [Arc::new(open(&database.url()).await), Arc::new(open(&database.url()).await)];
    let mut writers = JoinSet::new();
    for writer in 0..2_i64 {
        let store = Arc::clone(&stores[usize::from(writer == 1)]);
        writers.spawn(async move {
            for round in 0..60 {
                let number = writer * 1_000 + round + 1;
                commit(&store, set(number).insert(transfer(number, 1, 2, 1))).await.unwrap();
            }
        });
    }
    // If a position is visible, all earlier positions are visible, so a fold up to the position
    // never changes.
    let reader = open(&database.url()).await;
    let (mut seen, mut folds) = (0, Vec::new());
    while seen < 120 {
        let feed = reader.feed(Position(seen), 1_000).await.unwrap();
        for entry in feed {
            seen += 1;
            assert_eq!(entry.receipt.position, Position(seen), "a gap that could still be filled");
        }
        let upto = Upto::Position(Position(seen));
        folds.push((upto, reader.fold(TENANT, account_id(1), Position::START, upto).await.unwrap()));
    }
    writers.join_all().await;
    for (upto, folded) in folds {
        assert_eq!(reader.fold(TENANT, account_id(1), Position::START, upto).await.unwrap(), folded);
    }
    let newest = reader.entries(TENANT, account_id(1), EntryPage::Before(None), 1_000).await.unwrap();
    assert_eq!(newest.len(), 120);
    assert!(newest.is_sorted_by(|one, other| one.position > other.position));
}

#[tokio::test]
async fn a_refusal_shows_the_row_as_another_process_changed_it() {
    let database = database().await;
    let (one, other) = (open(&database.url()).await, open(&database.url()).await);
    one.commit(opening(1)).await.unwrap();
    let moved = Charge { revision: 2, ..charge(1) };
    other.commit(set(2).replace(moved.clone(), 1)).await.unwrap();
    // The first process remembers a row that has been replaced.
    let late =
        set(3).replace(Charge { revision: 2, provider_reference: Some("late".into()), ..charge(1) }, 1);
    let Err(CommitError::Refused(refusal)) = one.commit(late).await else { panic!("not refused") };
    assert_eq!(
        (refusal.change, refusal.reason, refusal.found),
        (0, RefusalReason::Stale, Some(moved.clone().into()))
    );
    // Stale memory does not refuse a set either: the first process has never seen the second
    // revision.
    one.commit(set(4).replace(Charge { revision: 3, ..moved }, 2)).await.unwrap();
}

#[tokio::test]
async fn a_row_removed_and_inserted_again_is_not_mistaken_for_the_old_one() {
    let database = database().await;
    let (one, other) = (open(&database.url()).await, open(&database.url()).await);
    one.commit(opening(1)).await.unwrap();
    other.commit(set(2).remove(RowKey::Outbox(TENANT, charge_id(1).into()), 1)).await.unwrap();
    let again = Outbox { due_at: at(77), ..outbox(1) };
    other.commit(set(3).insert(again.clone())).await.unwrap();
    // The key and the revision are equal, the row is another. The refusal shows the new row.
    let twin = set(4).insert(outbox(1)).remove(RowKey::Claim(TENANT, claim(1).id), 1);
    let Err(CommitError::Refused(refusal)) = one.commit(twin).await else { panic!("not refused") };
    assert_eq!(
        (refusal.change, refusal.reason, refusal.found),
        (0, RefusalReason::Present, Some(again.into()))
    );
    one.commit(set(5).remove(RowKey::Outbox(TENANT, charge_id(1).into()), 1)).await.unwrap();
    assert_eq!(one.read(vec![RowKey::Outbox(TENANT, charge_id(1).into())]).await.unwrap(), [None]);
}

#[tokio::test]
async fn a_key_claimed_first_by_another_process_is_refused_and_shown() {
    let database = database().await;
    let (one, other) = (open(&database.url()).await, open(&database.url()).await);
    other.commit(opening(1)).await.unwrap();
    for number in 2..=4 {
        let twin = set(number).insert(claim(1)).insert(charge(number));
        let Err(CommitError::Refused(refusal)) = one.commit(twin).await else { panic!("not refused") };
        assert_eq!(
            (refusal.change, refusal.reason, refusal.found),
            (0, RefusalReason::Present, Some(claim(1).into()))
        );
    }
    assert_eq!(whole_feed(&one).await.len(), 1);
}

/// Due work that another transaction has locked is skipped, and does not hide the rest.
#[tokio::test]
async fn locked_due_work_is_skipped_and_the_query_leaves_no_locks() {
    let database = database().await;
    let store = open(&database.url()).await;
    let due = |number: i64| Outbox { due_at: at(u64::try_from(number).unwrap()), ..outbox(number) };
    for number in 1..=3 {
        store.commit(set(number).insert(due(number))).await.unwrap();
    }
    let found = async |limit: usize| {
        let rows = store.due(Due::Outbox, at(9), limit).await.unwrap();
        rows.into_iter().map(|row| row.key()).collect::<Vec<RowKey>>()
    };
    let keys = [1, 2, 3].map(|number| Row::Outbox(due(number)).key());
    assert_eq!(found(2).await, keys[..2]);

    let mut tool = raw(&database.url()).await;
    let holding = tool.transaction().await.unwrap();
    let held = "SELECT FROM counterfoil.outbox ORDER BY due_at LIMIT 1 FOR UPDATE NOWAIT";
    // The query has released its locks.
    assert_eq!(holding.execute(held, &[]).await.unwrap(), 1);
    assert_eq!(found(2).await, keys[1..]);
    holding.rollback().await.unwrap();
    assert_eq!(found(9).await, keys);
}

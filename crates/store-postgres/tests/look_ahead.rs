//! Claims say when to look at them from their first write on: settling them leaves their rows on their pages, the sweep finds them, and
//! tables that do not know this yet are written as before.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::{Claim, ClaimState, Settled};
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::conformance::fixtures::{NOW, claim, set, settled};
use counterfoil_store::{ChangeSet, CommitError, Due, Row, Store};
use counterfoil_store_postgres::{Options, PostgresStore, Reach, VERSION, migrate};
use std::sync::Arc;
use support::{database, fresh, open, raw};
use tokio_postgres::Client;

const DAY: Span = Span::from_ms(86_400_000);
const MINUTE: Span = Span::from_ms(60_000);
/// When the sweep looks at what was claimed now and is kept for a day: a thirty-second part of it later.
const LOOK: Time = NOW.plus(DAY).plus(Span::from_ms(45 * 60_000));
const ANSWER: [u8; 480] = [b'x'; 480];

/// What the tables of schema 12 had instead.
const SCHEMA_12: &str = "DELETE FROM schema_steps WHERE version >= 13; DROP TABLE commit_groups; DROP TRIGGER kept_while_needed ON idempotency_keys; \
    CREATE TRIGGER kept_while_needed BEFORE DELETE ON idempotency_keys FOR EACH ROW WHEN (OLD.sweep_at IS NULL) \
    EXECUTE FUNCTION refuse('a claim that is not settled is never removed'); \
    ALTER TABLE idempotency_keys ENABLE ALWAYS TRIGGER kept_while_needed; \
    ALTER TABLE idempotency_keys SET (fillfactor = 75)";

/// The claim settled a moment after it was made.
fn done(number: i64, replay_until: Time) -> Claim {
    let windows = Windows { replay_until, tombstone_until: replay_until.plus(DAY) };
    let answer = Settled { windows, ..settled(&ANSWER, replay_until) };
    Claim { revision: 2, state: ClaimState::Completed(answer), ..claim(number) }
}

fn a_day(number: i64) -> Claim {
    done(number, NOW.plus(DAY).plus(MINUTE))
}

async fn due(store: &PostgresStore, now: Time) -> Vec<Row> {
    store.due(Due::Claims, now, 1_000).await.unwrap()
}

/// Rows of claims, and how many of them no index leads to but through the row they were first.
async fn in_place(db: &Client) -> (i64, i64) {
    db.batch_execute("CREATE EXTENSION IF NOT EXISTS pageinspect SCHEMA public").await.unwrap();
    let found = db
        .query_one(
            "SELECT count(*), count(*) FILTER (WHERE i.t_infomask2 & 32768 <> 0) FROM idempotency_keys AS t \
             JOIN LATERAL public.heap_page_items(public.get_raw_page('idempotency_keys', ((t.ctid::text::point)[0])::int)) \
             AS i ON i.lp = ((t.ctid::text::point)[1])::int",
            &[],
        )
        .await
        .unwrap();
    (found.get(0), found.get(1))
}

/// Claims are made and settled by many at once.
async fn crowd(store: &Arc<PostgresStore>, numbers: std::ops::Range<i64>, ending: fn(i64) -> Claim) {
    let each = numbers.map(|number| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            store.commit(set(2 * number).insert(claim(number))).await.unwrap();
            store.commit(set(2 * number + 1).replace(ending(number), 1)).await.unwrap();
        })
    });
    for one in each.collect::<Vec<_>>() {
        one.await.unwrap();
    }
}

#[tokio::test]
async fn settling_leaves_a_row_on_its_page() {
    let (store, database) = fresh().await;
    crowd(&store, 1..201, a_day).await;
    assert_eq!(in_place(&raw(&database.url()).await).await, (200, 200));
}

#[tokio::test]
async fn a_window_that_is_not_usual_is_entered_anew() {
    let (store, database) = fresh().await;
    crowd(&store, 1..21, |number| done(number, NOW.plus(MINUTE))).await;
    assert_eq!(in_place(&raw(&database.url()).await).await, (20, 0));
    // A store that was told of this window has it for the usual one.
    let options = Options { replay_window: MINUTE, ..Options::default() };
    let store = Arc::new(PostgresStore::open(&database.url(), options).await.unwrap());
    crowd(&store, 21..41, |number| done(number, NOW.plus(MINUTE))).await;
    assert_eq!(in_place(&raw(&database.url()).await).await, (40, 20));
}

#[tokio::test]
async fn the_sweep_finds_what_is_over_and_nothing_else() {
    let (store, _database) = fresh().await;
    let under_way = claim(1);
    let (usual, short, long) = (a_day(2), done(3, NOW.plus(MINUTE)), done(4, NOW.plus(DAY).plus(DAY)));
    let made = (1..=4).map(claim).fold(set(1), ChangeSet::insert);
    store.commit(made).await.unwrap();
    let ended = [&usual, &short, &long].into_iter().fold(set(2), |set, claim| set.replace(claim.clone(), 1));
    store.commit(ended).await.unwrap();
    let later = |time: Time| time.plus(Span::from_ms(1));
    let [usual, short, long] = [usual, short, long].map(Row::from);
    assert_eq!(due(&store, NOW).await, []);
    assert_eq!(due(&store, NOW.plus(MINUTE)).await, std::slice::from_ref(&short));
    assert_eq!(due(&store, LOOK.minus(Span::from_ms(1))).await, std::slice::from_ref(&short));
    assert_eq!(due(&store, LOOK).await, [short.clone(), usual.clone()]);
    assert_eq!(due(&store, later(NOW.plus(DAY).plus(DAY))).await, [short.clone(), usual.clone(), long]);
    // Years later it is still under way.
    let last = due(&store, Time::MAX).await;
    assert!(!last.contains(&under_way.into()) && last.len() == 3, "{last:?}");
    // A tombstone is looked at when it is over, not before and not later.
    let tombstone_until = NOW.plus(DAY).plus(MINUTE).plus(DAY);
    let aged = Claim { revision: 3, state: ClaimState::Expired { tombstone_until }, ..claim(2) };
    store.commit(set(3).replace(aged.clone(), 2)).await.unwrap();
    assert_eq!(due(&store, LOOK).await, std::slice::from_ref(&short));
    assert!(due(&store, tombstone_until).await.contains(&aged.into()));
}

#[tokio::test]
async fn tables_that_do_not_look_ahead_are_written_as_before_and_brought_forward() {
    let database = database().await;
    let url = database.url();
    let db = raw(&url).await;
    db.batch_execute(SCHEMA_12).await.unwrap();
    let store = Arc::new(open(&url).await);
    store.commit(set(1).insert(claim(1)).insert(claim(2))).await.unwrap();
    let unsettled = "DELETE FROM idempotency_keys";
    let refused = db.batch_execute(unsettled).await.expect_err("it is under way");
    assert!(refused.as_db_error().unwrap().message().contains("never removed"), "{refused}");
    let busy = async {
        for number in 10..50 {
            let made = set(number).insert(claim(number));
            // A table that is held for longer than a group waits is no answer: who asks again is told.
            while let Err(error) = store.commit(made.clone()).await {
                assert_eq!(error, CommitError::Conflict);
            }
        }
    };
    let (migrated, ()) = tokio::join!(migrate(&url, Reach::Newest), busy);
    assert_eq!((migrated.as_ref().unwrap().from, migrated.unwrap().to), (12, VERSION));
    // Who was there before goes on, and so does who comes now.
    let newer = open(&url).await;
    store.commit(set(2).replace(a_day(1), 1)).await.unwrap();
    newer.commit(set(3).replace(a_day(2), 1)).await.unwrap();
    newer.commit(set(4).insert(claim(3))).await.unwrap();
    let refused = db.batch_execute(unsettled).await.expect_err("some are under way");
    assert!(refused.as_db_error().unwrap().message().contains("never removed"), "{refused}");
    assert_eq!(due(&store, NOW.plus(DAY).plus(MINUTE)).await, [a_day(1).into()]);
    assert_eq!(due(&store, LOOK).await, [a_day(1), a_day(2)].map(Row::from));
}

//! Claims are scheduled for the sweep at creation: settling updates the row in place, and the sweep
//! comes on time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::{Claim, ClaimState, Settled};
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::conformance::fixtures::{NOW, claim, set, settled};
use counterfoil_store::{ChangeSet, Due, Row, Store};
use counterfoil_store_postgres::{Options, PostgresStore};
use std::sync::Arc;
use support::{fresh, raw};
use tokio_postgres::Client;

const DAY: Span = Span::from_ms(86_400_000);
const MINUTE: Span = Span::from_ms(60_000);
/// The planned visit of a claim made now with a window of a day: 1/32 of the window after its end.
const VISIT: Time = NOW.plus(DAY).plus(Span::from_ms(45 * 60_000));
const ANSWER: [u8; 480] = [b'x'; 480];

/// A claim that was settled at once.
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

/// The number of claims, and of those that were updated in place (heap-only tuples).
async fn in_place(db: &Client) -> (i64, i64) {
    db.batch_execute("CREATE EXTENSION IF NOT EXISTS pageinspect SCHEMA public").await.unwrap();
    let found = db
        .query_one(
            "SELECT count(*), count(*) FILTER (WHERE i.t_infomask2 & 32768 <> 0) FROM claims AS t \
             JOIN LATERAL public.heap_page_items(public.get_raw_page('claims', ((t.ctid::text::point)[0])::int)) \
             AS i ON i.lp = ((t.ctid::text::point)[1])::int",
            &[],
        )
        .await
        .unwrap();
    (found.get(0), found.get(1))
}

/// Makes and settles claims concurrently.
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
async fn settling_updates_the_row_in_place() {
    let (store, database) = fresh().await;
    crowd(&store, 1..201, a_day).await;
    assert_eq!(in_place(&raw(&database.url()).await).await, (200, 200));
}

#[tokio::test]
async fn an_unusual_window_moves_the_row() {
    let (store, database) = fresh().await;
    crowd(&store, 1..21, |number| done(number, NOW.plus(MINUTE))).await;
    assert_eq!(in_place(&raw(&database.url()).await).await, (20, 0));
    // A store configured for that window plans for it.
    let options = Options { replay_window: MINUTE, ..Options::default() };
    let store = Arc::new(PostgresStore::open(&database.url(), options).await.unwrap());
    crowd(&store, 21..41, |number| done(number, NOW.plus(MINUTE))).await;
    assert_eq!(in_place(&raw(&database.url()).await).await, (40, 20));
}

#[tokio::test]
async fn the_sweep_finds_ended_windows_and_nothing_else() {
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
    assert_eq!(due(&store, VISIT.minus(Span::from_ms(1))).await, std::slice::from_ref(&short));
    assert_eq!(due(&store, VISIT).await, [short.clone(), usual.clone()]);
    assert_eq!(due(&store, later(NOW.plus(DAY).plus(DAY))).await, [short.clone(), usual.clone(), long]);
    // The unsettled claim is never due.
    let last = due(&store, Time::MAX).await;
    assert!(!last.contains(&under_way.into()) && last.len() == 3, "{last:?}");
    // A tombstone is due exactly when it ends.
    let tombstone_until = NOW.plus(DAY).plus(MINUTE).plus(DAY);
    let aged = Claim { revision: 3, state: ClaimState::Expired { tombstone_until }, ..claim(2) };
    store.commit(set(3).replace(aged.clone(), 2)).await.unwrap();
    assert_eq!(due(&store, VISIT).await, std::slice::from_ref(&short));
    assert!(due(&store, tombstone_until).await.contains(&aged.into()));
}

//! Balance snapshots: taken in time, few in number, and without effect on balances.

use crate::support::ledger::*;
use crate::support::*;
use counterfoil_core::ledger::snapshot::{Cursor, FeedReader, Snapshot};
use counterfoil_core::payments::ledger::Item;
use counterfoil_core::types::limits::{SNAPSHOT_EVERY, SNAPSHOTS_MAX};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::{Position, Row, RowKey, Scan, Store, Upto};
use std::time::Duration;

const EVERY: usize = 256;

async fn snapshots(store: &SharedStore, engine: &TestEngine, code: &str) -> Vec<Snapshot> {
    let account = account(engine, code).await.id;
    let rows =
        store.scan(Scan::Snapshots { tenant: TENANT, account, upto: Upto::Now, limit: 1_000 }).await.unwrap();
    rows.into_iter()
        .map(|row| match row {
            Row::Snapshot(snapshot) => snapshot,
            other => panic!("{other:?}"),
        })
        .collect()
}

async fn cursor(store: &SharedStore) -> Cursor {
    match store.read(vec![RowKey::Cursor(FeedReader::Projection)]).await.unwrap().remove(0) {
        Some(Row::Cursor(cursor)) => cursor,
        other => panic!("{other:?}"),
    }
}

async fn scene() -> (SharedStore, TestEngine) {
    scene_of(SharedStore::new()).await
}

async fn scene_of(store: SharedStore) -> (SharedStore, TestEngine) {
    let engine = engine(&store, &Provider::default()).await;
    funded(&engine, &[(guarded("a", Some(0), None), 0)]).await;
    (store, engine)
}

/// This many transfers of 1 to `a`, in few commits.
async fn deposit(engine: &TestEngine, key: &str, times: usize) {
    let items: Vec<Item> = (0..times).map(|_| Item::Transfer(order("world", "a", 1))).collect();
    assert_eq!(answer(&bulk(engine, key, &items).await).0, 200);
}

#[tokio::test(start_paused = true)]
async fn the_first_snapshot_comes_with_the_last_of_so_many_entries() {
    assert_eq!(u64::try_from(EVERY).unwrap(), SNAPSHOT_EVERY);
    let (store, engine) = scene().await;
    deposit(&engine, "k", EVERY - 1).await;
    seconds(2).await;
    assert_eq!(snapshots(&store, &engine, "a").await, []);
    executed(&engine, "one more", transfer("world", "a", 1)).await;
    seconds(2).await;
    let taken = snapshots(&store, &engine, "a").await;
    assert_eq!(taken.len(), 1);
    assert_eq!(
        (taken[0].totals.entries, taken[0].totals.credits),
        (SNAPSHOT_EVERY, i128::from(SNAPSHOT_EVERY))
    );
    assert_eq!(taken[0].position, balance_upto(&engine, "a", Upto::Now).await.position);
    verified(&store).await;
}

/// The balance of `a` after a commit.
struct Point {
    position: Position,
    at: Time,
    posted: i128,
}

#[tokio::test(start_paused = true)]
async fn a_balance_is_the_same_at_every_point_with_snapshots_and_without() {
    let (store, engine) = scene().await;
    let opened = store.now();
    let mut points: Vec<Point> = Vec::new();
    let mut posted = 0;
    for turn in 0..900_usize {
        let amount = i64::try_from(turn * 7 % 13).unwrap() + 1;
        let (from, to, signed) = if turn % 3 == 2 { ("a", "world", -amount) } else { ("world", "a", amount) };
        if executed(&engine, &format!("t{turn}"), transfer(from, to, amount)).await.0 != 201 {
            continue;
        }
        posted += i128::from(signed);
        let position = balance_upto(&engine, "a", Upto::Now).await.position;
        points.push(Point { position, at: store.now(), posted });
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(snapshots(&store, &engine, "a").await.len() >= 3);
    let start = balance_upto(&engine, "a", Upto::Time(opened.minus(Span::from_ms(1)))).await;
    assert_eq!((start.view, start.position), (view(0, 0, 0), Position::START), "before the first entry");
    let end = points.last().unwrap();
    for upto in [Upto::Now, Upto::Time(Time::MAX), Upto::Position(Position(u64::MAX))] {
        let now = balance_upto(&engine, "a", upto).await;
        assert_eq!((now.view, now.position), (view(end.posted, 0, 0), end.position));
    }
    for point in points.iter().step_by(7) {
        let expected = (view(point.posted, 0, 0), point.position);
        let just_before_the_next = point.at.plus(Span::from_ms(9));
        for upto in [Upto::Position(point.position), Upto::Time(point.at), Upto::Time(just_before_the_next)] {
            let shown = balance_upto(&engine, "a", upto).await;
            assert_eq!((shown.view, shown.position), expected, "{upto:?}");
        }
    }
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn snapshots_stay_few_over_a_long_history_and_closer_together_the_younger() {
    stay_few(SharedStore::new()).await;
}

#[tokio::test(start_paused = true)]
async fn cached_snapshots_are_used_without_rereading() {
    stay_few(SharedStore::new().alone()).await;
}

async fn stay_few(store: SharedStore) {
    let (store, engine) = scene_of(store).await;
    let rounds = SNAPSHOTS_MAX + 30;
    let mut points = Vec::new();
    for round in 0..rounds {
        deposit(&engine, &format!("k{round}"), EVERY).await;
        points.push((balance_upto(&engine, "a", Upto::Now).await.position, (round + 1) * EVERY));
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(snapshots(&store, &engine, "a").await.len() <= SNAPSHOTS_MAX);
    }
    let kept = snapshots(&store, &engine, "a").await;
    assert_eq!(kept.len(), SNAPSHOTS_MAX);
    let gap = |pair: &[Snapshot]| pair[0].totals.entries - pair[1].totals.entries;
    assert_eq!(kept.windows(2).map(gap).next(), Some(SNAPSHOT_EVERY), "the youngest lie side by side");
    assert!(kept.windows(2).map(gap).max() > Some(SNAPSHOT_EVERY), "some of the old ones are gone");
    assert!(kept.last().unwrap().totals.entries <= 2 * SNAPSHOT_EVERY, "the beginning is still near one");
    for (position, posted) in points {
        let shown = balance_upto(&engine, "a", Upto::Position(position)).await;
        assert_eq!(shown.view.posted, i128::try_from(posted).unwrap());
    }
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_process_continues_at_the_stored_cursor() {
    let store = SharedStore::new();
    let mortal = store.another();
    let first = engine(&mortal, &Provider::default()).await;
    funded(&first, &[(guarded("a", Some(0), None), 0)]).await;
    deposit(&first, "k1", EVERY + 100).await;
    seconds(1).await;
    let stood = cursor(&store).await;
    mortal.dies_after(0);
    let second = engine(&store, &Provider::default()).await;
    // The tail is counted from the first process's snapshot, not from the start of the second one.
    deposit(&second, "k2", 200).await;
    seconds(1).await;
    assert_eq!(snapshots(&store, &second, "a").await.len(), 1);
    deposit(&second, "k3", EVERY - 200).await;
    seconds(1).await;
    assert_eq!(snapshots(&store, &second, "a").await.len(), 2);
    let stands = cursor(&store).await;
    assert!(stands.position > stood.position && stands.revision > stood.revision);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_does_not_read_its_own_commits_from_the_feed() {
    let (store, first) = scene().await;
    let other = store.another();
    let second = engine(&other, &Provider::default()).await;
    seconds(1).await;
    let fed = [store.fed(), other.fed()];
    for round in 0..8 {
        deposit(&first, &format!("k{round}"), 100).await;
        seconds(1).await;
    }
    assert!(store.fed() - fed[0] <= 4, "the other's slot and cursors only: {}", store.fed() - fed[0]);
    assert!(other.fed() - fed[1] >= 8, "what the first committed: {}", other.fed() - fed[1]);
    // Every process finds the same balance, from memory and from the feed.
    deposit(&second, "other", 100).await;
    seconds(1).await;
    assert!(snapshots(&store, &first, "a").await.len() >= 2);
    assert_eq!(posted(&second, "a").await, 900);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn two_projections_do_not_disturb_each_other() {
    for seed in 1..=4 {
        let store = SharedStore::new();
        let first = engine(&store.jumpy(seed), &Provider::default()).await;
        funded(&first, &[(guarded("a", Some(0), None), 0)]).await;
        tokio::time::sleep(Duration::from_millis(seed * 40)).await;
        let second = engine(&store.jumpy(seed + 9), &Provider::default()).await;
        for round in 0..24 {
            deposit(if round % 2 == 0 { &first } else { &second }, &format!("k{round}"), 90).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        seconds(2).await;
        let taken = snapshots(&store, &first, "a").await;
        // 2,160 entries: a single process would take between four and eight snapshots.
        assert!((4..=2 * 8).contains(&taken.len()), "seed {seed}: {}", taken.len());
        assert_eq!(posted(&first, "a").await, 24 * 90);
        verified(&store).await;
        // Without new entries, the two processes do not keep each other busy.
        let before = store.feed(Position::START, 1_000).await.unwrap().len();
        seconds(10).await;
        assert_eq!(store.feed(Position::START, 1_000).await.unwrap().len(), before);
    }
}

#[tokio::test(start_paused = true)]
async fn snapshots_include_reserved_amounts() {
    let (store, engine) = scene().await;
    deposit(&engine, "k", 100).await;
    let held = number(&executed(&engine, "h", hold("a", "world", 40)).await.1);
    for round in 0..3 {
        deposit(&engine, &format!("k{round}"), EVERY).await;
        seconds(1).await;
    }
    let before = balance_upto(&engine, "a", Upto::Now).await;
    assert_eq!(before.view, view(i128::from(100 + 3 * SNAPSHOT_EVERY), 40, 0));
    assert!(
        snapshots(&store, &engine, "a").await.iter().all(|snapshot| snapshot.totals.debits_pending == 40)
    );
    executed(&engine, "p", post_hold(held, Some(30))).await;
    assert_eq!(balance(&engine, "a").await, view(i128::from(70 + 3 * SNAPSHOT_EVERY), 0, 0));
    assert_eq!(balance_upto(&engine, "a", Upto::Position(before.position)).await, before);
    verified(&store).await;
}

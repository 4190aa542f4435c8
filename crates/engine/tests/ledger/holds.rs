//! Holds: posted, voided, lapsed, and never ended twice.

use crate::support::ledger::*;
use crate::support::*;
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::payments::ledger::decide::HOLD_DEFAULT;
use counterfoil_core::types::id::TransactionId;
use counterfoil_engine::service::{Service, TransferView};
use std::time::Duration;

async fn two() -> (SharedStore, TestEngine) {
    let store = SharedStore::new();
    let engine = engine(&store, &Provider::default()).await;
    funded(&engine, &[(guarded("a", Some(0), None), 1_000), (guarded("b", None, Some(1_000)), 0)]).await;
    (store, engine)
}

async fn held(engine: &TestEngine, key: &str, amount: i64) -> i64 {
    let (status, body) = executed(engine, key, hold("a", "b", amount)).await;
    assert_eq!(status, 201, "{body}");
    number(&body)
}

#[tokio::test(start_paused = true)]
async fn held_money_cannot_be_spent_nor_its_room_below_the_cap_be_filled() {
    let (store, engine) = two().await;
    held(&engine, "h", 600).await;
    assert_eq!(balance(&engine, "a").await, view(1_000, 600, 0));
    assert_eq!(balance(&engine, "b").await, view(0, 0, 600));
    assert!(
        executed(&engine, "spend", transfer("a", "world", 401)).await.1.starts_with("insufficient_funds")
    );
    assert!(executed(&engine, "fill", transfer("world", "b", 401)).await.1.starts_with("cap_exceeded"));
    assert_eq!(executed(&engine, "spend less", transfer("a", "world", 400)).await.0, 201);
    assert_eq!(executed(&engine, "fill less", transfer("world", "b", 400)).await.0, 201);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_part_is_posted_and_the_rest_is_free() {
    let (store, engine) = two().await;
    let hold = held(&engine, "h", 600).await;
    assert_eq!(executed(&engine, "post", post_hold(hold, Some(250))).await, (200, format!("posted {hold}")));
    assert_eq!(balance(&engine, "a").await, view(750, 0, 0));
    assert_eq!(balance(&engine, "b").await, view(250, 0, 0));
    assert!(matches!(hold_row(&store, hold).await.state, HoldState::Posted { amount: 250, .. }));
    let shown = engine.transfer(TENANT, TransactionId::from_i64(hold)).await.unwrap();
    assert!(matches!(shown, Some(TransferView::Held(shown)) if shown == hold_row(&store, hold).await));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_posted_hold_is_undone_as_far_as_it_was_posted() {
    let (store, engine) = two().await;
    let hold = held(&engine, "h", 600).await;
    executed(&engine, "post", post_hold(hold, Some(250))).await;
    let HoldState::Posted { by, .. } = hold_row(&store, hold).await.state else { panic!("not posted") };
    assert_eq!(executed(&engine, "undo", reverse(by.to_i64())).await.0, 201);
    assert_eq!(balance(&engine, "a").await, view(1_000, 0, 0));
    assert!(executed(&engine, "twice", reverse(by.to_i64())).await.1.starts_with("already_reversed"));
    assert!(executed(&engine, "hold", reverse(hold)).await.1.starts_with("not_reversible"));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_passed_deadline_counts_before_the_worker_runs() {
    let (store, engine) = two().await;
    let body = executed(&engine, "h", hold_for(&store, "a", "b", 600, 60)).await.1;
    let hold = number(&body);
    // The store is down while the deadline passes, so no worker can end the hold.
    tokio::time::sleep(Duration::from_millis(59_900)).await;
    store.0.set_down(true);
    tokio::time::sleep(Duration::from_millis(100)).await;
    store.0.set_down(false);
    assert_eq!(hold_row(&store, hold).await.state, HoldState::Pending);
    assert!(executed(&engine, "late", post_hold(hold, None)).await.1.starts_with("hold_ended"));
    assert!(executed(&engine, "too", void(hold)).await.1.starts_with("hold_ended"));
    assert_eq!(balance(&engine, "a").await, view(1_000, 600, 0), "not given back yet");
    seconds(1).await;
    assert!(matches!(hold_row(&store, hold).await.state, HoldState::Lapsed { .. }));
    assert_eq!(balance(&engine, "a").await, view(1_000, 0, 0));
    assert_eq!(balance(&engine, "b").await, view(0, 0, 0));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_can_be_ended_until_the_instant_before_its_deadline() {
    let (store, engine) = two().await;
    let hold = number(&executed(&engine, "h", hold_for(&store, "a", "b", 600, 60)).await.1);
    tokio::time::sleep(Duration::from_millis(59_999)).await;
    assert_eq!(executed(&engine, "post", post_hold(hold, None)).await.0, 200);
    seconds(10).await;
    assert!(matches!(hold_row(&store, hold).await.state, HoldState::Posted { .. }));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_deadline_of_its_own_a_hold_lasts_seven_days() {
    let (store, engine) = two().await;
    let hold = held(&engine, "h", 1).await;
    let row = hold_row(&store, hold).await;
    assert_eq!(row.expires_at, row.created_at.plus(HOLD_DEFAULT));
}

#[tokio::test(start_paused = true)]
async fn many_holds_lapse_together_and_those_that_ended_do_not() {
    let (store, engine) = two().await;
    let mut holds = Vec::new();
    for turn in 0..50 {
        let act = hold_for(&store, "a", "b", 10, 30 + turn % 3);
        holds.push(number(&executed(&engine, &format!("h{turn}"), act).await.1));
    }
    for hold in holds.iter().take(10) {
        executed(&engine, &format!("v{hold}"), void(*hold)).await;
    }
    seconds(40).await;
    let mut ends = std::collections::BTreeMap::new();
    for hold in holds {
        *ends.entry(hold_row(&store, hold).await.state.name()).or_insert(0) += 1;
    }
    assert_eq!(ends, [("lapsed", 40), ("voided", 10)].into());
    assert_eq!(balance(&engine, "a").await, view(1_000, 0, 0));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn exactly_one_of_many_attempts_to_end_a_hold_succeeds() {
    for seed in 1..=20 {
        let store = SharedStore::new();
        let engine = engine(&store.jumpy(seed), &Provider::default()).await;
        let other = crate::support::engine(&store.jumpy(seed + 1_000), &Provider::default()).await;
        funded(&engine, &[(guarded("a", Some(0), None), 1_000), (guarded("b", None, Some(1_000)), 0)]).await;
        let hold = number(&executed(&engine, "h", hold_for(&store, "a", "b", 600, 60)).await.1);
        // With odd seeds, the deadline competes as well.
        seconds(if seed % 2 == 1 { 59 } else { 10 }).await;
        tokio::time::sleep(Duration::from_millis(if seed % 2 == 1 { 999 } else { 0 })).await;
        let ends: Vec<_> = (0..12)
            .map(|turn| {
                let engine = if turn % 2 == 0 { engine.clone() } else { other.clone() };
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(turn % 3)).await;
                    let act = if turn % 4 == 0 { void(hold) } else { post_hold(hold, Some(100)) };
                    executed(&engine, &format!("end {turn}"), act).await
                })
            })
            .collect();
        let mut won = 0;
        for end in ends {
            let (status, body) = end.await.unwrap();
            assert!(status == 200 || body.starts_with("hold_ended"), "{body}");
            won += usize::from(status == 200);
        }
        seconds(5).await;
        let lapsed = matches!(
            hold_row(&store, hold).await.state,
            counterfoil_core::ledger::hold::HoldState::Lapsed { .. }
        );
        assert_eq!(won + usize::from(lapsed), 1, "seed {seed}");
        assert_eq!(journal(&store).await.len(), 3, "funds, the hold and one end");
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_processes_lapse_a_hold_once() {
    for seed in 1..=10 {
        let store = SharedStore::new();
        let first = engine(&store.jumpy(seed), &Provider::default()).await;
        let _second = engine(&store.jumpy(seed + 50), &Provider::default()).await;
        funded(&first, &[(guarded("a", Some(0), None), 1_000), (guarded("b", None, Some(1_000)), 0)]).await;
        for turn in 0..20 {
            executed(&first, &format!("h{turn}"), hold_for(&store, "a", "b", 10, 5)).await;
        }
        seconds(10).await;
        assert_eq!(balance(&first, "a").await, view(1_000, 0, 0));
        assert_eq!(journal(&store).await.len(), 1 + 20 + 20, "seed {seed}");
        verified(&store).await;
    }
}

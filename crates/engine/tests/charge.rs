//! A charge and its retries without faults.

mod support;

use counterfoil_engine::service::{Service, Submitted};
use std::time::Duration;
use support::*;

#[tokio::test(start_paused = true)]
async fn a_retry_gets_the_same_bytes_and_the_card_is_charged_once() {
    let (store, provider) = (SharedStore::new(), Provider::default());
    let engine = engine(&store, &provider).await;
    let first = answer(&charge(&engine, "k", 1250).await);
    let second = answer(&charge(&engine, "k", 1250).await);
    assert_eq!((first.0, first.2, second.2), (201, false, true));
    assert_eq!(first.1, second.1);
    assert_eq!(provider.keys().len(), 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn another_request_under_the_key_is_neither_executed_nor_replayed() {
    let (store, provider) = (SharedStore::new(), Provider::default());
    let engine = engine(&store, &provider).await;
    charge(&engine, "k", 1250).await;
    assert_eq!(charge(&engine, "k", 1251).await, Submitted::Mismatch);
    assert_eq!(provider.keys().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_mismatch_is_reported_while_the_first_request_still_runs() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Slow(Duration::from_secs(3))]));
    let engine = engine(&store, &provider).await;
    let (first, second) = tokio::join!(charge(&engine, "k", 1250), async {
        seconds(1).await;
        charge(&engine, "k", 99).await
    });
    assert_eq!((answer(&first).0, second), (201, Submitted::Mismatch));
}

#[tokio::test(start_paused = true)]
async fn two_hundred_twins_share_one_effect_and_one_answer() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Slow(Duration::from_secs(2))]));
    let engine = engine(&store, &provider).await;
    let twins: Vec<_> = (0..200)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move { answer(&charge(&engine, "k", 1250).await) })
        })
        .collect();
    let mut bodies = Vec::new();
    let mut replays = 0;
    for twin in twins {
        let (status, body, replayed) = twin.await.unwrap();
        assert_eq!(status, 201);
        replays += usize::from(replayed);
        bodies.push(body);
    }
    bodies.dedup();
    assert_eq!((bodies.len(), replays, provider.effects()), (1, 199, 1));
}

#[tokio::test(start_paused = true)]
async fn a_twin_whose_wait_times_out_gets_in_use() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Slow(Duration::from_secs(8))]));
    let engine = engine(&store, &provider).await;
    let (first, second) = tokio::join!(charge(&engine, "k", 1250), async {
        seconds(1).await;
        charge(&engine, "k", 1250).await
    });
    assert_eq!((answer(&first).0, second), (201, Submitted::InUse));
}

#[tokio::test(start_paused = true)]
async fn a_decline_is_stored_and_replayed() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Decline]));
    let engine = engine(&store, &provider).await;
    let first = answer(&charge(&engine, "k", 1250).await);
    let second = answer(&charge(&engine, "k", 1250).await);
    assert_eq!((first.0, &first.1), (402, &second.1));
    assert_eq!(provider.keys().len(), 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn windows_replay_then_tombstone_then_free() {
    let (store, provider) = (SharedStore::new(), Provider::default());
    let engine = engine_with(&store, &provider, short_windows()).await;
    let first = answer(&charge(&engine, "k", 1250).await);
    seconds(590).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).1, first.1);
    seconds(20).await;
    assert!(matches!(charge(&engine, "k", 1250).await, Submitted::Expired { .. }));
    assert_eq!(charge(&engine, "k", 7).await, Submitted::Mismatch);
    seconds(600).await;
    let again = answer(&charge(&engine, "k", 7).await);
    assert_eq!((again.0, again.2, provider.effects()), (201, false, 2));
    assert_ne!(again.1, first.1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_cancels_nothing() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Slow(Duration::from_secs(2))]));
    let engine = engine(&store, &provider).await;
    let hung_up = tokio::time::timeout(Duration::from_millis(100), charge(&engine, "k", 1250)).await;
    assert!(hung_up.is_err());
    seconds(3).await;
    let (status, _, replayed) = answer(&charge(&engine, "k", 1250).await);
    assert_eq!((status, replayed, provider.keys().len()), (201, true, 1));
}

#[tokio::test(start_paused = true)]
async fn a_closed_engine_replays_but_claims_nothing() {
    let (store, provider) = (SharedStore::new(), Provider::default());
    let engine = engine(&store, &provider).await;
    charge(&engine, "k", 1250).await;
    engine.close();
    assert_eq!(charge(&engine, "new", 1250).await, Submitted::Draining);
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
    assert!(engine.ready().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_work_under_way() {
    use counterfoil_core::types::time::Span;
    let (store, provider) =
        (SharedStore::new(), Provider::new(&[Script::Slow(Duration::from_secs(2)), Script::Hang]));
    let engine = engine(&store, &provider).await;
    let client = tokio::spawn({
        let engine = engine.clone();
        async move { charge(&engine, "k", 1250).await }
    });
    seconds(1).await;
    assert_eq!(engine.drain(Span::from_ms(20_000)).await, 0);
    assert_eq!(answer(&client.await.unwrap()).0, 201);
}

//! Twins of a request in two processes, with and without wake-ups.

mod support;

use std::time::Duration;
use support::*;
use tokio::time::{Instant, sleep};

const CALL: Duration = Duration::from_millis(1_010);

/// A request and its twin in another process, seven milliseconds later: their answers and times.
async fn twins(stores: &[SharedStore; 2]) -> [(String, Duration); 2] {
    let provider = Provider::new(&[Script::Slow(CALL)]);
    let (worker, stranger) = (engine(&stores[0], &provider).await, engine(&stores[1], &provider).await);
    let begun = Instant::now();
    let (first, twin) =
        tokio::join!(async { (answer(&charge(&worker, "k", 1250).await).1, begun.elapsed()) }, async {
            sleep(Duration::from_millis(7)).await;
            (answer(&charge(&stranger, "k", 1250).await).1, begun.elapsed())
        });
    assert_eq!(provider.effects(), 1);
    [first, twin]
}

#[tokio::test(start_paused = true)]
async fn a_twin_without_wake_ups_polls_often() {
    let store = charted().await;
    let [first, twin] = twins(&[store.another(), store.another()]).await;
    assert_eq!(first.0, twin.0);
    assert!(twin.1 > first.1 && twin.1 <= first.1 + Duration::from_millis(50), "{twin:?} {first:?}");
}

#[tokio::test(start_paused = true)]
async fn a_twin_whose_wake_ups_fail_polls_rarely() {
    let store = charted().await;
    let [silent, _] = store.waking();
    let before = silent.looks();
    let [first, twin] = twins(&[store.another(), silent.clone()]).await;
    assert_eq!(first.0, twin.0);
    assert!(twin.1 > first.1 && twin.1 <= first.1 + Duration::from_millis(250), "{twin:?} {first:?}");
    assert!(silent.looks() - before < 20, "{} looks in a second", silent.looks() - before);
}

#[tokio::test(start_paused = true)]
async fn a_twin_in_another_process_is_woken_by_the_answer() {
    let stores = charted().await.waking();
    let [first, twin] = twins(&stores).await;
    assert_eq!(first, twin, "same bytes, same moment");
    assert_eq!(stores[0].sleepers(), 0, "no request is left waiting");
}

#[tokio::test(start_paused = true)]
async fn the_store_wakes_only_requests_that_wait_for_another_process() {
    let stores = charted().await.waking();
    let provider = Provider::new(&[Script::Slow(CALL)]);
    let (worker, stranger) = (engine(&stores[0], &provider).await, engine(&stores[1], &provider).await);
    let ask = |engine: &TestEngine| {
        let engine = engine.clone();
        tokio::spawn(async move { answer(&charge(&engine, "k", 1250).await).1 })
    };
    let mut answers = vec![ask(&worker)];
    sleep(Duration::from_millis(100)).await;
    answers.push(ask(&worker));
    sleep(Duration::from_millis(100)).await;
    assert_eq!(stores[0].sleepers(), 0, "its own process tells that twin");
    answers.push(ask(&stranger));
    sleep(Duration::from_millis(100)).await;
    assert_eq!(stores[0].sleepers(), 1);
    let mut bodies = Vec::new();
    for answer in answers {
        bodies.push(answer.await.unwrap());
    }
    bodies.dedup();
    assert_eq!((bodies.len(), stores[0].sleepers()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_twin_keeps_waiting_after_a_needless_wake_up() {
    let stores = charted().await.waking();
    let provider = Provider::new(&[Script::Slow(CALL)]);
    let (worker, stranger) = (engine(&stores[0], &provider).await, engine(&stores[1], &provider).await);
    let (first, twin, ()) = tokio::join!(
        charge(&worker, "k", 1250),
        async {
            sleep(Duration::from_millis(7)).await;
            charge(&stranger, "k", 1250).await
        },
        // Every commit wakes the waiting requests.
        async {
            for number in 0..20 {
                sleep(Duration::from_millis(30)).await;
                charge(&worker, &format!("other {number}"), 1).await;
            }
        }
    );
    assert_eq!(answer(&first).1, answer(&twin).1);
    assert_eq!(provider.effects(), 21);
}

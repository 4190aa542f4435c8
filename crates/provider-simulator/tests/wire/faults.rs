//! Each fault by name: the client's view, the real effects, and the answer to a retry.

use std::pin::pin;

use counterfoil_provider_simulator::Faults;
use serde_json::json;

use crate::provider::{Lost, Provider, error};

fn none() -> Faults {
    Faults::default()
}

#[tokio::test]
async fn error_before_executes_nothing_and_leaves_the_key_free() {
    let provider = Provider::start();
    provider.faults(Faults { error_before: 1.0, ..none() });
    let got = provider.charge("k1").await.unwrap();
    assert_eq!(got.error(), error(500, "api_error", "", ""));
    assert_eq!(provider.truth(), []);
    provider.faults(none());
    let retry = provider.charge("k1").await.unwrap();
    assert_eq!((retry.status, retry.replayed), (200, false));
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn error_before_with_store_errors_replays_the_error() {
    let provider = Provider::start();
    provider.faults(Faults { error_before: 1.0, store_errors: true, ..none() });
    let got = provider.charge("k1").await.unwrap();
    provider.faults(none());
    let retry = provider.charge("k1").await.unwrap();
    assert_eq!((retry.status, retry.replayed), (500, true));
    assert_eq!(retry.text, got.text);
    assert_eq!(provider.truth(), []);
}

#[tokio::test]
async fn error_after_executes_and_a_retry_learns_the_truth() {
    let provider = Provider::start();
    provider.faults(Faults { error_after: 1.0, ..none() });
    assert_eq!(provider.charge("k1").await.unwrap().status, 500);
    assert_eq!(provider.truth(), [("charge", 1250)]);
    let retry = provider.charge("k1").await.unwrap();
    assert_eq!((retry.status, retry.replayed, &retry.json()["status"]), (200, true, &json!("succeeded")));
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn error_after_with_store_errors_hides_the_truth_from_retries_but_not_from_queries() {
    let provider = Provider::start();
    provider.faults(Faults { error_after: 1.0, store_errors: true, ..none() });
    assert_eq!(provider.charge("k1").await.unwrap().status, 500);
    let retry = provider.charge("k1").await.unwrap();
    assert_eq!((retry.status, retry.replayed), (500, true));
    assert_eq!(provider.search("pay_1").await["data"][0]["status"], json!("succeeded"));
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn errors_before_and_after_cannot_be_told_apart() {
    let provider = Provider::start();
    provider.faults(Faults { error_before: 1.0, ..none() });
    let before = provider.charge("k1").await.unwrap();
    provider.faults(Faults { error_after: 1.0, ..none() });
    let after = provider.charge("k2").await.unwrap();
    assert_eq!(before.text, after.text);
}

#[tokio::test]
async fn drop_before_cuts_and_executes_nothing() {
    let provider = Provider::start();
    provider.faults(Faults { drop_before: 1.0, ..none() });
    assert!(matches!(provider.charge("k1").await, Err(Lost)));
    assert_eq!(provider.truth(), []);
    provider.faults(none());
    assert!(!provider.charge("k1").await.unwrap().replayed);
}

#[tokio::test]
async fn drop_after_cuts_and_has_executed() {
    let provider = Provider::start();
    provider.faults(Faults { drop_after: 1.0, ..none() });
    assert!(matches!(provider.charge("k1").await, Err(Lost)));
    assert_eq!(provider.truth(), [("charge", 1250)]);
    let retry = provider.charge("k1").await.unwrap();
    assert_eq!((retry.status, retry.replayed), (200, true));
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn hang_after_executes_and_stays_silent_up_to_its_bound() {
    let provider = Provider::start();
    provider.faults(Faults { hang_after: 1.0, ..none() });
    let mut hung = pin!(provider.charge("k1"));
    tokio::select! {
        got = &mut hung => panic!("answered: {got:?}"),
        () = provider.clock.waits_begun(1) => {}
    }
    assert_eq!(provider.truth(), [("charge", 1250)]);
    assert!(provider.charge("k1").await.unwrap().replayed, "the hung request holds no claim");
    provider.clock.advance(600_000);
    assert!(matches!(hung.await, Err(Lost)));
}

#[tokio::test]
async fn a_hung_request_ends_when_its_client_goes_away() {
    let provider = Provider::start();
    provider.faults(Faults { hang_after: 1.0, ..none() });
    {
        let mut hung = pin!(provider.charge("k1"));
        tokio::select! {
            got = &mut hung => panic!("answered: {got:?}"),
            () = provider.clock.waits_begun(1) => {}
        }
        assert_eq!(provider.clock.waiting(), 1);
    }
    for _ in 0..10_000 {
        if provider.clock.waiting() == 0 {
            return;
        }
        provider.get("/_sim/faults").await;
    }
    panic!("the provider still holds the connection open");
}

#[tokio::test]
async fn duplicate_executes_twice_and_says_nothing() {
    let provider = Provider::start();
    let id = provider.authorize("k0").await;
    provider.faults(Faults { duplicate: 1.0, ..none() });
    assert_eq!(provider.charge("k1").await.unwrap().status, 200);
    assert_eq!(
        provider.post(&format!("/v1/payment_intents/{id}/capture"), "k2", "").await.unwrap().status,
        200
    );
    assert_eq!(
        provider.truth(),
        [("authorize", 1250), ("charge", 1250), ("charge", 1250), ("capture", 1250), ("capture", 1250)]
    );
    let effects = provider.running.effects();
    assert_ne!(effects[1].object, effects[2].object);
    assert_eq!(effects[1].key, effects[2].key);
    assert_eq!(provider.search("pay_1").await["data"].as_array().unwrap().len(), 3);
    provider.faults(none());
    let refund = format!("payment_intent={id}");
    assert_eq!(provider.post("/v1/refunds", "k3", &refund).await.unwrap().json()["amount"], json!(1250));
}

#[tokio::test]
async fn latency_delays_the_answer_and_the_effect() {
    let provider = Provider::start();
    provider.faults(Faults { latency_ms: 250, ..none() });
    let mut slow = pin!(provider.charge("k1"));
    tokio::select! {
        got = &mut slow => panic!("answered at once: {got:?}"),
        () = provider.clock.waits_begun(1) => {}
    }
    assert_eq!(provider.truth(), []);
    provider.clock.advance(250);
    assert_eq!(slow.await.unwrap().status, 200);
    assert_eq!(provider.truth(), [("charge", 1250)]);
}

#[tokio::test]
async fn a_client_that_gives_up_does_not_undo_its_request() {
    let provider = Provider::start();
    provider.faults(Faults { latency_ms: 250, ..none() });
    {
        let mut slow = pin!(provider.charge("k1"));
        tokio::select! {
            got = &mut slow => panic!("answered at once: {got:?}"),
            () = provider.clock.waits_begun(1) => {}
        }
    }
    provider.faults(none());
    provider.clock.advance(250);
    for _ in 0..10_000 {
        let retry = provider.charge("k1").await.unwrap();
        if retry.status != 409 {
            assert!(retry.replayed, "the request given up was not executed");
            assert_eq!(provider.truth(), [("charge", 1250)]);
            return;
        }
    }
    panic!("the key is still in use");
}

#[tokio::test]
async fn the_seed_decides_which_requests_are_met() {
    let provider = Provider::start();
    let mut stories = Vec::new();
    for (round, seed) in [1, 1, 2].into_iter().enumerate() {
        provider.faults(Faults { error_before: 0.5, seed: Some(seed), ..none() });
        let mut story = Vec::new();
        for request in 0..40 {
            story.push(provider.charge(&format!("k{round}_{request}")).await.unwrap().status);
        }
        assert!(story.contains(&200) && story.contains(&500), "{story:?}");
        stories.push(story);
    }
    assert_eq!(stories[0], stories[1]);
    assert_ne!(stories[0], stories[2]);
}

#[tokio::test]
async fn an_error_that_is_forgotten_is_executed_again_by_its_retry() {
    let provider = Provider::start();
    provider.faults(Faults { error_after: 1.0, forget_errors: true, ..none() });
    assert_eq!(provider.charge("k1").await.unwrap().status, 500);
    provider.faults(Faults { forget_errors: true, ..none() });
    let retry = provider.charge("k1").await.unwrap();
    assert_eq!((retry.status, retry.replayed), (200, false));
    assert_eq!(provider.truth(), [("charge", 1250), ("charge", 1250)]);
    assert!(provider.charge("k1").await.unwrap().replayed, "a success is remembered");
}

#[tokio::test]
async fn a_wrong_amount_is_told_once_and_never_executed() {
    let provider = Provider::start();
    provider.faults(Faults { wrong_amount: 1.0, ..none() });
    let got = provider.charge("k1").await.unwrap().json();
    assert_eq!((&got["amount"], &got["amount_received"]), (&json!(1251), &json!(1251)));
    assert_eq!(provider.truth(), [("charge", 1250)]);
    assert_eq!(provider.charge("k1").await.unwrap().json()["amount"], 1250);
    assert_eq!(provider.search("pay_1").await["data"][0]["amount"], 1250);
}

#[tokio::test]
async fn another_replay_says_that_nothing_is_finished() {
    let provider = Provider::start();
    provider.faults(Faults { other_replay: 1.0, ..none() });
    assert_eq!(provider.charge("k1").await.unwrap().json()["status"], "succeeded");
    let retry = provider.charge("k1").await.unwrap();
    assert_eq!((retry.status, retry.replayed, &retry.json()["status"]), (200, true, &json!("processing")));
    let refund = format!("payment_intent={}", retry.id());
    assert_eq!(provider.post("/v1/refunds", "k2", &refund).await.unwrap().json()["status"], "succeeded");
    assert_eq!(provider.post("/v1/refunds", "k2", &refund).await.unwrap().json()["status"], "pending");
    assert_eq!(provider.truth(), [("charge", 1250), ("refund", 1250)]);
}

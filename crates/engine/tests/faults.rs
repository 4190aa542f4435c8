//! A charge while the provider, the store or the process fails.

mod support;

use counterfoil_core::idempotency::claim::ClaimState;
use counterfoil_core::payments::provider::{Cause, LookupResult, ProviderOutcome};
use counterfoil_core::types::time::Span;
use counterfoil_engine::service::Submitted;
use counterfoil_store::memory::MemoryFault;
use counterfoil_store::{Scan, Store};
use std::time::Duration;
use support::*;

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_pending_and_resolved_under_the_same_key() {
    for cause in [Cause::Timeout, Cause::Cut, Cause::ServerError, Cause::InProgress, Cause::Unreadable] {
        let (store, provider) =
            (SharedStore::new(), Provider::new(&[Script::Answer(ProviderOutcome::Unknown(cause))]));
        let engine = engine(&store, &provider).await;
        assert!(matches!(charge(&engine, "k", 1250).await, Submitted::Pending { .. }), "{cause:?}");
        let (status, _, replayed) = answer(&charge(&engine, "k", 1250).await);
        assert_eq!((status, replayed), (201, true), "{cause:?}");
        let keys = provider.keys();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys.first(), keys.last());
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_charge_that_may_have_executed_never_fails_by_counting() {
    let script = vec![Script::Answer(UNKNOWN); 40];
    let (store, provider) = (SharedStore::new(), Provider::new(&script));
    let engine = engine(&store, &provider).await;
    assert!(matches!(charge(&engine, "k", 1250).await, Submitted::Pending { .. }));
    seconds(300).await;
    assert!(provider.keys().len() > 5, "attempts_max is 3 and does not apply");
    assert!(matches!(claim(&store, "k").await.state, ClaimState::Uncertain(_)));
    seconds(3_600).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_charge_that_certainly_did_not_execute_fails_after_its_attempts() {
    for outcome in [ProviderOutcome::NotSent, ProviderOutcome::Busy { retry_after: None }] {
        let (store, provider) = (SharedStore::new(), Provider::new(&vec![Script::Answer(outcome); 3]));
        let engine = engine(&store, &provider).await;
        assert!(matches!(charge(&engine, "k", 1250).await, Submitted::Pending { .. }));
        seconds(60).await;
        let (status, body, _) = answer(&charge(&engine, "k", 1250).await);
        assert!(status == 402 && body.contains("gateway_unavailable"), "{body}");
        assert_eq!((provider.keys().len(), provider.effects()), (3, 0));
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_another_amount_is_parked() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::ApproveAmount(1)]));
    let engine = engine(&store, &provider).await;
    assert!(matches!(charge(&engine, "k", 1250).await, Submitted::Pending { .. }));
    seconds(3_600).await;
    assert!(matches!(charge(&engine, "k", 1250).await, Submitted::Pending { .. }));
    assert_eq!(provider.keys().len(), 1, "a parked payment is left to a human");
    assert_eq!(store.tally(store.now()).await.unwrap().parked, 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_means_no_call_at_all() {
    let (store, provider) = (SharedStore::new(), Provider::default());
    let engine = engine(&store, &provider).await;
    store.0.set_down(true);
    assert_eq!(charge(&engine, "k", 1250).await, Submitted::StoreUnavailable);
    seconds(60).await;
    assert_eq!(provider.keys().len(), 0);
    store.0.set_down(false);
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_stored_answer_is_given_although_nothing_can_be_committed() {
    let (store, provider) = (charted().await, Provider::default());
    let first = answer(&charge(&engine(&store, &provider).await, "k", 1250).await);
    // A process without cached answers.
    let engine = engine(&store, &provider).await;
    store.0.fail_next(&[MemoryFault::Throttle; 1_000]);
    let (status, body, replayed) = answer(&charge(&engine, "k", 1250).await);
    assert_eq!((status, &body, replayed), (201, &first.1, true));
    assert_eq!(charge(&engine, "k", 1300).await, Submitted::Mismatch);
    assert_eq!(charge(&engine, "another", 1250).await, Submitted::StoreUnavailable);
    assert_eq!(provider.keys().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_commit_in_doubt_is_resolved_by_its_own_id() {
    // The claim's commit, then the answer's. Each is lost before or after the write.
    for faults in [
        vec![MemoryFault::DoubtAfter],
        vec![MemoryFault::DoubtBefore],
        vec![MemoryFault::Pass, MemoryFault::DoubtAfter],
        vec![MemoryFault::Pass, MemoryFault::DoubtBefore],
        vec![MemoryFault::Conflict, MemoryFault::Pass, MemoryFault::Conflict],
        vec![MemoryFault::Throttle, MemoryFault::Pass, MemoryFault::Throttle, MemoryFault::DoubtBefore],
    ] {
        let (store, provider) = (charted().await, Provider::default());
        let engine = engine(&store, &provider).await;
        store.0.fail_next(&faults);
        let first = answer(&charge(&engine, "k", 1250).await);
        let second = answer(&charge(&engine, "k", 1250).await);
        assert_eq!((first.0, &first.1), (201, &second.1), "{faults:?}");
        assert_eq!(provider.keys().len(), 1, "{faults:?}");
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_stored_yet_is_pending_and_not_lost() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Slow(Duration::from_secs(1))]));
    let engine = engine(&store, &provider).await;
    let (first, ()) = tokio::join!(charge(&engine, "k", 1250), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        store.0.set_down(true);
        seconds(5).await;
        store.0.set_down(false);
    });
    assert!(
        matches!(first, Submitted::Pending { .. }),
        "reported at once, not when the store is back: {first:?}"
    );
    seconds(5).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
    assert_eq!(provider.effects(), 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_its_attempt_and_neither_the_request_nor_the_payment() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Panic]));
    let engine = engine(&store, &provider).await;
    assert_eq!(charge(&engine, "k", 1250).await, Submitted::InUse, "its lease still runs");
    seconds(60).await;
    let (status, _, replayed) = answer(&charge(&engine, "k", 1250).await);
    assert_eq!((status, replayed, provider.effects(), provider.keys().len()), (201, true, 1, 2));
    assert_eq!(engine.drain(Span::from_ms(1_000)).await, 0, "nothing counts as under way");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn another_process_finishes_the_work_of_a_dead_one() {
    let store = SharedStore::new();
    let provider = Provider::new(&[Script::Hang]);
    // The first engine hangs in the call and never renews, as if its process were stopped.
    let first = engine_with(&store, &provider, never_renewing()).await;
    let client = tokio::spawn({
        let first = first.clone();
        async move { charge(&first, "k", 1250).await }
    });
    seconds(1).await;
    assert_eq!(claim(&store, "k").await.fence, 1);
    let second = engine(&store, &provider).await;
    seconds(36).await;
    assert_eq!(answer(&charge(&second, "k", 1250).await).0, 201);
    let claim = claim(&store, "k").await;
    assert_eq!((claim.fence, claim.attempts), (2, 2));
    let keys = provider.keys();
    assert_eq!((keys.len(), keys.first()), (2, keys.last()));
    client.abort();
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_late_writer_changes_nothing() {
    let store = SharedStore::new();
    // The first attempt answers after the lease was taken over and settled by a decline.
    let provider = Provider::new(&[Script::Slow(Duration::from_secs(50)), Script::Decline]);
    let first = engine_with(&store, &provider, never_renewing()).await;
    let late = tokio::spawn({
        let first = first.clone();
        async move { charge(&first, "k", 1250).await }
    });
    seconds(1).await;
    let second = engine(&store, &provider).await;
    seconds(38).await;
    let settled = answer(&charge(&second, "k", 1250).await);
    assert_eq!(settled.0, 402);
    seconds(20).await;
    assert_eq!(answer(&charge(&second, "k", 1250).await).1, settled.1);
    assert_eq!(
        answer(&late.await.unwrap()).1,
        settled.1,
        "the late one tells what is committed, not what it saw"
    );
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn heartbeats_keep_a_long_call_from_being_taken_over() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Slow(Duration::from_secs(100))]));
    let first = engine(&store, &provider).await;
    let _second = engine(&store, &provider).await;
    assert_eq!(answer(&charge(&first, "k", 1250).await).0, 201);
    assert_eq!((claim(&store, "k").await.fence, provider.keys().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn stored_errors_are_resolved_by_asking() {
    let script = vec![Script::Answer(ProviderOutcome::Unknown(Cause::ServerError)); 30];
    let (store, provider) = (SharedStore::new(), Provider::new(&script));
    let engine = engine(&store, &provider).await;
    let reference = pending(&engine, "k").await;
    let provider = provider
        .finds(&[LookupResult::Unclear(Cause::Timeout), LookupResult::Payment(approval(1250, &reference))]);
    seconds(600).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
    assert_eq!(provider.lookups(), 2);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn answers_without_content_are_resolved_by_asking() {
    let script = vec![Script::Answer(ProviderOutcome::Unknown(Cause::Unreadable)); 30];
    let (store, provider) = (SharedStore::new(), Provider::new(&script));
    let engine = engine(&store, &provider).await;
    let reference = pending(&engine, "k").await;
    let provider = provider.finds(&[LookupResult::Payment(approval(1250, &reference))]);
    seconds(600).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
    assert_eq!(provider.lookups(), 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn without_deduplication_a_call_is_looked_up_after_quiescence_and_then_repeated() {
    let provider = Provider::new(&[Script::Answer(UNKNOWN)]).profile("braintree-classic");
    let store = SharedStore::new();
    let engine = engine(&store, &provider).await;
    charge(&engine, "k", 1250).await;
    seconds(170).await;
    assert_eq!(
        (provider.lookups(), provider.keys().len()),
        (0, 1),
        "not before late delivery and query lag are over"
    );
    seconds(120).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
    let keys = provider.keys();
    assert_eq!((provider.lookups(), keys.len()), (1, 2));
    assert_ne!(keys.first(), keys.last(), "a fresh key after proof that the first had no effect");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_delays_calls_without_counting_them() {
    let mut policy = policy();
    policy.breaker.failures = 1;
    policy.breaker.open = counterfoil_core::types::time::Span::from_ms(60_000);
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Answer(ProviderOutcome::NotSent)]));
    let engine = engine_with(&store, &provider, policy).await;
    assert!(matches!(charge(&engine, "a", 1250).await, Submitted::Pending { .. }));
    assert!(matches!(charge(&engine, "b", 1250).await, Submitted::Pending { .. }));
    seconds(50).await;
    assert_eq!(provider.keys().len(), 1, "one call opened it, none follow");
    seconds(120).await;
    for key in ["a", "b"] {
        assert_eq!(answer(&charge(&engine, key, 1250).await).0, 201);
    }
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn every_step_is_in_the_timeline() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Answer(UNKNOWN)]));
    let engine = engine(&store, &provider).await;
    charge(&engine, "k", 1250).await;
    charge(&engine, "k", 1250).await;
    let subject = claim(&store, "k").await.subject;
    let rows = store.scan(Scan::Timeline { tenant: TENANT, subject, after: None, limit: 100 }).await.unwrap();
    let kinds: Vec<&str> = rows
        .iter()
        .map(|row| match row {
            counterfoil_store::Row::Audit(record) => record.kind.name(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        ["claimed", "provider_answered", "pending", "taken_over", "provider_answered", "settled"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_twin_of_a_parked_payment_is_asked_to_retry_in_a_minute() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::ApproveAmount(1)]));
    let engine = engine(&store, &provider).await;
    charge(&engine, "k", 1250).await;
    let Submitted::Pending { retry_after, .. } = charge(&engine, "k", 1250).await else {
        panic!("not pending")
    };
    assert_eq!(retry_after.ms(), 60_000);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_executes_again_after_errors_is_asked_and_not_called() {
    let provider = Provider::new(&[Script::Answer(UNKNOWN)]).profile("checkout");
    let store = SharedStore::new();
    let engine = engine(&store, &provider).await;
    charge(&engine, "k", 1250).await;
    seconds(170).await;
    assert_eq!((provider.keys().len(), provider.lookups()), (1, 0), "not even a timeout is repeated blindly");
    seconds(120).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
    assert_eq!(provider.lookups(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_known_outcome_survives_a_long_outage_of_the_store() {
    let (store, provider) = (SharedStore::new(), Provider::new(&[Script::Slow(Duration::from_secs(1))]));
    let engine = engine(&store, &provider).await;
    tokio::join!(charge(&engine, "k", 1250), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        store.0.set_down(true);
        // Longer than the lease of the worker slot.
        seconds(90).await;
        store.0.set_down(false);
    });
    seconds(5).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
    // The kept outcome or recovery under the same key may come first: there is one effect.
    assert_eq!(provider.effects(), 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_in_doubt_is_pending_not_refused() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    store.0.fail_next(&[MemoryFault::DoubtAfter]);
    store.0.hide_sets(true);
    let submitted = charge(&engine, "k", 1250).await;
    assert!(matches!(submitted, Submitted::Pending { .. }), "{submitted:?}");
    assert_eq!(provider.keys().len(), 0);
    store.0.hide_sets(false);
    seconds(40).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
    assert_eq!(provider.effects(), 1);
}

/// A commit in doubt of a retry must not hide the key's answer.
#[tokio::test(start_paused = true)]
async fn a_doubtful_claim_on_a_key_with_an_answer_gets_that_answer() {
    let (store, provider) = (charted().await, Provider::default());
    let first = engine(&store, &provider).await;
    let submitted = charge(&first, "k", 1250).await;
    // Another process, without the cached answer.
    let second = engine(&store, &provider).await;
    store.0.hide_sets(true);
    store.0.fail_next(&[MemoryFault::DoubtBefore]);
    assert_eq!(answer(&charge(&second, "k", 1250).await).1, answer(&submitted).1);
    store.0.fail_next(&[MemoryFault::DoubtBefore]);
    assert_eq!(charge(&second, "k", 9999).await, Submitted::Mismatch);
    assert_eq!(provider.effects(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_the_backlog_is_recovered_no_faster_than_the_provider_answers() {
    const CHARGES: usize = 300;
    let provider = Provider::new(&vec![Script::Answer(UNKNOWN); CHARGES]);
    let store = charted().await;
    let engine = engine(&store, &provider).await;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..CHARGES {
        let engine = engine.clone();
        asking.spawn(async move { pending(&engine, &format!("k{number}")).await });
    }
    while let Some(charged) = asking.join_next().await {
        charged.unwrap();
    }
    // The provider is back, with slow answers.
    provider.play(&vec![Script::Slow(Duration::from_millis(200)); CHARGES]);
    let before = provider.alongside().len();
    seconds(120).await;
    for number in 0..CHARGES {
        assert_eq!(answer(&charge(&engine, &format!("k{number}"), 1250).await).0, 201);
    }
    assert_eq!(provider.effects(), CHARGES);
    let recovered = provider.alongside().split_off(before);
    assert_eq!(recovered.len(), CHARGES, "each was called once more");
    for (turn, alongside) in recovered.iter().enumerate() {
        // One call at first, and one more for each possible answer.
        assert!(*alongside <= turn + 1 && *alongside <= 256, "call {turn} ran with {alongside}");
    }
    let first: Vec<usize> = recovered.into_iter().take(3).collect();
    assert_eq!(first, [1, 1, 2], "it begins with one");
}

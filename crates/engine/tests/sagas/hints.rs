//! Hints: a lookup happens sooner, under its usual rules. No hint moves money, ends a lease,
//! shortens a proof or uses up an attempt.

use crate::support::*;
use crate::words::*;
use counterfoil_core::outbox::{Outbox, Payment};
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::provider::{Cause, LookupResult, ProviderOutcome, ProviderStep};
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::types::id::{ChargeId, PayoutId};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_engine::policy::EnginePolicy;
use counterfoil_engine::service::{Service, Submitted};
use counterfoil_store::memory::MemoryFault;
use counterfoil_store::{Row, Scan, Store};
use std::time::Duration;

/// Waits longer than any test, except once in a hundred thousand times.
fn slow_to_ask_again() -> EnginePolicy {
    let years = Span::from_ms(10 * 365 * 86_400_000);
    EnginePolicy { backoff: Backoff { base: years, cap: years }, ..policy() }
}

async fn staged(provider: &Provider) -> (SharedStore, TestEngine) {
    let store = charted().await;
    let engine = engine_with(&store, provider, slow_to_ask_again()).await;
    (store, engine)
}

async fn work(store: &SharedStore) -> Vec<Outbox> {
    let rows = store.scan(Scan::Outbox { after: None, limit: 100 }).await.unwrap();
    rows.into_iter()
        .map(|row| if let Row::Outbox(outbox) = row { outbox } else { panic!("{row:?}") })
        .collect()
}

async fn only(store: &SharedStore) -> Outbox {
    let mut all = work(store).await;
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// A charge with an unknown outcome, whose next lookup is due in years.
async fn doubtful(engine: &TestEngine, store: &SharedStore) -> Payment {
    pending(engine, "k").await;
    let outbox = only(store).await;
    assert!(outbox.due_at > store.now().plus(Span::from_ms(3_600_000)), "{outbox:?}");
    outbox.payment
}

#[tokio::test(start_paused = true)]
async fn a_hint_without_waiting_work_changes_nothing() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider).await;
    let done = charged(&engine, &store, "done", 1_000).await;
    let strangers = [Payment::Charge(ChargeId::from_i64(77)), Payment::Payout(PayoutId::from_i64(77))];
    for payment in strangers.into_iter().chain([Payment::Charge(done)]) {
        assert_eq!(engine.hint(payment).await, Ok(0), "{payment:?}");
    }
    assert_eq!(provider.keys().len(), 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_fails_while_the_store_is_down() {
    let provider = Provider::new(&[Script::Executed(UNKNOWN)]);
    let (store, engine) = staged(&provider).await;
    let payment = doubtful(&engine, &store).await;
    store.0.set_down(true);
    assert!(engine.hint(payment).await.is_err());
    store.0.set_down(false);
    assert_eq!(engine.hint(payment).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn running_work_is_not_disturbed_by_a_hint() {
    let provider = Provider::new(&[Script::Slow(Duration::from_secs(20))]);
    let (store, engine) = staged(&provider).await;
    let (answered, ()) = tokio::join!(charge(&engine, "k", 1250), async {
        seconds(1).await;
        let before = only(&store).await;
        assert_eq!(engine.hint(before.payment).await, Ok(0));
        assert_eq!(only(&store).await, before, "its next write expects the row as it knows it");
    });
    assert_eq!(answer(&answered).0, 201, "and is not refused as one that came late");
    assert_eq!((claim(&store, "k").await.fence, provider.keys().len()), (1, 1));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_forgets_keys_is_asked_only_after_quiescence() {
    let provider = Provider::new(&[Script::Answer(UNKNOWN)]).profile("braintree-classic");
    let store = charted().await;
    let engine = engine(&store, &provider).await;
    pending(&engine, "k").await;
    // The first wait is random; the next one is for quiescence.
    seconds(2).await;
    let before = only(&store).await;
    let quiet_at = before.history.last_sent_at.plus(Span::from_ms(180_000));
    assert!(before.due_at > quiet_at, "{before:?}");
    while store.now() < quiet_at {
        assert_eq!(engine.hint(before.payment).await, Ok(0));
        assert_eq!((only(&store).await, provider.keys().len(), provider.lookups()), (before.clone(), 1, 0));
        seconds(1).await;
    }
    seconds(60).await;
    assert_eq!(provider.lookups(), 1);
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
    assert_eq!(provider.effects(), 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn hints_do_not_use_up_the_attempts_of_a_charge_that_did_not_execute() {
    let busy = ProviderOutcome::Busy { retry_after: None };
    let provider = Provider::new(&vec![Script::Answer(busy); 3]);
    let (store, engine) = staged(&provider).await;
    let payment = match charge(&engine, "k", 1250).await {
        Submitted::Pending { payment, .. } => payment,
        other => panic!("{other:?}"),
    };
    for _ in 0..10 {
        assert_eq!(engine.hint(payment).await, Ok(0));
        seconds(1).await;
    }
    assert_eq!((provider.keys().len(), claim(&store, "k").await.attempts), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn parked_work_waits_for_an_operator_despite_hints() {
    let provider = Provider::new(&[Script::ApproveAmount(1)]);
    let (store, engine) = staged(&provider).await;
    pending(&engine, "k").await;
    let parked = only(&store).await;
    assert_eq!((parked.due_at, engine.hint(parked.payment).await), (Time::MAX, Ok(0)));
    assert_eq!(only(&store).await, parked);
}

#[tokio::test(start_paused = true)]
async fn the_providers_hints_do_not_move_work_that_is_bound_to_a_peer() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider).await;
    charged(&engine, &store, "funds", 1_000).await;
    provider.play(&[Script::Answer(UNKNOWN)]);
    assert!(matches!(engine.pay_out(paying_peer("k", 400)).await, Submitted::Pending { .. }));
    assert_eq!(engine.hint(only(&store).await.payment).await, Ok(0));
}

#[tokio::test(start_paused = true)]
async fn a_doubtful_charge_is_looked_up_at_once_and_settled_by_the_answer() {
    let provider = Provider::new(&[Script::Executed(UNKNOWN)]);
    let (store, engine) = staged(&provider).await;
    let payment = doubtful(&engine, &store).await;
    seconds(3_000).await;
    assert_eq!(provider.keys().len(), 1);
    assert_eq!(engine.hint(payment).await, Ok(1));
    seconds(1).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201);
    assert_eq!((provider.keys().len(), provider.effects()), (2, 1));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_false_hint_leads_to_the_true_outcome() {
    // The provider has executed nothing.
    let provider = Provider::new(&[Script::Answer(UNKNOWN), Script::Decline]);
    let (store, engine) = staged(&provider).await;
    let payment = doubtful(&engine, &store).await;
    assert_eq!(engine.hint(payment).await, Ok(1));
    seconds(1).await;
    assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 402);
    assert_eq!(provider.effects(), 0);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_concurrent_hints_cause_one_lookup() {
    let provider = Provider::new(&[Script::Executed(UNKNOWN)]);
    let (store, engine) = staged(&provider).await;
    let payment = doubtful(&engine, &store).await;
    let mut hints = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let engine = engine.clone();
        hints.spawn(async move { engine.hint(payment).await });
    }
    let moved: usize = hints.join_all().await.into_iter().map(|moved| moved.unwrap()).sum();
    assert_eq!(moved, 1, "the others found it due, or moved");
    seconds(1).await;
    assert_eq!(engine.hint(payment).await, Ok(0), "and one that comes too late finds nothing");
    assert_eq!((provider.keys().len(), provider.effects()), (2, 1));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_hint_whose_commit_is_in_doubt_is_taken_or_requested_again() {
    for fault in
        [MemoryFault::DoubtAfter, MemoryFault::DoubtBefore, MemoryFault::Conflict, MemoryFault::Throttle]
    {
        let provider = Provider::new(&[Script::Executed(UNKNOWN)]);
        let (store, engine) = staged(&provider).await;
        let payment = doubtful(&engine, &store).await;
        store.0.fail_next(&[fault]);
        assert_eq!(engine.hint(payment).await, Ok(1), "{fault:?}");
        seconds(1).await;
        assert_eq!(answer(&charge(&engine, "k", 1250).await).0, 201, "{fault:?}");
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn hints_also_cause_lookups_of_operations_and_payouts() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider).await;
    let taken = charged(&engine, &store, "taken", 1_000).await;
    let hold = held(&engine, &store, "hold", 1_000).await;
    for (key, charge, kind) in
        [("refund", taken, OperationKind::Refund), ("capture", hold, OperationKind::Capture)]
    {
        provider.play(&[Script::Executed(UNKNOWN)]);
        let first = operate(&engine, key, charge, kind, Some(400)).await;
        assert!(matches!(first, Submitted::Pending { .. }), "{first:?}");
        assert_eq!(engine.hint(Payment::Charge(charge)).await, Ok(1), "{key}");
        seconds(1).await;
        assert!([200, 201].contains(&done(&engine, key, charge, kind, Some(400)).await.0), "{key}");
    }
    provider.play(&[Script::Executed(UNKNOWN)]);
    let payout = match engine.pay_out(paying_out("payout", 300)).await {
        Submitted::Pending { payment, .. } => payment,
        other => panic!("{other:?}"),
    };
    assert_eq!(engine.hint(payout).await, Ok(1));
    seconds(1).await;
    assert_eq!(answer(&engine.pay_out(paying_out("payout", 300)).await).0, 201);
    let asked = |step| provider.steps().into_iter().filter(|one| *one == step).count();
    assert_eq!([ProviderStep::Refund, ProviderStep::Capture, ProviderStep::Payout].map(asked), [2, 2, 2]);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn hints_do_not_park_a_refund_that_gets_errors() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider).await;
    let taken = charged(&engine, &store, "taken", 1_000).await;
    provider.play(&vec![Script::Answer(ProviderOutcome::Unknown(Cause::ServerError)); 50]);
    operate(&engine, "refund", taken, OperationKind::Refund, None).await;
    for _ in 0..40 {
        engine.hint(Payment::Charge(taken)).await.unwrap();
        seconds(1).await;
    }
    let outbox = only(&store).await;
    assert_eq!((outbox.history.server_errors, outbox.parked), (2, None));
}

#[tokio::test(start_paused = true)]
async fn a_provider_with_lookups_is_asked_and_not_called_after_errors() {
    let provider = Provider::new(&vec![Script::Answer(ProviderOutcome::Unknown(Cause::ServerError)); 50]);
    let (store, engine) = staged(&provider).await;
    let payment = doubtful(&engine, &store).await;
    let reference = payment.reference(engine.references()).to_string();
    let provider = provider
        .finds(&[LookupResult::Unclear(Cause::Timeout), LookupResult::Payment(approval(1250, &reference))]);
    let mut hints = 0;
    while claim(&store, "k").await.state.settled().is_none() {
        engine.hint(payment).await.unwrap();
        seconds(1).await;
        hints += 1;
        assert!(hints < 20);
    }
    assert_eq!(provider.lookups(), 2);
    verified(&store).await;
}

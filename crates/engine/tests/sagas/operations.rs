//! Operations on charges: captures, voids, refunds and split tender.

use crate::support::ledger::*;
use crate::support::*;
use crate::words::*;
use counterfoil_core::outbox::Payment;
use counterfoil_core::payments::charge::ChargeStatus;
use counterfoil_core::payments::operation::{OperationKind, OperationStatus};
use counterfoil_core::payments::provider::{
    LookupResult, ProviderFault, ProviderOutcome, ProviderStep, Rejection,
};
use counterfoil_core::types::id::{ChargeId, TenantId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_engine::service::{Service, Submitted};
use counterfoil_store::{RowKey, Store, memory};
use std::time::Duration;

const KINDS: [OperationKind; 3] = [OperationKind::Capture, OperationKind::Void, OperationKind::Refund];

fn rejected() -> Script {
    Script::Answer(ProviderOutcome::Rejected(Rejection {
        fault: ProviderFault::Request,
        code: "too_late".into(),
    }))
}

#[tokio::test(start_paused = true)]
async fn a_missing_charge_or_one_of_another_tenant_is_not_found_and_the_key_stays_free() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    let theirs = {
        let mut command = holding("theirs", 100);
        command.request = request_of(TenantId::from_i64(2), "theirs", b"");
        let claim = RowKey::Claim(command.request.tenant, command.request.claim);
        engine.submit(command).await;
        match store.read(vec![claim]).await.unwrap().remove(0) {
            Some(counterfoil_store::Row::Claim(claim)) => ChargeId::from(claim.subject),
            other => panic!("{other:?}"),
        }
    };
    for kind in KINDS {
        for charge in [ChargeId::from_i64(77), theirs] {
            let command = asked("k", charge, kind, None);
            assert_eq!(engine.operate(command).await, Submitted::NotFound);
            assert_eq!(store.read(vec![RowKey::Claim(TENANT, command.request.claim)]).await.unwrap(), [None]);
        }
    }
    assert_eq!(provider.keys().len(), 1, "only their hold was sent");
}

#[tokio::test(start_paused = true)]
async fn an_impossible_move_is_refused_for_good_and_the_refusal_is_replayed() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    let taken = charged(&engine, &store, "taken", 1_000).await;
    let hold = held(&engine, &store, "hold", 1_000).await;
    let voided = held(&engine, &store, "voided", 1_000).await;
    assert_eq!(done(&engine, "void", voided, OperationKind::Void, None).await.0, 200);
    let calls = provider.keys().len();
    let impossible = [
        (taken, OperationKind::Capture, None),
        (taken, OperationKind::Void, None),
        (taken, OperationKind::Refund, Some(1_001)),
        (hold, OperationKind::Refund, None),
        (hold, OperationKind::Capture, Some(1_001)),
        (voided, OperationKind::Capture, None),
        (voided, OperationKind::Void, None),
        (voided, OperationKind::Refund, None),
    ];
    for (turn, (charge, kind, amount)) in impossible.into_iter().enumerate() {
        let key = format!("k{turn}");
        let before = stored(&store, charge).await;
        let first = operate(&engine, &key, charge, kind, amount).await;
        let (status, body, replayed) = answer(&first);
        assert_eq!((status, replayed), (409, false), "{kind:?}: {body}");
        assert!(body.contains(before.status.name()), "{body}");
        let (_, again, replayed) = answer(&operate(&engine, &key, charge, kind, amount).await);
        assert_eq!((again, replayed), (body, true));
        assert_eq!(stored(&store, charge).await, before, "{kind:?} changed it");
    }
    assert_eq!(provider.keys().len(), calls, "nothing was sent");
    verified(&store).await;
}

/// Only the key prevents the second execution: the charge would allow another refund.
#[tokio::test(start_paused = true)]
async fn a_retry_of_an_answered_operation_gets_its_answer_or_store_unavailable_but_never_pending() {
    let (store, provider) = (charted().await, Provider::default());
    let first = engine(&store, &provider).await;
    let hold = held(&first, &store, "hold", 1_000).await;
    let early = done(&first, "early", hold, OperationKind::Refund, Some(100)).await;
    assert_eq!(done(&first, "capture", hold, OperationKind::Capture, None).await.0, 200);
    let refund = done(&first, "refund", hold, OperationKind::Refund, Some(100)).await;
    assert_eq!((early.0, refund.0), (409, 201));
    // A process without cached answers: its commits are in doubt, and then the store cannot be
    // read.
    let second = engine(&store, &provider).await;
    store.0.hide_sets(true);
    store.0.fail_next(&[memory::MemoryFault::DoubtBefore; 2]);
    for (key, expected) in [("early", early), ("refund", refund)] {
        let (again, away) =
            tokio::join!(operate(&second, key, hold, OperationKind::Refund, Some(100)), async {
                store.0.set_down(true);
                operate(&second, key, hold, OperationKind::Refund, Some(100)).await
            });
        assert_eq!(answer(&again), (expected.0, expected.1, true), "{key}");
        assert_eq!(away, Submitted::StoreUnavailable, "{key}");
        store.0.set_down(false);
    }
    assert_eq!(
        (provider.keys().len(), work_left(&store).await),
        (3, 0),
        "the hold, the capture and one refund"
    );
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_second_operation_on_a_charge_is_asked_to_retry_while_the_first_runs() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    let hold = held(&engine, &store, "hold", 1_000).await;
    provider.play(&[Script::Slow(Duration::from_secs(2))]);
    let capture = {
        let engine = engine.clone();
        tokio::spawn(async move { done(&engine, "capture", hold, OperationKind::Capture, None).await })
    };
    seconds(1).await;
    for kind in [OperationKind::Void, OperationKind::Capture] {
        let command = asked("other", hold, kind, None);
        assert_eq!(engine.operate(command).await, Submitted::InProgress);
        assert_eq!(store.read(vec![RowKey::Claim(TENANT, command.request.claim)]).await.unwrap(), [None]);
    }
    assert_eq!(capture.await.unwrap().0, 200);
    assert_eq!(done(&engine, "other", hold, OperationKind::Void, None).await.0, 409, "the key was free");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_captured_in_part_and_then_refunded() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    let hold = held(&engine, &store, "hold", 1_000).await;
    assert_eq!(posted(&engine, "chart:payable:USD").await, 0, "a hold is no money yet");
    assert_eq!(done(&engine, "capture", hold, OperationKind::Capture, Some(600)).await.0, 200);
    let charge = stored(&store, hold).await;
    assert_eq!((charge.status, charge.sums.captured), (ChargeStatus::Succeeded, 600));
    assert_eq!(posted(&engine, "chart:payable:USD").await, 600);

    assert_eq!(done(&engine, "r1", hold, OperationKind::Refund, Some(200)).await.0, 201);
    let charge = stored(&store, hold).await;
    assert_eq!((charge.status, charge.sums.refunded), (ChargeStatus::PartiallyRefunded, 200));
    assert_eq!(done(&engine, "r2", hold, OperationKind::Refund, Some(401)).await.0, 409);
    assert_eq!(done(&engine, "r3", hold, OperationKind::Refund, None).await.0, 201);
    let charge = stored(&store, hold).await;
    assert_eq!(
        (charge.status, charge.sums.refunded, charge.sums.refunding),
        (ChargeStatus::Refunded, 600, 0)
    );
    assert_eq!(posted(&engine, "chart:payable:USD").await, 0);
    assert_eq!(posted(&engine, "chart:receivable:USD").await, 0);
    assert_eq!(done(&engine, "r4", hold, OperationKind::Refund, None).await.0, 409);
    let keys = provider.keys();
    let distinct: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!((keys.len(), distinct.len()), (4, 4), "each step has a separate key");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_declined_operation_leaves_the_charge_unchanged_and_may_be_tried_again() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    let hold = held(&engine, &store, "hold", 1_000).await;
    for (turn, kind) in [OperationKind::Capture, OperationKind::Void].into_iter().enumerate() {
        provider.play(&[rejected()]);
        assert_eq!(done(&engine, &format!("no{turn}"), hold, kind, None).await.0, 402);
        let charge = stored(&store, hold).await;
        assert_eq!((charge.status, charge.working), (ChargeStatus::RequiresCapture, None));
    }
    assert_eq!(done(&engine, "yes", hold, OperationKind::Capture, None).await.0, 200);
    provider.play(&[rejected()]);
    assert_eq!(done(&engine, "refund", hold, OperationKind::Refund, None).await.0, 402);
    let charge = stored(&store, hold).await;
    assert_eq!((charge.status, charge.sums.refundable()), (ChargeStatus::Succeeded, 1_000));
    assert_eq!(posted(&engine, "chart:payable:USD").await, 1_000, "what was reserved is free again");
    let failed = operations(&store, hold).await;
    let statuses: Vec<_> = failed.iter().map(|operation| operation.status).collect();
    let (no, yes) = (OperationStatus::Failed, OperationStatus::Succeeded);
    assert_eq!(statuses, [no, no, yes, no]);
    verified(&store).await;
}

/// Only the keys prevent a second execution: the charge would allow each operation again.
#[tokio::test(start_paused = true)]
async fn answers_are_replayed_without_a_cache_although_nothing_can_be_committed() {
    let (store, provider) = (charted().await, Provider::default());
    let first = engine(&store, &provider).await;
    let hold = held(&first, &store, "hold", 1_000).await;
    assert_eq!(done(&first, "capture", hold, OperationKind::Capture, None).await.0, 200);
    let refunded = done(&first, "refund", hold, OperationKind::Refund, Some(200)).await;
    let refused = done(&first, "too much", hold, OperationKind::Refund, Some(900)).await;
    assert_eq!((refunded.0, refused.0), (201, 409));
    let engine = engine(&store, &provider).await;
    for faults in [0, 1_000] {
        store.0.fail_next(&vec![memory::MemoryFault::Throttle; faults]);
        assert_eq!(
            done(&engine, "refund", hold, OperationKind::Refund, Some(200)).await,
            refunded,
            "{faults}"
        );
        assert_eq!(
            done(&engine, "too much", hold, OperationKind::Refund, Some(900)).await,
            refused,
            "{faults}"
        );
        let other = operate(&engine, "refund", hold, OperationKind::Refund, Some(100)).await;
        assert_eq!(other, Submitted::Mismatch, "{faults}");
    }
    assert_eq!(provider.keys().len(), 3, "the hold, the capture and one refund");
    assert_eq!(stored(&store, hold).await.sums.refunded, 200);
}

#[tokio::test(start_paused = true)]
async fn a_capture_whose_answer_is_lost_is_looked_up_and_not_repeated() {
    let provider = Provider::default().profile("braintree-classic");
    let store = charted().await;
    let engine = engine(&store, &provider).await;
    let hold = held(&engine, &store, "hold", 1_000).await;
    let name = engine.references().seal(ReferenceKind::Charge, hold.to_i64()).to_string();
    provider.play(&[Script::Answer(UNKNOWN)]);
    let provider = provider.finds(&[
        LookupResult::Nothing,
        LookupResult::Payment(approval_of(ProviderStep::Capture, 700, &name)),
    ]);
    let first = operate(&engine, "capture", hold, OperationKind::Capture, Some(700)).await;
    assert!(
        matches!(first, Submitted::Pending { payment, .. } if payment == Payment::Charge(hold)),
        "{first:?}"
    );
    seconds(3_600).await;
    let (status, _, replayed) =
        answer(&operate(&engine, "capture", hold, OperationKind::Capture, Some(700)).await);
    assert_eq!((status, replayed), (200, true));
    assert_eq!(stored(&store, hold).await.sums.captured, 700);
    assert!(provider.lookups() >= 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_refund_that_exceeds_its_account_is_refused_before_the_provider_is_called() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    funded(&engine, &[(guarded("shop", Some(0), None), 0)]).await;
    let shop = account(&engine, "shop").await.id;
    let mut command = command("charge", 1_000);
    command.wanted.destination = Some(shop);
    assert_eq!(answer(&engine.submit(command).await).0, 201);
    let charge = made(&store, "charge").await;
    assert_eq!(executed(&engine, "spend", transfer("shop", "world", 700)).await.0, 201);
    let calls = provider.keys().len();
    let (status, body) = done(&engine, "refund", charge, OperationKind::Refund, Some(400)).await;
    assert_eq!(status, 400, "{body}");
    assert!(body.starts_with("insufficient_funds"), "{body}");
    assert_eq!(done(&engine, "refund", charge, OperationKind::Refund, Some(400)).await.1, body, "replayed");
    assert_eq!(provider.keys().len(), calls);
    assert_eq!(stored(&store, charge).await.sums.refundable(), 1_000);
    assert_eq!(done(&engine, "less", charge, OperationKind::Refund, Some(300)).await.0, 201);
    assert_eq!(posted(&engine, "shop").await, 0);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_operations_never_capture_twice_nor_refund_more_than_was_captured() {
    for seed in 1..=8 {
        let (store, provider) = (charted().await, Provider::default());
        let engine = engine(&store.jumpy(seed), &provider).await;
        let hold = held(&engine, &store, "hold", 1_000).await;
        let mut racing = tokio::task::JoinSet::new();
        for turn in 0..24 {
            let kind = KINDS[turn % 3];
            let amount = if kind == OperationKind::Refund { Some(170) } else { None };
            let engine = engine.clone();
            racing.spawn(async move {
                for _ in 0..40 {
                    let key = format!("k{turn}");
                    match operate(&engine, &key, hold, kind, amount).await {
                        Submitted::InProgress => seconds(1).await,
                        submitted => return (kind, answer(&submitted).0),
                    }
                }
                panic!("never answered")
            });
        }
        let mut won = std::collections::HashMap::new();
        while let Some(result) = racing.join_next().await {
            let (kind, status) = result.unwrap();
            *won.entry((kind, status)).or_insert(0) += 1;
        }
        let count = |kind, status| won.get(&(kind, status)).copied().unwrap_or(0);
        let (captured, voided) = (count(OperationKind::Capture, 200), count(OperationKind::Void, 200));
        assert_eq!(captured + voided, 1, "seed {seed}: {won:?}");
        let charge = stored(&store, hold).await;
        let refunds = count(OperationKind::Refund, 201);
        assert_eq!(charge.sums.refunded, refunds * 170, "seed {seed}");
        assert!(charge.sums.refunded <= charge.sums.captured, "seed {seed}");
        let left = i128::from(charge.sums.captured - charge.sums.refunded);
        assert_eq!(posted(&engine, "chart:receivable:USD").await, left, "seed {seed}");
        verified(&store).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_split_takes_from_wallet_and_card_or_from_neither() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    funded(&engine, &[(guarded("wallet", Some(0), None), 300)]).await;
    let wallet = account(&engine, "wallet").await.id;

    let (status, body, _) = answer(&engine.submit(splitting("poor", 1_000, wallet, 301)).await);
    assert_eq!((status, body.starts_with("insufficient_funds")), (400, true), "{body}");
    assert_eq!(provider.keys().len(), 0, "the card was not asked");

    provider.play(&[Script::Decline]);
    assert_eq!(answer(&engine.submit(splitting("declined", 1_000, wallet, 300)).await).0, 402);
    assert_eq!(available(&engine, "wallet").await, 300, "released");

    provider.play(&[Script::Approve, rejected(), Script::Approve]);
    assert_eq!(answer(&engine.submit(splitting("uncaptured", 1_000, wallet, 300)).await).0, 402);
    assert_eq!(available(&engine, "wallet").await, 300, "voided, then released");
    let calls: Vec<ProviderStep> = provider.steps();
    assert_eq!(
        calls,
        [ProviderStep::Authorize, ProviderStep::Authorize, ProviderStep::Capture, ProviderStep::Void]
    );

    assert_eq!(answer(&engine.submit(splitting("paid", 1_000, wallet, 300)).await).0, 201);
    assert_eq!(available(&engine, "wallet").await, 0);
    assert_eq!(posted(&engine, "chart:payable:USD").await, 1_000);
    assert_eq!(posted(&engine, "chart:receivable:USD").await, 700, "what the card owes");
    let charge = stored(&store, made(&store, "paid").await).await;
    assert_eq!((charge.status, charge.sums.captured), (ChargeStatus::Succeeded, 700));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn clients_cannot_end_the_holds_of_payments() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    let charge = charged(&engine, &store, "charge", 1_000).await;
    provider.play(&[Script::Slow(Duration::from_secs(2))]);
    let refund = {
        let engine = engine.clone();
        tokio::spawn(async move { done(&engine, "refund", charge, OperationKind::Refund, None).await })
    };
    seconds(1).await;
    let operation = operations(&store, charge).await.remove(0);
    let hold = counterfoil_core::types::id::HoldId::from_i64(operation.id.to_i64());
    let voided = counterfoil_core::payments::ledger::LedgerCommand::End {
        hold,
        how: counterfoil_core::payments::ledger::End::Void,
    };
    assert_eq!(execute(&engine, "steal", voided).await, Submitted::NotFound);
    assert_eq!(refund.await.unwrap().0, 201);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_charge_that_went_to_suspense_is_refunded_from_there() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    let full = open(&engine, guarded("full", None, Some(100))).await;
    let mut command = command("charge", 1_000);
    command.wanted.destination = Some(full);
    assert_eq!(answer(&engine.submit(command).await).0, 201);
    assert_eq!(posted(&engine, "chart:suspense:USD").await, 1_000);
    let charge = made(&store, "charge").await;
    assert_eq!(done(&engine, "refund", charge, OperationKind::Refund, Some(400)).await.0, 201);
    assert_eq!(posted(&engine, "chart:suspense:USD").await, 600);
    assert_eq!(posted(&engine, "full").await, 0, "it never had the money");
    verified(&store).await;
}

//! Verification of payouts: each wrong row violates exactly its own invariants.

use crate::lying::Lying;
use crate::support::peer::eu;
use crate::support::*;
use crate::words::*;
use crate::{altered, broken};
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::outbox::{Flow, Payment, ProviderBinding};
use counterfoil_core::payments::payout::{Payout, PayoutStatus};
use counterfoil_core::payments::provider::{Cause, ProviderOutcome};
use counterfoil_core::types::id::{AccountId, ChargeId, PayoutId, TransactionId};
use counterfoil_core::types::peer::PeerName;
use counterfoil_engine::service::{Service, Submitted};
use counterfoil_store::Row;
use std::sync::Arc;

/// A wrong change of a payout.
type Lie = fn(&mut Payout);

/// A store with one payout in every state.
async fn busy() -> SharedStore {
    let store = charted().await;
    let provider = Provider::default().profile("braintree-classic");
    let engine = engine(&store, &provider).await;
    charged(&engine, &store, "funds", 1_000).await;
    assert_eq!(answer(&engine.pay_out(paying_out("paid", 100)).await).0, 201);
    provider.play(&[Script::Decline]);
    assert_eq!(answer(&engine.pay_out(paying_out("failed", 200)).await).0, 402);
    provider.play(&[Script::Answer(ProviderOutcome::Unknown(Cause::Cut))]);
    let doubtful = engine.pay_out(paying_out("parked", 300)).await;
    assert!(matches!(doubtful, Submitted::Pending { .. }), "{doubtful:?}");
    seconds(600).await;
    provider.play(&[Script::Hang]);
    tokio::spawn(async move { engine.pay_out(paying_out("open", 50)).await });
    seconds(1).await;
    verified(&store).await;
    store
}

fn told_payout(store: &SharedStore, of: PayoutStatus, lie: Lie) -> Lying {
    altered(store, move |row| {
        if let Row::Payout(payout) = row
            && payout.status == of
        {
            lie(payout);
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_payout_whose_status_differs_from_its_claim_or_money_is_found() {
    let store = busy().await;
    let ends: [(PayoutStatus, Lie); 3] = [
        (PayoutStatus::Paid, |payout| payout.status = PayoutStatus::Failed),
        (PayoutStatus::Paid, |payout| payout.status = PayoutStatus::Processing),
        (PayoutStatus::Failed, |payout| payout.status = PayoutStatus::Parked),
    ];
    for (of, lie) in ends {
        let found = broken(&told_payout(&store, of, lie)).await;
        assert_eq!(found, ["payout_has_work", "payouts_are_posted"], "{of:?}");
    }
    let ended: Lie = |payout| payout.status = PayoutStatus::Failed;
    let found = broken(&told_payout(&store, PayoutStatus::Processing, ended)).await;
    assert_eq!(found, ["timeline_is_lawful", "payout_has_work", "payouts_are_posted"]);
    let parked: Lie = |payout| payout.status = PayoutStatus::Processing;
    assert_eq!(broken(&told_payout(&store, PayoutStatus::Parked, parked)).await, ["payout_has_work"]);
}

#[tokio::test(start_paused = true)]
async fn a_payout_with_another_reservation_is_found() {
    let store = busy().await;
    for of in [PayoutStatus::Paid, PayoutStatus::Failed, PayoutStatus::Parked, PayoutStatus::Processing] {
        let account: Lie = |payout| Arc::make_mut(&mut payout.order).account = AccountId::from_i64(77);
        assert_eq!(broken(&told_payout(&store, of, account)).await, ["payouts_are_posted"], "{of:?}");
    }
    // A payout to the provider is no debt to a peer, and the reverse.
    let peers: Lie = |payout| payout.provider = ProviderBinding::to_peer(&eu(), "http://eu", "ac_ours");
    assert_eq!(broken(&told_payout(&store, PayoutStatus::Failed, peers)).await, ["payouts_are_posted"]);
    let nameless: Lie = |payout| payout.provider_reference = None;
    assert_eq!(
        broken(&told_payout(&store, PayoutStatus::Paid, nameless)).await,
        ["provider_effect_is_single"]
    );
    let freed = altered(&store, |row| {
        if let Row::Hold(hold) = row
            && hold.amount == 300
        {
            hold.state = HoldState::Voided { by: TransactionId::from_i64(hold.id.to_i64()) };
        }
    });
    let found = broken(&freed).await;
    assert!(found.contains(&"payouts_are_posted"), "{found:?}");
    assert!(found.contains(&"holds_of_payments_have_work"), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn work_of_another_payment_is_found() {
    let store = busy().await;
    let charge = altered(&store, |row| {
        if let Row::Outbox(outbox) = row
            && outbox.parked.is_some()
        {
            outbox.payment = Payment::Charge(ChargeId::from_i64(outbox.id.to_i64()));
        }
    });
    let found = broken(&charge).await;
    assert_eq!(found, ["work_has_payment", "payout_has_work"]);
    let other = altered(&store, |row| {
        if let Row::Outbox(outbox) = row
            && outbox.parked.is_some()
        {
            outbox.payment = Payment::Payout(PayoutId::from_i64(5));
        }
    });
    let found = broken(&other).await;
    assert!(found.contains(&"work_has_payment") && found.contains(&"payout_has_work"), "{found:?}");
    let flow = altered(&store, |row| {
        if let Row::Outbox(outbox) = row
            && outbox.parked.is_some()
        {
            outbox.saga.flow = Flow::Refund;
        }
    });
    assert_eq!(broken(&flow).await, ["payout_has_work"]);
}

#[tokio::test(start_paused = true)]
async fn a_payout_whose_debt_is_to_another_peer_is_found() {
    let store = charted().await;
    let engine = engine(&store, &Provider::default()).await;
    charged(&engine, &store, "funds", 1_000).await;
    assert_eq!(answer(&engine.pay_out(paying_peer("paid", 100)).await).0, 201);
    verified(&store).await;
    let others: [Lie; 3] = [
        |payout| {
            payout.provider =
                ProviderBinding::to_peer(&PeerName::parse("us").unwrap(), "http://eu", "ac_ours");
        },
        |payout| {
            payout.provider = ProviderBinding { profile: "stripe".into(), endpoint: "http://provider".into() }
        },
        |payout| payout.provider.endpoint = "".into(),
    ];
    for other in others {
        assert_eq!(broken(&told_payout(&store, PayoutStatus::Paid, other)).await, ["payouts_are_posted"]);
    }
}

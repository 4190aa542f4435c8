//! Verification of operations: each wrong or planted row violates exactly its own invariants.

use crate::lying::Lying;
use crate::support::ledger::*;
use crate::support::*;
use crate::words::*;
use crate::{altered, broken, id};
use counterfoil_core::idempotency::claim::{Claim, ClaimState, Resource};
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::outbox::{Flow, Outbox, ParkReason, Payment};
use counterfoil_core::payments::charge::{Charge, ChargeStatus, Wallet};
use counterfoil_core::payments::ledger::decide::{self, DecisionContext};
use counterfoil_core::payments::operation::{Operation, OperationKind, OperationStatus};
use counterfoil_core::payments::provider::{ProviderFault, ProviderOutcome, Rejection};
use counterfoil_core::types::id::{HoldId, OperationId, SetId, SubjectId, TransactionId};
use counterfoil_core::types::money::Money;
use counterfoil_engine::service::{Service, Submitted};
use counterfoil_engine::verify::verify;
use counterfoil_store::{ChangeSet, Row, RowKey, Store};
use std::sync::Arc;

fn rejected() -> Script {
    Script::Answer(ProviderOutcome::Rejected(Rejection { fault: ProviderFault::Request, code: "no".into() }))
}

/// Starts an operation that the provider never answers.
async fn begin(
    provider: &Provider,
    script: &[Script],
    begun: impl Future<Output = Submitted> + Send + 'static,
) {
    provider.play(script);
    provider.play(&[Script::Hang]);
    tokio::spawn(begun);
    seconds(1).await;
}

/// A store with every saga at every end, and some running ones.
async fn busy() -> (SharedStore, TestEngine) {
    let store = charted().await;
    let provider = Provider::default().profile("braintree-classic");
    let engine = engine(&store, &provider).await;
    funded(&engine, &[(guarded("wallet", Some(0), None), 1_000)]).await;
    let wallet = id(&engine, "wallet").await;

    let taken = charged(&engine, &store, "taken", 1_000).await;
    provider.play(&[Script::Answer(UNKNOWN)]);
    let doubtful = operate(&engine, "parked refund", taken, OperationKind::Refund, Some(50)).await;
    assert!(matches!(doubtful, Submitted::Pending { .. }), "{doubtful:?}");
    seconds(600).await;
    assert_eq!(engine.dead_letters(TENANT, None, 10).await.unwrap().len(), 1);
    assert_eq!(done(&engine, "refund", taken, OperationKind::Refund, Some(200)).await.0, 201);
    provider.play(&[rejected()]);
    assert_eq!(done(&engine, "failed refund", taken, OperationKind::Refund, Some(100)).await.0, 402);
    assert_eq!(done(&engine, "impossible", taken, OperationKind::Void, None).await.0, 409);

    let given_back = held(&engine, &store, "given back", 1_000).await;
    provider.play(&[rejected()]);
    assert_eq!(done(&engine, "failed capture", given_back, OperationKind::Capture, None).await.0, 402);
    assert_eq!(done(&engine, "capture", given_back, OperationKind::Capture, Some(600)).await.0, 200);
    assert_eq!(done(&engine, "refund all", given_back, OperationKind::Refund, None).await.0, 201);
    let voided = held(&engine, &store, "voided", 1_000).await;
    assert_eq!(done(&engine, "void", voided, OperationKind::Void, None).await.0, 200);

    provider.play(&[Script::Decline]);
    assert_eq!(answer(&engine.submit(splitting("declined", 1_000, wallet, 300)).await).0, 402);
    assert_eq!(answer(&engine.submit(splitting("paid", 1_000, wallet, 300)).await).0, 201);

    let working = held(&engine, &store, "working", 1_000).await;
    let capture = asked("open capture", working, OperationKind::Capture, None);
    let refund = asked("open refund", taken, OperationKind::Refund, Some(150));
    let split = splitting("open split", 1_000, wallet, 300);
    for command in [capture, refund] {
        let one = engine.clone();
        begin(&provider, &[], async move { one.operate(command).await }).await;
    }
    let one = engine.clone();
    begin(&provider, &[Script::Approve], async move { one.submit(split).await }).await;
    (store, engine)
}

#[tokio::test(start_paused = true)]
async fn a_store_with_every_saga_passes_and_every_invariant_checks_something() {
    let (store, engine) = busy().await;
    assert_eq!(work_left(&store).await, 4, "one parked, three under way");
    let taken = made(&store, "taken").await;
    assert_eq!(operations(&store, taken).await.len(), 4);
    assert_eq!(available(&engine, "wallet").await, 400);
    let report = verify(&store, |_| {}).await.unwrap();
    assert!(report.holds(), "{:#?}", report.findings());
    for name in [
        "operations_add_up",
        "operation_has_work",
        "refunds_are_posted",
        "holds_of_payments_have_work",
        "wallets_pay_with_the_card",
    ] {
        let findings = report.findings();
        let finding = findings.iter().find(|finding| finding.invariant == name).unwrap();
        assert!(finding.looked_at > 0 && !finding.meaning.is_empty(), "{finding:?}");
    }
}

/// The charge with the wrong row.
type Which = fn(&Charge) -> bool;
type Lie = fn(&mut Charge);

fn told_charge(
    store: &SharedStore,
    which: Which,
    lie: impl Fn(&mut Charge) + Send + Sync + 'static,
) -> Lying {
    altered(store, move |row| {
        if let Row::Charge(charge) = row
            && which(charge)
        {
            lie(charge);
        }
    })
}

fn told_operation(
    store: &SharedStore,
    which: (OperationKind, OperationStatus),
    lie: fn(&mut Operation),
) -> Lying {
    altered(store, move |row| {
        if let Row::Operation(operation) = row
            && (operation.kind, operation.status) == which
        {
            lie(operation);
        }
    })
}

fn told_work(store: &SharedStore, flow: Flow, lie: impl Fn(&mut Outbox) + Send + Sync + 'static) -> Lying {
    altered(store, move |row| {
        if let Row::Outbox(outbox) = row
            && outbox.saga.flow == flow
            && outbox.parked.is_none()
        {
            lie(outbox);
        }
    })
}

fn hidden(store: &SharedStore, hides: impl Fn(&Row) -> bool + Send + Sync + 'static) -> Lying {
    Lying::about_rows(store, move |row| Some(row).filter(|row| !hides(row)))
}

#[tokio::test(start_paused = true)]
async fn a_charge_that_differs_from_its_operations_is_found() {
    let (store, _engine) = busy().await;
    let partly = |charge: &Charge| charge.status == ChargeStatus::PartiallyRefunded;
    let lies: [(Which, Lie); 9] = [
        (partly, |charge| charge.sums.refunded += 1),
        (partly, |charge| charge.sums.refunding -= 1),
        (partly, |charge| charge.sums.refunding += 1),
        (partly, |charge| charge.status = ChargeStatus::Succeeded),
        (partly, |charge| charge.status = ChargeStatus::Refunded),
        (
            |charge| charge.status == ChargeStatus::Voided,
            |charge| charge.status = ChargeStatus::RequiresCapture,
        ),
        (
            |charge| charge.status == ChargeStatus::Refunded,
            |charge| {
                charge.status = ChargeStatus::PartiallyRefunded;
            },
        ),
        (|charge| charge.working.is_some(), |charge| charge.working = None),
        (|charge| charge.working.is_some(), |charge| charge.working = Some(OperationId::from_i64(5))),
    ];
    for (turn, (which, lie)) in lies.into_iter().enumerate() {
        assert_eq!(broken(&told_charge(&store, which, lie)).await, ["operations_add_up"], "lie {turn}");
    }
    // A void stored as a capture: the charge took nothing.
    let renamed = told_operation(&store, (OperationKind::Void, OperationStatus::Succeeded), |void| {
        void.kind = OperationKind::Capture;
    });
    assert_eq!(broken(&renamed).await, ["operations_add_up"]);
}

/// An operation on a charge that no engine would create.
async fn planted(
    store: &SharedStore,
    charge: &str,
    kind: OperationKind,
    status: OperationStatus,
    amount: i64,
) {
    let operation = Operation {
        id: OperationId::from_i64(i64::MAX - 2),
        tenant: TENANT,
        charge: made(store, charge).await,
        kind,
        amount: Money::new(amount, asset("USD")).unwrap(),
        status,
        provider_reference: None,
        failure: None,
        created_at: store.now(),
        revision: 1,
    };
    store.commit(ChangeSet::new(SetId::from_i64(i64::MAX - 2)).insert(operation)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn second_captures_voids_after_captures_and_concurrent_captures_are_found() {
    for (kind, status, charge, invariants) in [
        (OperationKind::Capture, OperationStatus::Succeeded, "given back", &["operations_add_up"][..]),
        (OperationKind::Void, OperationStatus::Succeeded, "given back", &["operations_add_up"]),
        (OperationKind::Capture, OperationStatus::Succeeded, "voided", &["operations_add_up"]),
        (
            OperationKind::Void,
            OperationStatus::Processing,
            "working",
            &["operations_add_up", "operation_has_work"],
        ),
    ] {
        let (store, _engine) = busy().await;
        planted(&store, charge, kind, status, 10).await;
        assert_eq!(broken(&store).await, invariants, "{kind:?} of {charge}");
    }
}

#[tokio::test(start_paused = true)]
async fn operations_without_work_claim_or_charge_are_found() {
    let (store, _engine) = busy().await;
    let workless = hidden(&store, |row| matches!(row, Row::Outbox(one) if one.saga.flow == Flow::Capture));
    assert_eq!(broken(&workless).await, ["operation_has_work"]);
    let unclaimed = hidden(&store, |row| {
        let open = |claim: &Claim| claim.makes == Resource::Capture && claim.state.settled().is_none();
        matches!(row, Row::Claim(claim) if open(claim))
    });
    assert_eq!(broken(&unclaimed).await, ["operation_has_work"]);
    let nobodys = hidden(
        &store,
        |row| matches!(row, Row::Operation(one) if one.kind == OperationKind::Capture && one.status == OperationStatus::Processing),
    );
    let all = ["claim_has_work", "operations_add_up", "operation_has_work"];
    assert_eq!(broken(&nobodys).await, all);
    let elsewhere = told_operation(&store, (OperationKind::Void, OperationStatus::Succeeded), |void| {
        void.charge = counterfoil_core::types::id::ChargeId::from_i64(5);
    });
    assert_eq!(broken(&elsewhere).await, ["operations_add_up", "operation_has_work"]);
}

#[tokio::test(start_paused = true)]
async fn operations_with_work_or_claims_of_other_subjects_are_found() {
    let (store, _engine) = busy().await;
    let lies: [fn(&mut Outbox); 4] = [
        |outbox| outbox.saga.flow = Flow::Void,
        |outbox| outbox.parked = Some(ParkReason::NoEvidence),
        |outbox| outbox.claim = command("taken", 1).request.claim,
        |outbox| outbox.hold = Some(HoldId::from_i64(5)),
    ];
    for (turn, lie) in lies.into_iter().enumerate() {
        let mut found = broken(&told_work(&store, Flow::Capture, lie)).await;
        found.retain(|invariant| *invariant != "holds_of_payments_have_work");
        assert_eq!(found, ["operation_has_work"], "lie {turn}");
    }
    let taken = made(&store, "taken").await;
    let another = told_work(&store, Flow::Capture, move |outbox| outbox.payment = Payment::Charge(taken));
    assert_eq!(broken(&another).await, ["operation_has_work"]);
    let unparked = told_operation(&store, (OperationKind::Refund, OperationStatus::Parked), |one| {
        one.status = OperationStatus::Processing;
    });
    assert_eq!(broken(&unparked).await, ["operation_has_work"]);
    let ended = told_operation(&store, (OperationKind::Capture, OperationStatus::Failed), |one| {
        one.status = OperationStatus::Succeeded;
    });
    assert_eq!(broken(&ended).await, ["operations_add_up", "operation_has_work"]);
}

#[tokio::test(start_paused = true)]
async fn final_operations_with_work_left_are_found() {
    let (store, _engine) = busy().await;
    let voided = operations(&store, made(&store, "voided").await).await.remove(0);
    let working = operations(&store, made(&store, "working").await).await.remove(0);
    let rows = store.read(vec![RowKey::Outbox(working.tenant, working.id.into())]).await.unwrap();
    let Some(Row::Outbox(outbox)) = rows.into_iter().next().unwrap() else { panic!("no work") };
    let left = Outbox { id: voided.id.into(), payment: Payment::Charge(voided.charge), ..outbox };
    store.commit(ChangeSet::new(SetId::from_i64(i64::MAX - 2)).insert(left)).await.unwrap();
    assert_eq!(broken(&store).await, ["operation_has_work"]);
}

#[tokio::test(start_paused = true)]
async fn work_of_another_provider_or_flow_than_its_charge_is_found() {
    let (store, _engine) = busy().await;
    let lies: [fn(&mut Outbox); 2] = [
        |outbox| outbox.provider.endpoint = "http://elsewhere".into(),
        |outbox| outbox.parked = Some(ParkReason::NoEvidence),
    ];
    for lie in lies {
        assert_eq!(broken(&told_work(&store, Flow::Split, lie)).await, ["work_has_payment"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refund_that_differs_from_its_reservation_and_posting_is_found() {
    let (store, _engine) = busy().await;
    let less = told_operation(&store, (OperationKind::Refund, OperationStatus::Succeeded), |refund| {
        refund.amount = Money::new(refund.amount.minor() - 1, refund.amount.asset()).unwrap();
    });
    assert_eq!(broken(&less).await, ["answer_is_whole", "operations_add_up", "refunds_are_posted"]);
    let unsaid = told_operation(&store, (OperationKind::Refund, OperationStatus::Failed), |one| {
        one.status = OperationStatus::Succeeded;
    });
    let all = ["operations_add_up", "operation_has_work", "refunds_are_posted"];
    assert_eq!(broken(&unsaid).await, all);
    let destination = counterfoil_core::types::id::AccountId::from_i64(5);
    let redirected = told_charge(
        &store,
        |charge| charge.status == ChargeStatus::PartiallyRefunded,
        move |charge| Arc::make_mut(&mut charge.order).destination = destination,
    );
    assert_eq!(broken(&redirected).await, ["refunds_are_posted", "charges_are_posted_once"]);
    let unheld = hidden(&store, |row| matches!(row, Row::Hold(hold) if hold.amount == 100));
    assert_eq!(broken(&unheld).await, ["refunds_are_posted", "holds_match_journal"]);
}

#[tokio::test(start_paused = true)]
async fn a_refund_without_a_reservation_is_found() {
    for (status, refunded) in [(OperationStatus::Failed, 0), (OperationStatus::Succeeded, 10)] {
        let (store, _engine) = busy().await;
        planted(&store, "taken", OperationKind::Refund, status, 10).await;
        let agreed = told_charge(
            &store,
            |charge| charge.status == ChargeStatus::PartiallyRefunded,
            move |charge| charge.sums.refunded += refunded,
        );
        assert_eq!(broken(&agreed).await, ["refunds_are_posted"], "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_another_refund_is_found() {
    let (store, _engine) = busy().await;
    let another = altered(&store, |row| {
        if let Row::Claim(claim) = row
            && claim.makes == Resource::Refund
            && let ClaimState::Completed(settled) = &mut claim.state
        {
            settled.reply.body = br#"{"id":"re_another","amount":200}"#.to_vec().into();
        }
    });
    assert_eq!(broken(&another).await, ["answer_is_whole"]);
}

#[tokio::test(start_paused = true)]
async fn reservations_that_no_work_will_end_are_found() {
    let (store, engine) = busy().await;
    let unnamed = told_work(&store, Flow::Split, |outbox| outbox.hold = None);
    assert_eq!(broken(&unnamed).await, ["holds_of_payments_have_work"]);
    let other = {
        let refund = operations(&store, made(&store, "taken").await).await.remove(0);
        SubjectId::from(refund.id)
    };
    let shared = told_work(&store, Flow::Split, move |outbox| outbox.hold = Some(other.into()));
    assert_eq!(broken(&shared).await, ["holds_of_payments_have_work"]);
    let workless = hidden(&store, |row| matches!(row, Row::Outbox(one) if one.saga.flow == Flow::Split));
    assert_eq!(broken(&workless).await, ["claim_has_work", "holds_of_payments_have_work"]);

    let [world, fees] = [id(&engine, "world").await, id(&engine, "chart:fees:USD").await];
    let frame =
        DecisionContext { tenant: TENANT, id: TransactionId::from_i64(i64::MAX - 2), now: store.now() };
    let (transaction, hold): (_, Hold) = decide::reserve(world, fees, 5, asset("USD"), frame).unwrap();
    let set = ChangeSet::new(SetId::from_i64(i64::MAX - 2)).insert(transaction).insert(hold);
    store.commit(set).await.unwrap();
    assert_eq!(broken(&store).await, ["holds_of_payments_have_work"]);
}

#[tokio::test(start_paused = true)]
async fn wallet_payments_without_their_charge_are_found() {
    let (store, _engine) = busy().await;
    let paid = |charge: &Charge| charge.order.wallet.is_some() && charge.status == ChargeStatus::Succeeded;
    let lies: [fn(&mut Option<Wallet>); 2] = [
        |wallet| *wallet = wallet.map(|one| Wallet { amount: one.amount - 1, ..one }),
        |wallet| *wallet = None,
    ];
    for lie in lies {
        let lying =
            told_charge(&store, paid, move |charge| lie(&mut Arc::make_mut(&mut charge.order).wallet));
        assert_eq!(broken(&lying).await, ["wallets_pay_with_the_card"]);
    }
}

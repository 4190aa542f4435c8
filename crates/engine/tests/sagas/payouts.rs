//! Payouts: limited by the available balance, sent once, and released when declined.

use crate::support::ledger::*;
use crate::support::*;
use crate::words::*;
use counterfoil_core::audit::AuditKind;
use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::outbox::Payment;
use counterfoil_core::payments::charge::FailureCode;
use counterfoil_core::payments::payout::{Payout, PayoutStatus};
use counterfoil_core::payments::provider::{Cause, Decline, LookupResult, ProviderOutcome, ProviderStep};
use counterfoil_core::types::id::{AccountId, SubjectId};
use counterfoil_engine::service::{Resolution, Service, Submitted};

async fn staged(provider: &Provider, funds: i64) -> (SharedStore, TestEngine) {
    let store = charted().await;
    let engine = engine(&store, provider).await;
    if funds > 0 {
        charged(&engine, &store, "funds", funds).await;
    }
    (store, engine)
}

async fn paid_out(engine: &TestEngine, key: &str, amount: i64) -> (u16, String) {
    let (status, body, _) = answer(&engine.pay_out(paying_out(key, amount)).await);
    (status, body)
}

async fn only(engine: &TestEngine) -> Payout {
    let mut all = engine.payouts(TENANT, None, 10).await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Number of payout calls.
fn asked(provider: &Provider) -> usize {
    provider.steps().into_iter().filter(|step| *step == ProviderStep::Payout).count()
}

async fn resolve(engine: &TestEngine, key: &str, id: SubjectId, how: Resolution) -> u16 {
    answer(&engine.resolve(request(key, &(id, &how)), id, how).await).0
}

#[tokio::test(start_paused = true)]
async fn a_payout_above_the_available_balance_is_refused_for_good_without_a_call() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider, 1_000).await;
    let (status, body) = paid_out(&engine, "much", 1_001).await;
    assert_eq!(status, 400);
    assert!(body.starts_with("insufficient_funds"), "{body}");
    // The refusal stays the key's answer when there is more money.
    charged(&engine, &store, "more", 500).await;
    let again = engine.pay_out(paying_out("much", 1_001)).await;
    assert_eq!(answer(&again), (400, body, true));
    assert_eq!(engine.pay_out(paying_out("much", 1_000)).await, Submitted::Mismatch);
    assert_eq!((asked(&provider), available(&engine, "chart:payable:USD").await), (0, 1_500));
    assert_eq!(engine.payouts(TENANT, None, 10).await.unwrap(), []);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn an_account_that_does_not_fit_is_named_and_nothing_is_stored() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider, 1_000).await;
    let mut euro = plain("euro");
    euro.asset = asset("EUR");
    let mut raised = plain("raised");
    raised.normal = Side::Debit;
    let (euro, raised) = (open(&engine, euro).await, open(&engine, raised).await);
    let receivable = account(&engine, "chart:receivable:USD").await.id;
    let nobody = AccountId::from_i64(-1);
    for (account, words) in [
        (euro, "counts EUR, not USD"),
        (raised, "normal side is debit"),
        (receivable, "normal side is debit"),
        (nobody, "no such account"),
    ] {
        match engine.pay_out(paying_out_of("k", 10, Some(account))).await {
            Submitted::Invalid(flaws) => {
                assert_eq!(flaws[0].pointer, "/account");
                assert!(flaws[0].message.contains(words), "{flaws:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(paid_out(&engine, "k", 10).await.0, 201, "the key is still free");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_payout_is_reserved_paid_and_posted_against_the_receivable() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider, 1_000).await;
    let first = engine.pay_out(paying_out("k", 400)).await;
    let payout = only(&engine).await;
    assert_eq!((payout.status, payout.order.amount.minor()), (PayoutStatus::Paid, 400));
    assert_eq!(payout.order.account, account(&engine, "chart:payable:USD").await.id);
    assert_eq!(balance(&engine, "chart:payable:USD").await, view(600, 0, 0));
    assert_eq!(posted(&engine, "chart:receivable:USD").await, 600);
    let hold = hold_row(&store, payout.id.to_i64()).await;
    assert!(matches!(hold.state, HoldState::Posted { amount: 400, .. }), "{hold:?}");
    let again = engine.pay_out(paying_out("k", 400)).await;
    assert_eq!((answer(&again).1, answer(&again).2), (answer(&first).1, true));
    assert_eq!(asked(&provider), 1);
    let records = engine.timeline(TENANT, payout.id.into(), None, 10).await.unwrap().unwrap();
    let kinds: Vec<_> = records.iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [AuditKind::Claimed, AuditKind::ProviderAnswered, AuditKind::Settled]);
    let key = engine.claim(TENANT, paying_out("k", 400).request.claim).await.unwrap().unwrap();
    assert_eq!(key.payment, Some(Payment::Payout(payout.id)));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_negative_floor_allows_no_payout_above_the_balance() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider, 0).await;
    funded(&engine, &[(guarded("credit", Some(-500), None), 100), (guarded("kept", Some(40), None), 100)])
        .await;
    let credit = account(&engine, "credit").await.id;
    let kept = account(&engine, "kept").await.id;
    for (key, account, amount, expected) in [
        ("a", credit, 101, 400),
        ("b", credit, 100, 201),
        ("c", credit, 1, 400),
        ("d", kept, 61, 400),
        ("e", kept, 60, 201),
    ] {
        let submitted = engine.pay_out(paying_out_of(key, amount, Some(account))).await;
        assert_eq!(answer(&submitted).0, expected, "{key}");
    }
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn fifty_concurrent_payouts_take_no_more_than_the_balance() {
    let provider = Provider::default();
    let (store, first) = staged(&provider, 1_000).await;
    let second = engine(&store.another(), &provider).await;
    let engines = [first, second];
    let mut paying = tokio::task::JoinSet::new();
    for number in 0..50 {
        let engine = engines[number % 2].clone();
        paying.spawn(async move {
            for _ in 0..50 {
                match engine.pay_out(paying_out(&format!("k{number}"), 100)).await {
                    Submitted::Answer { settled, .. } => return settled.reply.status,
                    Submitted::InProgress => seconds(1).await,
                    other => panic!("{other:?}"),
                }
            }
            panic!("never answered")
        });
    }
    let answers = paying.join_all().await;
    let done = |status: u16| answers.iter().filter(|answer| **answer == status).count();
    assert_eq!((done(201), done(400)), (10, 40));
    assert_eq!((asked(&provider), available(&engines[0], "chart:payable:USD").await), (10, 0));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_payout_declined_by_the_bank_frees_its_money_and_keeps_the_reason() {
    let decline = Decline {
        code: "payout_failed".into(),
        decline_code: Some("account_closed".into()),
        reference: Some("po_9".into()),
    };
    let provider = Provider::default();
    let (store, engine) = staged(&provider, 1_000).await;
    provider.play(&[Script::Answer(ProviderOutcome::Declined(decline))]);
    let (status, body) = paid_out(&engine, "k", 400).await;
    assert_eq!(status, 402);
    assert!(body.contains(r#""error":"payout_failed","payout":"po_"#), "{body}");
    let payout = only(&engine).await;
    let failure = payout.failure.unwrap();
    assert_eq!((payout.status, failure.code), (PayoutStatus::Failed, FailureCode::PayoutFailed));
    assert_eq!(failure.decline_code.as_deref(), Some("account_closed"));
    assert_eq!(payout.provider_reference.as_deref(), Some("po_9"));
    let hold = hold_row(&store, payout.id.to_i64()).await;
    assert!(matches!(hold.state, HoldState::Voided { .. }), "{hold:?}");
    assert_eq!(available(&engine, "chart:payable:USD").await, 1_000);
    assert_eq!(answer(&engine.pay_out(paying_out("k", 400)).await), (402, body, true));
    verified(&store).await;
}

/// A payout whose outcome stays unknown because the provider never answers.
async fn parked() -> (SharedStore, Provider, TestEngine, Payout) {
    let provider = Provider::default();
    let (store, engine) = staged(&provider, 1_000).await;
    provider.play(&vec![Script::Answer(ProviderOutcome::Unknown(Cause::ServerError)); 20]);
    let first = engine.pay_out(paying_out("k", 400)).await;
    assert!(matches!(first, Submitted::Pending { .. }), "{first:?}");
    seconds(3_600).await;
    let payout = only(&engine).await;
    assert_eq!(payout.status, PayoutStatus::Parked);
    let letters = engine.dead_letters(TENANT, None, 10).await.unwrap();
    assert_eq!((letters.len(), letters[0].outbox.parked.unwrap().name()), (1, "no_evidence"));
    assert_eq!(balance(&engine, "chart:payable:USD").await, view(1_000, 400, 0), "the money stays reserved");
    assert_eq!(provider.lookups(), 0, "what has no name at the provider cannot be asked about");
    verified(&store).await;
    (store, provider, engine, payout)
}

#[tokio::test(start_paused = true)]
async fn a_parked_payout_ends_as_an_operator_decides() {
    let (store, provider, engine, payout) = parked().await;
    assert!(matches!(engine.pay_out(paying_out("k", 400)).await, Submitted::Pending { .. }));
    assert_eq!(resolve(&engine, "void", payout.id.into(), Resolution::Void).await, 409);
    assert_eq!(resolve(&engine, "adopt", payout.id.into(), Resolution::Adopt).await, 409, "nothing is found");
    // The provider reports an amount other than the reserved amount, so `adopt` is refused.
    let name = Payment::Payout(payout.id).reference(engine.references()).to_string();
    let provider = provider.finds(&[LookupResult::Payment(approval_of(ProviderStep::Payout, 399, &name))]);
    assert_eq!(resolve(&engine, "less", payout.id.into(), Resolution::Adopt).await, 409);
    let provider = provider.finds(&[LookupResult::Payment(approval_of(ProviderStep::Payout, 400, &name))]);
    let how = Resolution::Fail { reason: "not there".into() };
    assert_eq!(resolve(&engine, "fail", payout.id.into(), how).await, 409, "the provider paid it out");
    let _provider = provider.finds(&[LookupResult::Payment(approval_of(ProviderStep::Payout, 400, &name))]);
    assert_eq!(resolve(&engine, "take", payout.id.into(), Resolution::Adopt).await, 200);
    assert_eq!(only(&engine).await.status, PayoutStatus::Paid);
    assert_eq!(balance(&engine, "chart:payable:USD").await, view(600, 0, 0));
    assert_eq!(paid_out(&engine, "k", 400).await.0, 201, "the client's retry has its answer");
    verified(&store).await;

    let (store, _provider, engine, payout) = parked().await;
    let how = Resolution::Fail { reason: "the bank shows nothing".into() };
    assert_eq!(resolve(&engine, "fail", payout.id.into(), how).await, 200);
    let failed = only(&engine).await;
    assert_eq!(
        (failed.status, failed.failure.unwrap().code),
        (PayoutStatus::Failed, FailureCode::MarkedFailed)
    );
    assert_eq!(available(&engine, "chart:payable:USD").await, 1_000);
    assert_eq!(paid_out(&engine, "k", 400).await.0, 402);
    verified(&store).await;

    let (store, provider, engine, payout) = parked().await;
    let before = asked(&provider);
    assert_eq!(resolve(&engine, "retry", payout.id.into(), Resolution::Retry).await, 200);
    seconds(60).await;
    assert_eq!(only(&engine).await.status, PayoutStatus::Parked, "it has said nothing too often already");
    assert_eq!(asked(&provider), before, "and is not asked again");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_payout_of_another_amount_is_parked_and_named() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider, 1_000).await;
    provider.play(&[Script::ApproveAmount(401)]);
    assert!(matches!(engine.pay_out(paying_out("k", 400)).await, Submitted::Pending { .. }));
    let payout = only(&engine).await;
    assert_eq!(payout.status, PayoutStatus::Parked);
    assert!(payout.provider_reference.is_some(), "so that it can be asked about");
    let letters = engine.dead_letters(TENANT, None, 10).await.unwrap();
    assert_eq!(letters[0].outbox.parked.unwrap().name(), "answer_differs");
    assert_eq!(available(&engine, "chart:payable:USD").await, 600);
    verified(&store).await;
}

//! Dead letters: listed with their evidence, resolved by operators and never by a guess, and
//! audited.

use crate::support::ledger::*;
use crate::support::*;
use crate::words::*;
use counterfoil_core::audit::{AuditKind, record_id};
use counterfoil_core::payments::charge::ChargeStatus;
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::provider::{
    Decline, LookupResult, ProviderFault, ProviderOutcome, ProviderStep, Rejection,
};
use counterfoil_core::types::id::{ChargeId, SubjectId, TenantId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_engine::service::{DeadLetter, Resolution, Service, Submitted};

/// A charge that is parked because the provider's answer has another amount.
async fn differing(amount: i64) -> (SharedStore, Provider, TestEngine, DeadLetter) {
    let (store, provider) = (charted().await, Provider::new(&[Script::ApproveAmount(amount)]));
    let engine = engine(&store, &provider).await;
    pending(&engine, "k").await;
    let letter = only(&engine).await;
    (store, provider, engine, letter)
}

async fn only(engine: &TestEngine) -> DeadLetter {
    let mut letters = engine.dead_letters(TENANT, None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    letters.remove(0)
}

fn charge_of(letter: &DeadLetter) -> ChargeId {
    letter.outbox.payment.subject().into()
}

async fn resolve(engine: &TestEngine, key: &str, id: SubjectId, how: Resolution) -> (u16, String) {
    let request = request(key, &(id, &how));
    let (status, body, _) = answer(&engine.resolve(request, id, how).await);
    (status, body)
}

fn name(engine: &TestEngine, charge: ChargeId) -> String {
    engine.references().seal(ReferenceKind::Charge, charge.to_i64()).to_string()
}

#[tokio::test(start_paused = true)]
async fn work_that_is_not_parked_or_of_another_tenant_is_no_dead_letter() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    let charge = charged(&engine, &store, "k", 1_250).await;
    for id in [charge.into(), SubjectId::from_i64(77)] {
        let how = Resolution::Fail { reason: "no".into() };
        let submitted = engine.resolve(request("r", &id), id, how).await;
        assert_eq!(submitted, Submitted::NotFound);
        assert_eq!(engine.dead_letter(TENANT, id).await.unwrap(), None);
    }
    let (_, _, engine, letter) = differing(1_251).await;
    let stranger = TenantId::from_i64(2);
    assert_eq!(engine.dead_letters(stranger, None, 10).await.unwrap(), []);
    assert_eq!(engine.dead_letter(stranger, letter.outbox.id).await.unwrap(), None);
    let theirs = request_of(stranger, "r", b"");
    let submitted = engine.resolve(theirs, letter.outbox.id, Resolution::Adopt).await;
    assert_eq!(submitted, Submitted::NotFound);
}

#[tokio::test(start_paused = true)]
async fn adopting_accepts_the_providers_amount_and_posts_it() {
    let (store, provider, engine, letter) = differing(1_300).await;
    let charge = charge_of(&letter);
    let found = approval(1_300, &name(&engine, charge));
    let _provider = provider.finds(&[LookupResult::Payment(found)]);
    assert_eq!(resolve(&engine, "r", letter.outbox.id, Resolution::Adopt).await.0, 200);
    let after = stored(&store, charge).await;
    assert_eq!((after.status, after.sums.captured), (ChargeStatus::Succeeded, 1_300));
    assert_eq!(posted(&engine, "chart:receivable:USD").await, 1_300);
    assert_eq!(answer(&charge_again(&engine).await).0, 201, "the client's retry has its answer");
    assert_eq!(resolve(&engine, "r", letter.outbox.id, Resolution::Adopt).await.0, 200, "replayed");
    assert_eq!(engine.dead_letters(TENANT, None, 10).await.unwrap(), []);
    let records = engine.timeline(TENANT, charge.into(), None, 100).await.unwrap().unwrap();
    let resolved: Vec<_> = records.iter().filter(|record| record.kind == AuditKind::Resolved).collect();
    assert_eq!(resolved.len(), 1);
    assert!(resolved[0].detail.contains("resolution=adopt"), "{}", resolved[0].detail);
    verified(&store).await;
}

async fn charge_again(engine: &TestEngine) -> Submitted {
    charge(engine, "k", 1_250).await
}

#[tokio::test(start_paused = true)]
async fn without_evidence_nothing_is_adopted() {
    let (store, provider, engine, letter) = differing(1_300).await;
    for (turn, found) in [LookupResult::Nothing, LookupResult::Several].into_iter().enumerate() {
        let _ = provider.clone().finds(&[found]);
        let (status, body) = resolve(&engine, &format!("r{turn}"), letter.outbox.id, Resolution::Adopt).await;
        assert_eq!(status, 409, "{body}");
        assert_eq!(stored(&store, charge_of(&letter)).await.status, ChargeStatus::Parked);
    }
    assert_eq!(charge_of(&only(&engine).await), charge_of(&letter), "it is still there");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_charge_that_the_provider_took_is_not_marked_failed() {
    let (store, provider, engine, letter) = differing(1_300).await;
    let found = approval(1_300, &name(&engine, charge_of(&letter)));
    let _ = provider.clone().finds(&[LookupResult::Payment(found)]);
    let fail = || Resolution::Fail { reason: "never arrived".into() };
    assert_eq!(resolve(&engine, "r1", letter.outbox.id, fail()).await.0, 409);
    assert_eq!(stored(&store, charge_of(&letter)).await.status, ChargeStatus::Parked);
    let _ = provider.clone().finds(&[LookupResult::Nothing]);
    assert_eq!(resolve(&engine, "r2", letter.outbox.id, fail()).await.0, 200);
    let after = stored(&store, charge_of(&letter)).await;
    assert_eq!((after.status, after.failure.unwrap().code.name()), (ChargeStatus::Failed, "marked_failed"));
    assert_eq!(answer(&charge_again(&engine).await).0, 402);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_voided_at_the_provider_and_then_marked_failed() {
    let store = charted().await;
    let provider = Provider::new(&[Script::ApproveAmount(1_251)]);
    let engine = engine(&store, &provider).await;
    let first = engine.submit(holding("k", 1_250)).await;
    assert!(matches!(first, Submitted::Pending { .. }), "{first:?}");
    let letter = only(&engine).await;
    let found = approval_of(ProviderStep::Authorize, 1_251, &name(&engine, charge_of(&letter)));
    let _ = provider.clone().finds(&[LookupResult::Payment(found)]);
    assert_eq!(resolve(&engine, "r", letter.outbox.id, Resolution::Void).await.0, 200);
    assert_eq!(provider.steps(), [ProviderStep::Authorize, ProviderStep::Void]);
    assert_eq!(stored(&store, charge_of(&letter)).await.status, ChargeStatus::Failed);
    verified(&store).await;
}

/// Found by simulation: the void of a capture's dead letter was sent, although its claim is not for
/// voids.
#[tokio::test(start_paused = true)]
async fn an_operation_on_a_charge_has_no_hold_of_its_own_to_void() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    assert_eq!(answer(&engine.submit(holding("k", 1_250)).await).0, 201);
    let charge = made(&store, "k").await;
    provider.play(&[Script::ApproveAmount(1_249)]);
    let first = operate(&engine, "capture", charge, OperationKind::Capture, None).await;
    assert!(matches!(first, Submitted::Pending { .. }), "{first:?}");
    let letter = only(&engine).await;
    assert_eq!(resolve(&engine, "r", letter.outbox.id, Resolution::Void).await.0, 409);
    assert_eq!(provider.steps(), [ProviderStep::Authorize, ProviderStep::Capture], "nothing was sent");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_void_without_answer_is_a_step_like_any_other() {
    let store = charted().await;
    let provider = Provider::new(&[Script::ApproveAmount(1_251), Script::Executed(UNKNOWN)]);
    let engine = engine(&store, &provider).await;
    let _ = engine.submit(holding("k", 1_250)).await;
    let letter = only(&engine).await;
    let held = approval_of(ProviderStep::Authorize, 1_251, &name(&engine, charge_of(&letter)));
    let _ = provider.clone().finds(&[LookupResult::Payment(held)]);
    assert_eq!(resolve(&engine, "r", letter.outbox.id, Resolution::Void).await.0, 200);
    let after = stored(&store, charge_of(&letter)).await;
    assert_eq!(after.status, ChargeStatus::Processing, "whether it was given up is not known");
    assert_eq!(engine.dead_letters(TENANT, None, 10).await.unwrap(), [], "and no human is needed for it");
    seconds(120).await;
    let after = stored(&store, charge_of(&letter)).await;
    assert_eq!((after.status, after.failure.unwrap().code.name()), (ChargeStatus::Failed, "marked_failed"));
    let keys = provider.keys();
    assert_eq!((keys.len(), &keys[1]), (3, &keys[2]), "asked again under the same key");
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_splits_hold_is_voided_only_after_no_capture_can_arrive() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    funded(&engine, &[(guarded("wallet", Some(0), None), 300)]).await;
    let wallet = account(&engine, "wallet").await.id;
    provider.play(&[Script::Approve, Script::ApproveAmount(699)]);
    let first = engine.submit(splitting("k", 1_000, wallet, 300)).await;
    assert!(matches!(first, Submitted::Pending { .. }), "{first:?}");
    let letter = only(&engine).await;
    let held = || {
        LookupResult::Payment(approval_of(ProviderStep::Authorize, 700, &name(&engine, charge_of(&letter))))
    };
    let _ = provider.clone().finds(&[held(), held()]);
    assert_eq!(resolve(&engine, "early", letter.outbox.id, Resolution::Void).await.0, 409);
    seconds(2 * 3_600).await;
    assert_eq!(resolve(&engine, "late", letter.outbox.id, Resolution::Void).await.0, 200);
    assert_eq!(provider.steps(), [ProviderStep::Authorize, ProviderStep::Capture, ProviderStep::Void]);
    assert_eq!(stored(&store, charge_of(&letter)).await.status, ChargeStatus::Failed);
    assert_eq!(available(&engine, "wallet").await, 300, "released");
    verified(&store).await;
}

/// Regression: an adopted hold stayed parked, and its capture never ran.
#[tokio::test(start_paused = true)]
async fn a_split_whose_hold_is_adopted_continues_with_its_capture() {
    let (store, provider) = (charted().await, Provider::default());
    let engine = engine(&store, &provider).await;
    funded(&engine, &[(guarded("wallet", Some(0), None), 300)]).await;
    let wallet = account(&engine, "wallet").await.id;
    provider.play(&[Script::ApproveAmount(701)]);
    let _ = engine.submit(splitting("k", 1_000, wallet, 300)).await;
    let letter = only(&engine).await;
    let held = approval_of(ProviderStep::Authorize, 701, &name(&engine, charge_of(&letter)));
    let _ = provider.clone().finds(&[LookupResult::Payment(held)]);
    assert_eq!(resolve(&engine, "r", letter.outbox.id, Resolution::Adopt).await.0, 200);
    assert_eq!(stored(&store, charge_of(&letter)).await.status, ChargeStatus::Succeeded);
    assert_eq!(provider.steps(), [ProviderStep::Authorize, ProviderStep::Capture]);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_refund_without_evidence_is_parked_and_keeps_its_reservation_until_resolved() {
    let store = charted().await;
    let provider = Provider::default().profile("braintree-classic");
    let engine = engine(&store, &provider).await;
    let charge = charged(&engine, &store, "k", 1_000).await;
    provider.play(&[Script::Answer(UNKNOWN)]);
    let first = operate(&engine, "refund", charge, OperationKind::Refund, Some(400)).await;
    assert!(matches!(first, Submitted::Pending { .. }), "{first:?}");
    seconds(600).await;
    let letter = only(&engine).await;
    let after = stored(&store, charge).await;
    assert_eq!((after.status, after.sums.refunding), (ChargeStatus::Succeeded, 400));
    assert_eq!(
        done(&engine, "rest", charge, OperationKind::Refund, Some(600)).await.0,
        201,
        "the rest is free"
    );
    let more = operate(&engine, "more", charge, OperationKind::Refund, Some(1)).await;
    assert_eq!(more, Submitted::InProgress, "what is reserved is not");

    assert_eq!(resolve(&engine, "r1", letter.outbox.id, Resolution::Adopt).await.0, 409);
    let fail = Resolution::Fail { reason: "not in the provider's list".into() };
    assert_eq!(resolve(&engine, "r2", letter.outbox.id, fail).await.0, 200);
    let after = stored(&store, charge).await;
    assert_eq!((after.status, after.sums.refundable()), (ChargeStatus::PartiallyRefunded, 400));
    assert_eq!(done(&engine, "again", charge, OperationKind::Refund, Some(400)).await.0, 201);
    assert_eq!(posted(&engine, "chart:receivable:USD").await, 0);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_continues_as_if_the_work_had_not_been_parked() {
    let (store, provider, engine, letter) = differing(1_300).await;
    assert_eq!(resolve(&engine, "r", letter.outbox.id, Resolution::Retry).await.0, 200);
    let records = engine.timeline(TENANT, charge_of(&letter).into(), None, 100).await.unwrap().unwrap();
    let resolved = records.iter().find(|record| record.kind == AuditKind::Resolved).unwrap();
    let after = record_id(resolved.at, claim(&store, "k").await.revision + 1, 0);
    assert!(resolved.id < after, "a takeover in the same millisecond is ordered after it");
    seconds(120).await;
    assert_eq!(answer(&charge_again(&engine).await).0, 201);
    assert_eq!(provider.effects(), 1, "under the same key");
    verified(&store).await;
}

/// Found by simulation: a parked charge had executed, but was reported as failed, or executed again
/// under a key that the provider had forgotten.
#[tokio::test(start_paused = true)]
async fn a_retry_that_is_refused_proves_nothing() {
    let rejected = ProviderOutcome::Rejected(Rejection { fault: ProviderFault::Request, code: "no".into() });
    let (store, provider, engine, letter) = differing(1_300).await;
    provider.play(&[Script::Answer(rejected)]);
    assert_eq!(resolve(&engine, "r", letter.outbox.id, Resolution::Retry).await.0, 200);
    seconds(120).await;
    assert_eq!(answer(&charge_again(&engine).await).0, 201, "the refusal was of this call only");
    assert_eq!(provider.effects(), 1);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_resolution_whose_process_dies_leaves_the_dead_letter_resolvable() {
    for commits in 0..3 {
        let (store, provider, _, letter) = differing(1_300).await;
        let mortal = store.another();
        let doomed = engine(&mortal, &provider).await;
        mortal.dies_after(commits);
        let id = letter.outbox.id;
        let fail = || Resolution::Fail { reason: "nothing there".into() };
        let dying = engine_resolve(doomed, id, fail());
        let _ = tokio::time::timeout(std::time::Duration::from_secs(20), dying).await;
        seconds(60).await;
        let heir = engine(&store.another(), &provider).await;
        if heir.dead_letter(TENANT, id).await.unwrap().is_some() {
            assert_eq!(resolve(&heir, "r2", id, fail()).await.0, 200, "after {commits} commits");
        }
        assert_eq!(stored(&store, charge_of(&letter)).await.status, ChargeStatus::Failed);
        verified(&store).await;
    }
}

async fn engine_resolve(engine: TestEngine, id: SubjectId, how: Resolution) -> Submitted {
    engine.resolve(request("r1", &(id, &how)), id, how).await
}

#[tokio::test(start_paused = true)]
async fn a_charge_that_the_provider_took_twice_is_not_marked_failed() {
    let (store, provider, engine, letter) = differing(1_300).await;
    let _ = provider.clone().finds(&[LookupResult::Several]);
    let fail = Resolution::Fail { reason: "never arrived".into() };
    assert_eq!(resolve(&engine, "r", letter.outbox.id, fail).await.0, 409);
    assert_eq!(stored(&store, charge_of(&letter)).await.status, ChargeStatus::Parked);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_who_hangs_up_cancels_nothing() {
    let (store, provider, _, letter) = differing(1_300).await;
    let engine = engine(&store.jumpy(3), &provider).await;
    let id = letter.outbox.id;
    let fail = Resolution::Fail { reason: "never arrived".into() };
    let mut resolving = engine.resolve(request("r", &id), id, fail);
    std::future::poll_fn(|context| {
        assert!(resolving.as_mut().poll(context).is_pending(), "it ended at once");
        std::task::Poll::Ready(())
    })
    .await;
    drop(resolving);
    seconds(5).await;
    assert_eq!(stored(&store, charge_of(&letter)).await.status, ChargeStatus::Failed);
    assert_eq!(engine.dead_letters(TENANT, None, 10).await.unwrap(), []);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_charge_taken_during_its_void_is_not_marked_failed() {
    let store = charted().await;
    let refused =
        ProviderOutcome::Rejected(Rejection { fault: ProviderFault::Request, code: "captured".into() });
    let provider = Provider::new(&[Script::ApproveAmount(1_251), Script::Answer(refused)]);
    let engine = engine(&store, &provider).await;
    let _ = engine.submit(holding("k", 1_250)).await;
    let letter = only(&engine).await;
    let held = approval_of(ProviderStep::Authorize, 1_251, &name(&engine, charge_of(&letter)));
    let _ = provider.clone().finds(&[LookupResult::Payment(held)]);
    assert_eq!(resolve(&engine, "void", letter.outbox.id, Resolution::Void).await.0, 200);
    seconds(120).await;
    let letter = only(&engine).await;
    assert_eq!(letter.outbox.parked.unwrap().name(), "cannot_undo");
    let captured = || {
        let decline = Decline { code: "captured".into(), decline_code: None, reference: None };
        LookupResult::Payment(ProviderOutcome::Declined(decline))
    };
    for (key, how, reason) in [
        ("fail", Resolution::Fail { reason: "gone".into() }, "executed"),
        ("adopt", Resolution::Adopt, "no_evidence"),
    ] {
        let _ = provider.clone().finds(&[captured()]);
        let (status, body) = resolve(&engine, key, letter.outbox.id, how).await;
        assert_eq!(status, 409, "{body}");
        assert!(body.to_lowercase().contains(&reason.replace('_', "")) || body.contains(reason), "{body}");
    }
    assert_eq!(stored(&store, charge_of(&letter)).await.status, ChargeStatus::Parked);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn another_payment_is_not_adopted() {
    let (store, provider, engine, letter) = differing(1_249).await;
    let _ = provider.clone().finds(&[LookupResult::Payment(approval_of(
        ProviderStep::Charge,
        1_249,
        "ch_another",
    ))]);
    let (status, body) = resolve(&engine, "r", letter.outbox.id, Resolution::Adopt).await;
    assert_eq!(status, 409, "{body}");
    assert_eq!(stored(&store, charge_of(&letter)).await.status, ChargeStatus::Parked);
    verified(&store).await;
}

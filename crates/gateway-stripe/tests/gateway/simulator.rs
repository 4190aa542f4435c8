//! Connector and simulator agree on the protocol, faults included.

use crate::provider::{HASTY, KEY, PATIENT, call, charge, look_up, lookup, settings};
use counterfoil_core::payments::provider::{Cause, LookupResult, ProviderOutcome, ProviderStep, Stands};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup};
use counterfoil_gateway_stripe::StripeGateway;
use counterfoil_provider_simulator::{EffectKind, Faults, Options, Running};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

fn start(timeout: Duration) -> (Running, StripeGateway) {
    let provider = Running::start(Options::default()).unwrap();
    let url = format!("stripe+http://{KEY}@{}", provider.addr());
    (provider, StripeGateway::new(settings(&url, timeout)).unwrap())
}

/// Calls with this fault, then again without it. Compares both outcomes and the number of effects
/// in between.
async fn doubted(faults: Faults, cause: Cause, executed: usize) {
    let (provider, gateway) = start(PATIENT);
    provider.set_faults(faults).unwrap();
    assert_eq!(charge(&gateway).await, ProviderOutcome::Unknown(cause));
    assert_eq!(provider.effects().len(), executed);
    assert_eq!(
        matches!(look_up(&gateway).await, LookupResult::Payment(ProviderOutcome::Approved(_))),
        executed == 1
    );
    provider.set_faults(Faults::default()).unwrap();
    let again = charge(&gateway).await;
    assert!(matches!(again, ProviderOutcome::Approved(_)), "{again:?}");
    assert_eq!(provider.effects().len(), 1);
}

#[tokio::test]
async fn a_charge_is_executed_once_and_found_again() {
    let (provider, gateway) = start(PATIENT);
    assert_eq!(look_up(&gateway).await, LookupResult::Nothing);
    let outcome = charge(&gateway).await;
    let ProviderOutcome::Approved(approval) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((approval.stands, approval.amount_minor), (Stands::Captured, 1250));
    assert_eq!(approval.payment.as_deref(), Some("ch_1"));
    assert_eq!(charge(&gateway).await, outcome);
    assert_eq!(look_up(&gateway).await, LookupResult::Payment(outcome.clone()));
    assert_eq!(provider.effects().len(), 1);
}

#[tokio::test]
async fn an_authorization_is_held() {
    let (_provider, gateway) = start(PATIENT);
    let mut hold = call(gateway.binding());
    hold.step = ProviderStep::Authorize;
    let outcome = gateway.call(hold).await;
    let ProviderOutcome::Approved(approval) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((approval.stands, approval.amount_minor), (Stands::Held, 1250));
}

/// Holds 12.50 and returns the provider's reference.
async fn held(gateway: &StripeGateway) -> String {
    let hold = ProviderCall { step: ProviderStep::Authorize, ..call(gateway.binding()) };
    match gateway.call(hold).await {
        ProviderOutcome::Approved(approval) => approval.reference,
        other => panic!("{other:?}"),
    }
}

async fn step(
    gateway: &StripeGateway,
    step: ProviderStep,
    reference: &str,
    minor: i64,
    key: &str,
) -> ProviderOutcome {
    let amount = Money::new(minor, Asset::parse("USD").unwrap()).unwrap();
    let (reference, key) = (Some(reference.to_owned()), key.to_owned());
    gateway.call(ProviderCall { step, reference, amount, key, ..call(gateway.binding()) }).await
}

async fn was(gateway: &StripeGateway, step: ProviderStep, reference: &str) -> LookupResult {
    let reference = Some(reference.to_owned());
    gateway.lookup(ProviderLookup { reference, ..lookup(gateway.binding(), step) }).await
}

fn stands(outcome: &ProviderOutcome) -> Option<(Stands, i64)> {
    match outcome {
        ProviderOutcome::Approved(approval) => Some((approval.stands, approval.amount_minor)),
        _ => None,
    }
}

#[tokio::test]
async fn a_hold_is_captured_in_part_once_and_refunded_up_to_that() {
    let (provider, gateway) = start(PATIENT);
    let pi = held(&gateway).await;
    assert_eq!(was(&gateway, ProviderStep::Capture, &pi).await, LookupResult::Nothing);
    assert_eq!(was(&gateway, ProviderStep::Void, &pi).await, LookupResult::Nothing);
    let captured = step(&gateway, ProviderStep::Capture, &pi, 1_000, "k1").await;
    assert_eq!(stands(&captured), Some((Stands::Captured, 1_000)));
    assert_eq!(step(&gateway, ProviderStep::Capture, &pi, 1_000, "k1").await, captured);
    assert_eq!(was(&gateway, ProviderStep::Capture, &pi).await, LookupResult::Payment(captured));
    let again = step(&gateway, ProviderStep::Capture, &pi, 1_000, "k2").await;
    assert!(matches!(again, ProviderOutcome::Rejected(_)), "{again:?}");
    let late = was(&gateway, ProviderStep::Void, &pi).await;
    assert!(matches!(late, LookupResult::Payment(ProviderOutcome::Declined(_))), "{late:?}");

    let refunded = step(&gateway, ProviderStep::Refund, &pi, 400, "k3").await;
    assert_eq!(stands(&refunded), Some((Stands::Refunded, 400)));
    assert_eq!(step(&gateway, ProviderStep::Refund, &pi, 400, "k3").await, refunded);
    let above = step(&gateway, ProviderStep::Refund, &pi, 601, "k4").await;
    assert!(matches!(above, ProviderOutcome::Rejected(_)), "{above:?}");
    assert_eq!(was(&gateway, ProviderStep::Refund, &pi).await, LookupResult::Unclear(Cause::Unreadable));
    let effects: Vec<_> = provider.effects().iter().map(|effect| (effect.kind, effect.amount)).collect();
    let expected = [(EffectKind::Authorize, 1_250), (EffectKind::Capture, 1_000), (EffectKind::Refund, 400)];
    assert_eq!(effects, expected);
}

#[tokio::test]
async fn a_hold_is_voided_and_never_captured_after() {
    let (_provider, gateway) = start(PATIENT);
    let pi = held(&gateway).await;
    let voided = step(&gateway, ProviderStep::Void, &pi, 1_250, "k1").await;
    assert_eq!(stands(&voided), Some((Stands::Canceled, 1_250)));
    assert_eq!(was(&gateway, ProviderStep::Void, &pi).await, LookupResult::Payment(voided));
    let late = was(&gateway, ProviderStep::Capture, &pi).await;
    assert!(matches!(late, LookupResult::Payment(ProviderOutcome::Declined(_))), "{late:?}");
    let refused = step(&gateway, ProviderStep::Capture, &pi, 1_250, "k2").await;
    assert!(matches!(refused, ProviderOutcome::Rejected(_)), "{refused:?}");
}

#[tokio::test]
async fn a_step_without_a_payment_to_do_it_to_is_not_sent() {
    let (provider, gateway) = start(PATIENT);
    for asked in [ProviderStep::Capture, ProviderStep::Void, ProviderStep::Refund] {
        let call = ProviderCall { step: asked, ..call(gateway.binding()) };
        assert_eq!(gateway.call(call).await, ProviderOutcome::NotSent);
        assert_eq!(
            gateway.lookup(lookup(gateway.binding(), asked)).await,
            LookupResult::Unclear(Cause::Unreadable)
        );
    }
    assert_eq!(provider.effects().len(), 0);
}

#[tokio::test]
async fn a_declined_card_is_declined_by_call_and_by_lookup() {
    let (provider, gateway) = start(PATIENT);
    let mut poor = call(gateway.binding());
    poor.instrument = Some(Masked::new("pm_card_chargeDeclinedInsufficientFunds".to_owned()));
    let outcome = gateway.call(poor).await;
    let ProviderOutcome::Declined(decline) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(decline.decline_code.as_deref(), Some("insufficient_funds"));
    assert!(decline.reference.is_some());
    assert_eq!(look_up(&gateway).await, LookupResult::Payment(outcome.clone()));
    assert_eq!(provider.effects().len(), 0);
}

#[tokio::test]
async fn a_key_reused_for_another_payment_is_unreadable() {
    let (provider, gateway) = start(PATIENT);
    charge(&gateway).await;
    let mut other = call(gateway.binding());
    other.payment = "ch_2".to_owned();
    assert_eq!(gateway.call(other).await, ProviderOutcome::Unknown(Cause::Unreadable));
    assert_eq!(provider.effects().len(), 1);
}

#[tokio::test]
async fn a_server_error_before_or_after_the_effect_looks_the_same() {
    let before = Faults { error_before: 1.0, ..Faults::default() };
    let after = Faults { error_after: 1.0, ..Faults::default() };
    doubted(before, Cause::ServerError, 0).await;
    doubted(after, Cause::ServerError, 1).await;
}

#[tokio::test]
async fn a_cut_before_or_after_the_effect_looks_the_same() {
    let before = Faults { drop_before: 1.0, ..Faults::default() };
    let after = Faults { drop_after: 1.0, ..Faults::default() };
    doubted(before, Cause::Cut, 0).await;
    doubted(after, Cause::Cut, 1).await;
}

#[tokio::test]
async fn an_effect_without_an_answer_is_a_timeout() {
    let (provider, gateway) = start(HASTY);
    let hang = Faults { hang_after: 1.0, ..Faults::default() };
    provider.set_faults(hang).unwrap();
    assert_eq!(charge(&gateway).await, ProviderOutcome::Unknown(Cause::Timeout));
    assert_eq!(provider.effects().len(), 1);
}

#[tokio::test]
async fn a_provider_that_executes_twice_is_seen_as_several() {
    let (provider, gateway) = start(PATIENT);
    let twice = Faults { duplicate: 1.0, ..Faults::default() };
    provider.set_faults(twice).unwrap();
    charge(&gateway).await;
    assert_eq!(provider.effects().len(), 2);
    assert_eq!(look_up(&gateway).await, LookupResult::Several);
}

/// Deadlines so short that they fall before, at and after the moment of sending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_reported_as_not_sent_is_never_executed() {
    let (provider, patient) = start(PATIENT);
    let mut not_sent = HashSet::new();
    for round in 0..24_u64 {
        let url = format!("stripe+http://{KEY}@{}", provider.addr());
        let mut rushed = settings(&url, Duration::from_millis(1 + round % 6));
        rushed.connections_max = 64;
        let gateway = Arc::new(StripeGateway::new(rushed).unwrap());
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..64 {
            let gateway = Arc::clone(&gateway);
            calls.spawn(async move {
                let mut call = call(gateway.binding());
                call.payment = format!("ch_{round}_{number}");
                call.key = format!("cf_{round}_{number}");
                let payment = call.payment.clone();
                (payment, gateway.call(call).await)
            });
        }
        while let Some(done) = calls.join_next().await {
            let (payment, outcome) = done.unwrap();
            if matches!(outcome, ProviderOutcome::NotSent | ProviderOutcome::Busy { .. }) {
                not_sent.insert(payment);
            }
        }
    }
    // One more exchange, to let pending ones finish.
    charge(&patient).await;
    for effect in provider.effects() {
        let payment = effect.payment.unwrap();
        assert!(!not_sent.contains(&*payment), "{payment} was executed");
    }
}

/// Pays out `minor` to a bank account under `key`.
async fn pay_out(gateway: &StripeGateway, minor: i64, to: Option<&str>, key: &str) -> ProviderOutcome {
    let amount = Money::new(minor, Asset::parse("USD").unwrap()).unwrap();
    let instrument = to.map(|to| Masked::new(to.to_owned()));
    let (step, payment, key) = (ProviderStep::Payout, "po_ours".to_owned(), key.to_owned());
    gateway.call(ProviderCall { step, amount, instrument, payment, key, ..call(gateway.binding()) }).await
}

async fn paid_out(gateway: &StripeGateway, reference: Option<&str>) -> LookupResult {
    let (reference, payment) = (reference.map(str::to_owned), "po_ours".to_owned());
    gateway
        .lookup(ProviderLookup { reference, payment, ..lookup(gateway.binding(), ProviderStep::Payout) })
        .await
}

#[tokio::test]
async fn a_payout_is_made_once_and_found_by_its_reference() {
    let (provider, gateway) = start(PATIENT);
    let outcome = pay_out(&gateway, 400, Some("ba_1"), "k1").await;
    let ProviderOutcome::Approved(approval) = &outcome else { panic!("{outcome:?}") };
    assert_eq!((approval.stands, approval.amount_minor), (Stands::PaidOut, 400));
    assert_eq!((approval.asset, approval.payment.as_deref()), (Asset::parse("USD").ok(), Some("po_ours")));
    assert_eq!(pay_out(&gateway, 400, Some("ba_1"), "k1").await, outcome);
    let other = pay_out(&gateway, 401, Some("ba_1"), "k1").await;
    assert_eq!(other, ProviderOutcome::Unknown(Cause::Unreadable), "the key belongs to another content");
    assert_eq!(paid_out(&gateway, Some(&approval.reference)).await, LookupResult::Payment(outcome.clone()));
    for unknown in [None, Some("po_0"), Some("po_1/x")] {
        assert_eq!(
            paid_out(&gateway, unknown).await,
            LookupResult::Unclear(Cause::Unreadable),
            "{unknown:?}"
        );
    }
    assert!(matches!(pay_out(&gateway, 5, None, "k2").await, ProviderOutcome::Approved(_)));
    let kinds: Vec<_> = provider.effects().iter().map(|effect| (effect.kind, effect.amount)).collect();
    assert_eq!(kinds, [(EffectKind::Payout, 400), (EffectKind::Payout, 5)]);
    assert_eq!(provider.effects()[0].object, approval.reference);
}

#[tokio::test]
async fn a_payout_that_the_bank_does_not_take_is_declined_with_its_reason() {
    let (provider, gateway) = start(PATIENT);
    let outcome = pay_out(&gateway, 400, Some("ba_account_closed"), "k1").await;
    let ProviderOutcome::Declined(decline) = &outcome else { panic!("{outcome:?}") };
    assert_eq!(
        (decline.code.as_str(), decline.decline_code.as_deref()),
        ("payout_failed", Some("account_closed"))
    );
    let reference = decline.reference.clone().unwrap();
    assert_eq!(paid_out(&gateway, Some(&reference)).await, LookupResult::Payment(outcome));
    let rejected = pay_out(&gateway, 400, Some("card_1"), "k2").await;
    assert!(matches!(rejected, ProviderOutcome::Rejected(_)), "{rejected:?}");
    assert_eq!(provider.effects(), []);
}

#[tokio::test]
async fn a_payout_under_faults_is_in_doubt_and_made_once() {
    for (faults, cause, executed) in [
        (Faults { drop_after: 1.0, ..Faults::default() }, Cause::Cut, 1),
        (Faults { drop_before: 1.0, ..Faults::default() }, Cause::Cut, 0),
        (Faults { error_after: 1.0, ..Faults::default() }, Cause::ServerError, 1),
    ] {
        let (provider, gateway) = start(PATIENT);
        provider.set_faults(faults).unwrap();
        assert_eq!(pay_out(&gateway, 400, None, "k1").await, ProviderOutcome::Unknown(cause));
        assert_eq!(provider.effects().len(), executed);
        provider.set_faults(Faults::default()).unwrap();
        let again = pay_out(&gateway, 400, None, "k1").await;
        assert!(matches!(again, ProviderOutcome::Approved(_)), "{again:?}");
        assert_eq!(provider.effects().len(), 1);
    }
    let (provider, gateway) = start(PATIENT);
    provider.set_faults(Faults { duplicate: 1.0, ..Faults::default() }).unwrap();
    assert!(matches!(pay_out(&gateway, 400, None, "k1").await, ProviderOutcome::Approved(_)));
    assert_eq!(provider.effects().len(), 2, "its own bug, and its effects tell of it");
}

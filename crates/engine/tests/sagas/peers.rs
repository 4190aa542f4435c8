//! Payouts to a peer: valid names, the debt to the peer, and work that waits for a missing peer.

use crate::support::ledger::*;
use crate::support::peer::{alone, with_peer_eu};
use crate::support::*;
use crate::words::*;
use counterfoil_core::audit::AuditKind;
use counterfoil_core::ledger::account::Side;
use counterfoil_core::payments::charge::FailureCode;
use counterfoil_core::payments::payout::{Payout, PayoutStatus};
use counterfoil_core::payments::provider::{Cause, Decline, LookupResult, ProviderOutcome, ProviderStep};
use counterfoil_core::types::peer::PeerName;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_engine::policy::EnginePolicy;
use counterfoil_engine::service::{Resolution, Service, Submitted};
use counterfoil_gateway::breaker;
use counterfoil_store::{Due, Store};

const OWED: &str = "chart:peer:eu:USD";
const MAIN: &str = "chart:payable:USD";

async fn staged(provider: &Provider) -> (SharedStore, TestEngine) {
    let store = charted().await;
    let engine = engine(&store, provider).await;
    charged(&engine, &store, "funds", 1_000).await;
    (store, engine)
}

async fn only(engine: &TestEngine) -> Payout {
    let mut all = engine.payouts(TENANT, None, 10).await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Polls for work every minute, so that hours pass quickly.
fn unhurried() -> EnginePolicy {
    EnginePolicy { poll: Span::from_ms(60_000), ..policy() }
}

/// The only flaw of a request.
fn flaw(submitted: Submitted) -> (String, String) {
    match submitted {
        Submitted::Invalid(mut flaws) if flaws.len() == 1 => {
            let flaw = flaws.remove(0);
            (flaw.pointer, flaw.message)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_peer_is_refused_by_name_and_the_key_stays_free() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider).await;
    let mut command = paying_peer("k", 400);
    command.wanted.peer = PeerName::parse("asia").ok();
    let (place, message) = flaw(engine.pay_out(command).await);
    assert_eq!(place, "/peer");
    assert!(message.contains("but eu; ask the operator"), "{message}");
    assert_eq!(answer(&engine.pay_out(paying_peer("k", 400)).await).0, 201);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn the_debt_to_a_peer_cannot_be_paid_out_to_the_peer() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider).await;
    assert_eq!(answer(&engine.pay_out(paying_peer("k", 400)).await).0, 201);
    let mut command = paying_peer("back", 100);
    command.wanted.account = Some(account(&engine, OWED).await.id);
    let (place, message) = flaw(engine.pay_out(command.clone()).await);
    assert_eq!((place.as_str(), message.contains("name another")), ("/account", true));
    // A payout to the peer's bank account settles the debt.
    command.request = request("settled", &"settled");
    (command.wanted.peer, command.wanted.amount) = (None, paying_out("x", 400).wanted.amount);
    assert_eq!(answer(&engine.pay_out(command).await).0, 201);
    assert_eq!(balance(&engine, OWED).await, view(0, 0, 0));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_payout_to_a_peer_is_owed_to_the_peer_and_replayed() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider).await;
    let first = answer(&engine.pay_out(paying_peer("k", 400)).await);
    assert_eq!(first.0, 201);
    assert_eq!(answer(&engine.pay_out(paying_peer("k", 400)).await), (201, first.1, true));
    let owed = account(&engine, OWED).await;
    assert_eq!((owed.normal, owed.guard.is_set()), (Side::Credit, false));
    assert_eq!(balance(&engine, OWED).await, view(400, 0, 0));
    assert_eq!(balance(&engine, MAIN).await, view(600, 0, 0));
    assert_eq!(balance(&engine, "chart:receivable:USD").await, view(1_000, 0, 0));
    let payout = only(&engine).await;
    assert_eq!(
        (payout.status, payout.provider.peer(), payout.provider.name()),
        (PayoutStatus::Paid, Some("eu"), "eu")
    );
    assert_eq!(provider.seen().map(|calls| calls.len()), [1, 1]);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_payout_declined_by_a_peer_frees_its_money_and_keeps_the_reason() {
    let decline =
        Decline { code: "cap_exceeded".into(), decline_code: Some("cap_exceeded".into()), reference: None };
    let provider = Provider::default();
    let (store, engine) = staged(&provider).await;
    provider.play(&[Script::Answer(UNKNOWN), Script::Answer(ProviderOutcome::Declined(decline))]);
    assert!(matches!(engine.pay_out(paying_peer("k", 400)).await, Submitted::Pending { .. }));
    seconds(60).await;
    assert_eq!(
        answer(&engine.pay_out(paying_peer("k", 400)).await).0,
        402,
        "a peer says one thing of one key"
    );
    let failure = only(&engine).await.failure.unwrap();
    assert_eq!(failure.code, FailureCode::PayoutFailed);
    assert_eq!(failure.decline_code.as_deref(), Some("cap_exceeded"));
    assert_eq!(balance(&engine, MAIN).await, view(1_000, 0, 0));
    assert_eq!(balance(&engine, OWED).await, view(0, 0, 0));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn work_of_a_missing_peer_waits_and_continues_when_the_peer_is_back() {
    let provider = Provider::default();
    let (store, before) = staged(&provider).await;
    provider.play(&[Script::Executed(UNKNOWN)]);
    assert!(matches!(before.pay_out(paying_peer("k", 400)).await, Submitted::Pending { .. }));
    before.drain(Span::ZERO).await;
    let calls = || provider.seen().map(|calls| calls.len());
    let asked = calls();

    let without = engine_among(&store.another(), alone(&provider), unhurried()).await;
    // More than half of the time for which peers keep keys.
    seconds(3_700).await;
    assert_eq!(calls(), asked, "no other provider was asked");
    let payout = only(&without).await;
    assert_eq!(payout.status, PayoutStatus::Processing);
    assert_eq!(balance(&without, MAIN).await, view(1_000, 400, 0), "the money stays reserved");
    let history = without.timeline(TENANT, payout.id.into(), None, 1_000).await.unwrap().unwrap();
    let waits = |detail: &str| detail == "reason=peer_not_set_up";
    let waited = history.iter().filter(|record| record.kind == AuditKind::Pending && waits(&record.detail));
    assert!((10..14).contains(&waited.count()), "it can be seen that it waits, and on what");
    let (place, _) = flaw(without.pay_out(paying_peer("new", 100)).await);
    assert_eq!(place, "/peer");
    let again = without.pay_out(paying_peer("k", 400)).await;
    assert!(matches!(again, Submitted::Pending { .. }), "{again:?}");
    verified(&store).await;
    without.drain(Span::ZERO).await;

    // The peer may have forgotten the key, so an operator has to resolve the work.
    let after = engine(&store.another(), &provider).await;
    seconds(600).await;
    let letters = after.dead_letters(TENANT, None, 10).await.unwrap();
    assert_eq!((letters.len(), letters[0].outbox.parked.unwrap().name()), (1, "no_evidence"));
    assert_eq!(calls(), asked);
    let name = letters[0].outbox.payment.reference(after.references()).to_string();
    let id = letters[0].outbox.id;
    let _provider =
        provider.clone().finds(&[LookupResult::Payment(approval_of(ProviderStep::Payout, 400, &name))]);
    let how = Resolution::Adopt;
    assert_eq!(answer(&after.resolve(request("adopt", &(id, &how)), id, how).await).0, 200);
    assert_eq!(balance(&after, OWED).await, view(400, 0, 0));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn unsent_work_continues_when_its_peer_is_back() {
    let provider = Provider::default();
    let (store, before) = staged(&provider).await;
    provider.play(&[Script::Answer(ProviderOutcome::NotSent)]);
    assert!(matches!(before.pay_out(paying_peer("k", 400)).await, Submitted::Pending { .. }));
    before.drain(Span::ZERO).await;
    let without = engine_among(&store.another(), alone(&provider), unhurried()).await;
    seconds(3_700).await;
    assert_eq!(only(&without).await.status, PayoutStatus::Processing, "waiting is no attempt");
    without.drain(Span::ZERO).await;
    let after = engine(&store.another(), &provider).await;
    seconds(600).await;
    assert_eq!(only(&after).await.status, PayoutStatus::Paid);
    assert_eq!(balance(&after, OWED).await, view(400, 0, 0));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn work_whose_peer_cannot_be_asked_is_not_resolved() {
    let provider = Provider::default();
    let (store, before) = staged(&provider).await;
    provider.play(&[Script::ApproveAmount(401)]);
    assert!(matches!(before.pay_out(paying_peer("k", 400)).await, Submitted::Pending { .. }));
    before.drain(Span::ZERO).await;
    let without = engine_among(&store.another(), alone(&provider), policy()).await;
    let id = without.dead_letters(TENANT, None, 10).await.unwrap().remove(0).outbox.id;
    let fail = || Resolution::Fail { reason: "not there".into() };
    for (key, how) in [("adopt", Resolution::Adopt), ("fail", fail())] {
        let (status, body, _) = answer(&without.resolve(request(key, &(id, &how)), id, how).await);
        assert_eq!(status, 409, "{body}");
    }
    assert_eq!(only(&without).await.status, PayoutStatus::Parked);
    assert_eq!(provider.lookups(), 0);
    without.drain(Span::ZERO).await;
    let with = engine(&store.another(), &provider).await;
    // The peer is back: first without an answer, then with one that gives no evidence. Only then
    // the operator's word counts.
    let _ = provider
        .clone()
        .finds(&[LookupResult::Unclear(Cause::Timeout), LookupResult::Unclear(Cause::Unreadable)]);
    for (key, status) in [("again", 409), ("at last", 200)] {
        assert_eq!(answer(&with.resolve(request(key, &(id, &fail())), id, fail()).await).0, status, "{key}");
    }
    assert_eq!(provider.lookups(), 2);
    assert_eq!(balance(&with, MAIN).await, view(1_000, 0, 0));
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_down_does_not_delay_the_provider() {
    let provider = Provider::default();
    let store = charted().await;
    let strict = breaker::BreakerPolicy { failures: 2, open: Span::from_ms(3_600_000) };
    let engine =
        engine_among(&store, with_peer_eu(&provider), EnginePolicy { breaker: strict, ..policy() }).await;
    charged(&engine, &store, "funds", 1_000).await;
    provider.play(&[Script::Answer(UNKNOWN), Script::Answer(UNKNOWN)]);
    for key in ["one", "two", "three"] {
        assert!(matches!(engine.pay_out(paying_peer(key, 100)).await, Submitted::Pending { .. }));
    }
    assert_eq!(provider.seen()[1].len(), 2, "its breaker is open");
    assert_eq!(answer(&charge(&engine, "card", 500).await).0, 201);
    assert_eq!(answer(&engine.pay_out(paying_out("bank", 100)).await).0, 201);
    verified(&store).await;
}

#[tokio::test(start_paused = true)]
async fn work_of_a_peer_that_is_down_does_not_delay_other_work() {
    let provider = Provider::default();
    let (store, engine) = staged(&provider).await;
    // This many failures leave one recovery slot, and the work that takes it hangs.
    for number in 0..10 {
        provider.play(&[Script::Answer(UNKNOWN)]);
        let key = format!("k{number}");
        assert!(matches!(engine.pay_out(paying_peer(&key, 10)).await, Submitted::Pending { .. }));
    }
    provider.play(&[Script::Hang]);
    seconds(60).await;
    assert_eq!(provider.steps().len(), 1 + 10 + 1, "one is tried again");
    let long_due = Time::from_ms(store.now().ms() - 1_000);
    assert_eq!(store.due(Due::Outbox, long_due, 100).await.unwrap(), [], "the others wait");
}

//! The same proofs for every saga: each step answered twice, each step declined, a crash after each
//! commit, each compensation repeated, a failing compensation. In every case the money adds up and
//! nothing is half done.

use crate::support::ledger::*;
use crate::support::*;
use crate::words::*;
use counterfoil_core::outbox::{FLOWS, Flow};
use counterfoil_core::payments::charge::ChargeStatus;
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::payout;
use counterfoil_core::payments::provider::{ProviderFault, ProviderOutcome, ProviderStep, Rejection};
use counterfoil_core::types::id::{ChargeId, PayoutId};
use counterfoil_core::types::time::Span;
use counterfoil_engine::service::{Resolution, Service, Submitted};

/// Every saga: each flow, and a payout to a peer.
const SAGAS: [(Flow, Ends); 8] = [
    (Flow::Charge, Ends::Here),
    (Flow::Authorize, Ends::Here),
    (Flow::Split, Ends::Here),
    (Flow::Capture, Ends::Here),
    (Flow::Void, Ends::Here),
    (Flow::Refund, Ends::Here),
    (Flow::Payout, Ends::Here),
    (Flow::Payout, Ends::AtAPeer),
];

/// The ledger that receives the money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Here,
    AtAPeer,
}

/// A saga before the start: a store with the needed rows, and the request.
struct Stage {
    store: SharedStore,
    provider: Provider,
    flow: Flow,
    ends: Ends,
    /// The charge of an operation.
    charge: Option<ChargeId>,
}

/// The amount of a charge, and the wallet's part of a split.
const AMOUNT: i64 = 1_000;
const PART: i64 = 300;

impl Stage {
    async fn set((flow, ends): (Flow, Ends)) -> Stage {
        let (store, provider) = (charted().await, Provider::default().profile("ideal"));
        let engine = engine(&store, &provider).await;
        funded(&engine, &[(guarded("wallet", Some(0), None), PART)]).await;
        let charge = match flow {
            Flow::Charge | Flow::Authorize | Flow::Split => None,
            // A payout needs earlier income.
            Flow::Payout => {
                charged(&engine, &store, "first", AMOUNT).await;
                None
            }
            Flow::Capture | Flow::Void => Some(held(&engine, &store, "first", AMOUNT).await),
            Flow::Refund => Some(charged(&engine, &store, "first", AMOUNT).await),
        };
        engine.drain(Span::ZERO).await;
        Stage { store, provider, flow, ends, charge }
    }

    /// The provider's steps without failures.
    fn steps(&self) -> &'static [ProviderStep] {
        match self.flow {
            Flow::Charge => &[ProviderStep::Charge],
            Flow::Authorize => &[ProviderStep::Authorize],
            Flow::Split => &[ProviderStep::Authorize, ProviderStep::Capture],
            Flow::Capture => &[ProviderStep::Capture],
            Flow::Void => &[ProviderStep::Void],
            Flow::Refund => &[ProviderStep::Refund],
            Flow::Payout => &[ProviderStep::Payout],
        }
    }

    async fn ask(&self, engine: &TestEngine) -> Submitted {
        let kind = match self.flow {
            Flow::Charge => return engine.submit(command("saga", AMOUNT)).await,
            Flow::Authorize => return engine.submit(holding("saga", AMOUNT)).await,
            Flow::Payout => {
                let command = match self.ends {
                    Ends::Here => paying_out("saga", AMOUNT),
                    Ends::AtAPeer => paying_peer("saga", AMOUNT),
                };
                return engine.pay_out(command).await;
            }
            Flow::Split => {
                let wallet = account(engine, "wallet").await.id;
                return engine.submit(splitting("saga", AMOUNT, wallet, PART)).await;
            }
            Flow::Capture => OperationKind::Capture,
            Flow::Void => OperationKind::Void,
            Flow::Refund => OperationKind::Refund,
        };
        operate(engine, "saga", self.charge.unwrap(), kind, None).await
    }

    /// Retries until there is an answer.
    async fn answered(&self, engine: &TestEngine) -> (u16, String) {
        for _ in 0..200 {
            match self.ask(engine).await {
                Submitted::Answer { settled, .. } => {
                    let body = String::from_utf8(settled.reply.body.to_vec()).unwrap();
                    return (settled.reply.status, body);
                }
                Submitted::Pending { .. } | Submitted::InUse => {
                    seconds(30).await;
                    self.by_a_human(engine).await;
                }
                other => panic!("{:?}: {other:?}", self.flow),
            }
        }
        panic!("{:?} is never answered", self.flow)
    }

    /// A step without lookups that is declined after a crash becomes a dead letter. The operator
    /// finds nothing at the provider.
    async fn by_a_human(&self, engine: &TestEngine) {
        for letter in engine.dead_letters(TENANT, None, 10).await.unwrap() {
            let id = letter.outbox.id;
            let how = Resolution::Fail { reason: "not in the provider's list".into() };
            let resolved = engine.resolve(request("resolve", &(id, &how)), id, how).await;
            assert_eq!(answer(&resolved).0, 200, "{:?}", self.flow);
        }
    }

    /// The end of a completed saga: executed once, in full, and posted.
    async fn is_done(&self, engine: &TestEngine, status: u16, before: usize) {
        let expected = match self.flow {
            Flow::Charge | Flow::Authorize | Flow::Split | Flow::Refund | Flow::Payout => 201,
            Flow::Capture | Flow::Void => 200,
        };
        assert_eq!(status, expected, "{:?}", self.flow);
        let wallet = if self.flow == Flow::Split { 0 } else { PART };
        assert_eq!(available(engine, "wallet").await, i128::from(wallet), "{:?}", self.flow);
        let (stands, owed) = match self.flow {
            Flow::Charge | Flow::Capture => (ChargeStatus::Succeeded, AMOUNT),
            Flow::Split => (ChargeStatus::Succeeded, AMOUNT - PART),
            Flow::Authorize => (ChargeStatus::RequiresCapture, 0),
            Flow::Void => (ChargeStatus::Voided, 0),
            Flow::Refund => (ChargeStatus::Refunded, 0),
            Flow::Payout => return self.paid_out(engine, payout::PayoutStatus::Paid, 0, before).await,
        };
        self.stands(engine, stands, owed).await;
        assert_eq!(self.provider.effects() - before, self.steps().len(), "each step took effect once");
    }

    /// The end of a declined saga: no trace of it.
    async fn is_undone(&self, engine: &TestEngine, status: u16) {
        assert_eq!(status, 402, "{:?}", self.flow);
        assert_eq!(available(engine, "wallet").await, i128::from(PART), "{:?}", self.flow);
        let (stands, owed) = match self.flow {
            Flow::Charge | Flow::Authorize | Flow::Split => (ChargeStatus::Failed, 0),
            Flow::Capture | Flow::Void => (ChargeStatus::RequiresCapture, 0),
            Flow::Refund => (ChargeStatus::Succeeded, AMOUNT),
            Flow::Payout => return self.stands_paid_out(engine, payout::PayoutStatus::Failed, AMOUNT).await,
        };
        self.stands(engine, stands, owed).await;
    }

    async fn paid_out(&self, engine: &TestEngine, status: payout::PayoutStatus, left: i64, before: usize) {
        self.stands_paid_out(engine, status, left).await;
        assert_eq!(self.provider.effects() - before, 1, "it was paid out once");
    }

    /// The receivable equals the payable, before and after. A payout to a peer becomes a debt to
    /// the peer, and the receivable stays.
    async fn stands_paid_out(&self, engine: &TestEngine, status: payout::PayoutStatus, left: i64) {
        let id = PayoutId::from(claim(&self.store, "saga").await.subject);
        let payout = engine.payout(TENANT, id).await.unwrap().unwrap();
        assert_eq!(payout.status, status);
        assert_eq!(payout.failure.is_some(), status == payout::PayoutStatus::Failed);
        assert_eq!(posted(engine, "chart:payable:USD").await, i128::from(left));
        let owes = match self.ends {
            Ends::Here => left,
            Ends::AtAPeer => {
                assert_eq!(posted(engine, "chart:peer:eu:USD").await, i128::from(AMOUNT - left));
                AMOUNT
            }
        };
        assert_eq!(posted(engine, "chart:receivable:USD").await, i128::from(owes));
        let [to_provider, to_peer] = self.provider.seen();
        assert!(to_provider.iter().all(|bound| bound.peer().is_none()), "{to_provider:?}");
        assert!(to_peer.iter().all(|bound| bound.peer() == Some("eu")), "{to_peer:?}");
        assert_eq!(to_peer.is_empty(), self.ends == Ends::Here);
        assert_eq!(available(engine, "chart:payable:USD").await, i128::from(left));
        assert_eq!(work_left(&self.store).await, 0);
        verified(&self.store).await;
    }

    async fn stands(&self, engine: &TestEngine, status: ChargeStatus, owed: i64) {
        let charge = match self.charge {
            Some(charge) => charge,
            None => made(&self.store, "saga").await,
        };
        let charge = stored(&self.store, charge).await;
        assert_eq!((charge.status, charge.working), (status, None), "{:?}", self.flow);
        assert_eq!(charge.sums.refunding, 0);
        let receivable = posted(engine, "chart:receivable:USD").await;
        assert_eq!(receivable, i128::from(owed), "{:?}: what the provider owes", self.flow);
        assert_eq!(work_left(&self.store).await, 0, "{:?}", self.flow);
        verified(&self.store).await;
    }
}

/// More commits than any saga needs.
const COMMITS: u64 = 7;

#[test]
fn every_flow_is_proved() {
    for flow in FLOWS {
        assert!(SAGAS.iter().any(|(proved, _)| *proved == flow), "{flow:?}");
    }
}

fn refused() -> Script {
    Script::Answer(ProviderOutcome::Rejected(Rejection { fault: ProviderFault::Request, code: "no".into() }))
}

#[tokio::test(start_paused = true)]
async fn each_step_answered_twice_takes_effect_once() {
    for saga in SAGAS {
        let stage = Stage::set(saga).await;
        let before = stage.provider.effects();
        for twice in 0..stage.steps().len() {
            // Executed without an answer: the step is called again under the same key.
            let script: Vec<Script> = (0..twice).map(|_| Script::Approve).collect();
            let stage = Stage::set(saga).await;
            stage.provider.play(&script);
            stage.provider.play(&[Script::Executed(UNKNOWN)]);
            let engine = engine(&stage.store.another(), &stage.provider).await;
            let (status, _) = stage.answered(&engine).await;
            stage.is_done(&engine, status, before).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_step_refused_undoes_what_came_before() {
    for saga in SAGAS {
        for failing in 0..Stage::set(saga).await.steps().len() {
            let stage = Stage::set(saga).await;
            stage.provider.play(&vec![Script::Approve; failing]);
            stage.provider.play(&[refused()]);
            let engine = engine(&stage.store.another(), &stage.provider).await;
            let (status, _) = stage.answered(&engine).await;
            stage.is_undone(&engine, status).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_each_commit_is_finished_by_another_process() {
    for saga in SAGAS {
        for commits in 0..COMMITS {
            let whole = run(saga, &[], None).await;
            assert_eq!(
                run(saga, &[], Some(commits)).await,
                whole,
                "{saga:?} crashed after {commits} commits"
            );
            // A decline heard by the dead process may not be repeated. Both ends are correct if
            // they are complete.
            run(saga, &[refused()], Some(commits)).await;
            run(saga, &[Script::Approve, refused()], Some(commits)).await;
        }
    }
}

/// Runs a saga whose process dies after `commits` commits and is replaced. Returns the status.
async fn run(saga: (Flow, Ends), script: &[Script], dies_after: Option<u64>) -> u16 {
    let stage = Stage::set(saga).await;
    let before = stage.provider.effects();
    // The provider declines the step in every process.
    stage.provider.decide(script);
    if let Some(commits) = dies_after {
        let mortal = stage.store.another();
        let doomed = engine(&mortal, &stage.provider).await;
        mortal.dies_after(commits);
        // The client gives up, because a dead process does not answer.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(20), stage.ask(&doomed)).await;
    }
    let heir = engine(&stage.store.another(), &stage.provider).await;
    let (status, _) = stage.answered(&heir).await;
    if status == 402 {
        stage.is_undone(&heir, status).await;
    } else {
        stage.is_done(&heir, status, before).await;
    }
    // A running engine would continue for the whole test.
    heir.drain(Span::ZERO).await;
    status
}

#[tokio::test(start_paused = true)]
async fn a_compensation_repeated_undoes_once() {
    let stage = Stage::set((Flow::Split, Ends::Here)).await;
    stage.provider.play(&[Script::Approve, refused(), Script::Executed(UNKNOWN), Script::Approve]);
    let engine = engine(&stage.store.another(), &stage.provider).await;
    let (status, _) = stage.answered(&engine).await;
    stage.is_undone(&engine, status).await;
    let voids = stage.provider.steps().into_iter().filter(|step| *step == ProviderStep::Void).count();
    assert!(voids >= 2, "the void was asked for again");
    let keys: std::collections::HashSet<_> = stage.provider.keys().into_iter().collect();
    assert_eq!(keys.len(), 3, "authorize, capture and void, each under one key");
}

#[tokio::test(start_paused = true)]
async fn a_compensation_that_fails_is_a_dead_letter_and_keeps_the_money_reserved() {
    let stage = Stage::set((Flow::Split, Ends::Here)).await;
    stage.provider.play(&[Script::Approve, refused(), refused()]);
    let engine = engine(&stage.store.another(), &stage.provider).await;
    let first = stage.ask(&engine).await;
    assert!(matches!(first, Submitted::Pending { .. }), "{first:?}");
    let letters = engine.dead_letters(TENANT, None, 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].outbox.parked.unwrap().name(), "cannot_undo");
    assert_eq!(letters[0].subject.status(), "parked");
    assert_eq!(available(&engine, "wallet").await, 0, "the card may not be released yet");
    verified(&stage.store).await;
}

//! The connector of a process to the provider, over a network that delays and loses messages.

use super::Provider;
use crate::bank::Bug;
use crate::chance::Chance;
use crate::executor::{Executor, Group, OUTSIDE, lock};
use crate::faults::{Fault, Faults, Site};
use crate::store::Machine;
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, LookupResult, ProviderOutcome, ProviderStep, Rules,
};
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup, ProviderProfile};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// Timeout of a call. A request that was not sent by then is never sent.
pub const TIMEOUT: u64 = 20_000;

#[derive(Clone)]
pub struct Connector {
    provider: Arc<Mutex<Provider>>,
    machine: Arc<Mutex<Machine>>,
    faults: Arc<Mutex<Faults>>,
    executor: Executor,
    latency: u64,
    endpoint: String,
    group: Group,
    bug: Option<Bug>,
    /// Keys of holds by payment, for a planted bug that reuses them.
    holds: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Connector {
    /// A connector that binds new payments to `endpoint`.
    pub fn new(
        provider: Arc<Mutex<Provider>>,
        machine: Arc<Mutex<Machine>>,
        faults: Arc<Mutex<Faults>>,
        executor: Executor,
        latency: u64,
        endpoint: String,
        (group, bug): (Group, Option<Bug>),
    ) -> Connector {
        Connector {
            provider,
            machine,
            faults,
            executor,
            latency,
            endpoint,
            group,
            bug,
            holds: Arc::default(),
        }
    }

    /// Delivers the request, executes it and sends the answer back.
    async fn deliver(
        self,
        call: ProviderCall,
        fault: Option<Fault>,
        mut chance: Chance,
        answer: oneshot::Sender<ProviderOutcome>,
    ) {
        let late = lock(&self.provider).profile().rules.late_delivery.ms().saturating_sub(1_000);
        let there = match fault {
            Some(Fault::Late | Fault::LateCut) => chance.between(TIMEOUT.min(late), late),
            _ => chance.between(0, self.latency),
        };
        self.executor.sleep(there).await;
        let arrived = lock(&self.provider).arrive(&call, fault, self.executor.now(), &mut chance);
        let outcome = if let Some(outcome) = arrived {
            outcome
        } else {
            self.executor.sleep(chance.between(0, self.latency.saturating_mul(4).min(900))).await;
            lock(&self.provider).execute(&call, fault, self.executor.now(), &mut chance)
        };
        self.executor.note(&[3, u64::from(matches!(outcome, ProviderOutcome::Approved(_)))]);
        let back = match fault {
            Some(Fault::CallSlow) => chance.between(1_000, TIMEOUT.saturating_sub(2_000)),
            _ => chance.between(0, self.latency),
        };
        self.executor.sleep(back).await;
        let _ = answer.send(outcome);
    }

    async fn exchange(&self, call: ProviderCall) -> ProviderOutcome {
        let (fault, mut chance) = lock(&self.faults).at(Site::Call);
        let begun = self.executor.now();
        let commits = lock(&self.machine).store.history().len();
        lock(&self.provider).sent.push(super::Sent {
            payment: call.payment.clone(),
            step: call.step,
            at: begun,
            commits,
        });
        match fault {
            Some(Fault::ConnectSlow) => self.executor.sleep(chance.between(1_000, TIMEOUT / 2)).await,
            Some(Fault::Asleep) => {
                self.executor.pause(self.group, begun.saturating_add(chance.between(10_000, 700_000)));
                self.executor.sleep(1).await;
            }
            _ => {}
        }
        let overslept =
            self.executor.now().saturating_sub(begun) >= TIMEOUT && self.bug != Some(Bug::SendsLate);
        let away = lock(&self.provider).down_until > self.executor.now();
        if overslept || away || fault == Some(Fault::NotSent) {
            self.executor.sleep(chance.between(0, self.latency)).await;
            return ProviderOutcome::NotSent;
        }
        let (sender, mut answer) = oneshot::channel();
        if !matches!(fault, Some(Fault::CutBefore | Fault::HangBefore)) {
            self.executor.spawn(OUTSIDE, self.clone().deliver(call, fault, chance.clone(), sender));
        }
        let cut = match fault {
            Some(Fault::CutBefore | Fault::CutAfter | Fault::LateCut) => Some(chance.between(0, 5_000)),
            _ => None,
        };
        let silent = matches!(fault, Some(Fault::HangBefore | Fault::HangAfter));
        let patience = self.executor.sleep(cut.unwrap_or(TIMEOUT));
        let mut patience = std::pin::pin!(patience);
        tokio::select! {
            biased;
            outcome = &mut answer, if cut.is_none() && !silent => outcome.unwrap_or(ProviderOutcome::Unknown(Cause::Cut)),
            () = &mut patience => ProviderOutcome::Unknown(if cut.is_some() { Cause::Cut } else { Cause::Timeout }),
        }
    }

    /// The call as a broken connector sends it.
    fn twisted(&self, mut call: ProviderCall, chance: &mut Chance) -> ProviderCall {
        match self.bug {
            Some(Bug::KeyFresh) => call.key = format!("{}{}", call.key, chance.next_u64()),
            Some(Bug::KeyConstant) => call.key = "cf".into(),
            Some(Bug::CaptureKeyFresh) if call.step == ProviderStep::Capture => {
                call.key = format!("{}{}", call.key, chance.next_u64());
            }
            Some(Bug::RefundKeyFresh) if call.step == ProviderStep::Refund => {
                call.key = format!("{}{}", call.key, chance.next_u64());
            }
            Some(Bug::PayoutKeyFresh) if call.step == ProviderStep::Payout => {
                call.key = format!("{}{}", call.key, chance.next_u64());
            }
            Some(Bug::RefundKeyShared) if call.step == ProviderStep::Refund => {
                call.key = format!("re{}", call.payment);
            }
            Some(Bug::VoidUnderChargeKey) => match call.step {
                ProviderStep::Authorize => {
                    drop(lock(&self.holds).insert(call.payment.clone(), call.key.clone()));
                }
                ProviderStep::Void => {
                    let key = lock(&self.holds).get(&call.payment).cloned();
                    call.key = key.unwrap_or(call.key);
                }
                ProviderStep::Charge
                | ProviderStep::Capture
                | ProviderStep::Refund
                | ProviderStep::Payout => {}
            },
            Some(Bug::CaptureInFull) if call.step == ProviderStep::Capture => {
                let held = lock(&self.provider).held(call.reference.as_ref());
                let whole = held.and_then(|held| Money::new(held, call.amount.asset()).ok());
                call.amount = whole.unwrap_or(call.amount);
            }
            Some(Bug::EndpointNotPinned) => call.binding.endpoint = self.endpoint.as_str().into(),
            _ => {}
        }
        call
    }

    /// The answer as a broken connector reads it.
    fn misread(&self, outcome: ProviderOutcome, call: &ProviderCall) -> ProviderOutcome {
        let approval = || believed(call);
        let decline = || {
            ProviderOutcome::Declined(Decline {
                code: "card_declined".into(),
                decline_code: None,
                reference: None,
            })
        };
        match (self.bug, outcome) {
            (Some(Bug::TimeoutIsNotSent), ProviderOutcome::Unknown(Cause::Timeout))
            | (Some(Bug::CutIsNotSent), ProviderOutcome::Unknown(Cause::Cut)) => ProviderOutcome::NotSent,
            (Some(Bug::ErrorIsDecline), ProviderOutcome::Unknown(Cause::ServerError)) => decline(),
            (Some(Bug::ErrorIsApproval), ProviderOutcome::Unknown(Cause::ServerError))
            | (Some(Bug::UnreadableIsApproval), ProviderOutcome::Unknown(Cause::Unreadable)) => approval(),
            (Some(Bug::TimeoutIsRejected), ProviderOutcome::Unknown(Cause::Timeout)) => {
                super::rejected(counterfoil_core::payments::provider::ProviderFault::Request)
            }
            (Some(Bug::AmountEchoed), ProviderOutcome::Approved(said)) => {
                ProviderOutcome::Approved(Approval {
                    amount_minor: call.amount.minor(),
                    asset: Some(call.amount.asset()),
                    payment: Some(call.payment.clone()),
                    ..said
                })
            }
            (Some(Bug::CaptureInFull), ProviderOutcome::Approved(said)) => {
                ProviderOutcome::Approved(Approval { amount_minor: call.amount.minor(), ..said })
            }
            (Some(Bug::VoidUnknownIsDone), ProviderOutcome::Unknown(_))
                if call.step == ProviderStep::Void =>
            {
                approval()
            }
            (Some(Bug::CaptureUnknownIsFailure), ProviderOutcome::Unknown(_))
                if call.step == ProviderStep::Capture =>
            {
                super::rejected(counterfoil_core::payments::provider::ProviderFault::Request)
            }
            (Some(Bug::RefundUnknownIsFailure), ProviderOutcome::Unknown(_))
                if call.step == ProviderStep::Refund =>
            {
                super::rejected(counterfoil_core::payments::provider::ProviderFault::Request)
            }
            (Some(Bug::PayoutUnknownIsFailure), ProviderOutcome::Unknown(_))
                if call.step == ProviderStep::Payout =>
            {
                super::rejected(counterfoil_core::payments::provider::ProviderFault::Request)
            }
            (Some(Bug::PayoutUnknownIsDone), ProviderOutcome::Unknown(_))
                if call.step == ProviderStep::Payout =>
            {
                approval()
            }
            (Some(Bug::PayoutLateIsDeclined), ProviderOutcome::Unknown(Cause::Timeout))
                if call.step == ProviderStep::Payout =>
            {
                decline()
            }
            (Some(Bug::CaptureEchoed), ProviderOutcome::Approved(said)) => {
                ProviderOutcome::Approved(Approval { stands: call.step.leads_to(), ..said })
            }
            (_, outcome) => outcome,
        }
    }
}

impl Gateway for Connector {
    fn binding(&self) -> ProviderBinding {
        let profile = lock(&self.provider).profile().name.into();
        ProviderBinding { profile, endpoint: self.endpoint.as_str().into() }
    }

    fn rules(&self, binding: &ProviderBinding) -> Rules {
        let own = lock(&self.provider).profile();
        let rules = ProviderProfile::named(&binding.profile).map_or(own.rules, |profile| profile.rules);
        match self.bug {
            Some(Bug::LagIgnored) => Rules { query_lag: Span::ZERO, ..rules },
            Some(Bug::LateIgnored) => Rules { late_delivery: Span::ZERO, ..rules },
            Some(Bug::WindowOverstated) => {
                Rules { dedup_window: Some(Span::from_ms(365 * 86_400_000)), ..rules }
            }
            Some(Bug::ReexecutionDenied) => Rules { reexecutes_errors: false, ..rules },
            _ => rules,
        }
    }

    async fn call(&self, call: ProviderCall) -> ProviderOutcome {
        let (seed, count) = (self.executor.now(), self.executor.polls());
        let asked = call.clone();
        let call = self.twisted(call, &mut Chance::at(&[seed, count]));
        match self.bug {
            Some(Bug::VoidBelieved) if call.step == ProviderStep::Void => return believed(&call),
            Some(Bug::VoidLater) if call.step == ProviderStep::Void => {
                let (later, answer) = (self.clone(), believed(&call));
                self.executor.spawn(OUTSIDE, async move {
                    later.executor.sleep(20_000).await;
                    later.exchange(call).await;
                });
                return answer;
            }
            _ => {}
        }
        if self.bug == Some(Bug::CallHedged) {
            let second = ProviderCall { key: format!("{}2", call.key), ..call.clone() };
            tokio::select! {
                biased;
                outcome = self.exchange(call.clone()) => return outcome,
                () = self.executor.sleep(1_500) => {}
            }
            return self.exchange(second).await;
        }
        let outcome = self.exchange(call.clone()).await;
        let outcome = self.misread(outcome, &asked);
        *lock(&self.provider).outcomes.entry(outcome.name()).or_default() += 1;
        outcome
    }

    async fn lookup(&self, lookup: ProviderLookup) -> LookupResult {
        let (fault, mut chance) = lock(&self.faults).at(Site::Lookup);
        self.executor.sleep(chance.between(0, self.latency)).await;
        let away = lock(&self.provider).down_until > self.executor.now();
        let unclear = match fault {
            Some(Fault::LookupTimeout) => {
                self.executor.sleep(TIMEOUT).await;
                Some(Cause::Timeout)
            }
            Some(Fault::LookupError) => Some(Cause::ServerError),
            _ if away => Some(Cause::Cut),
            _ => None,
        };
        if let Some(cause) = unclear {
            return if self.bug == Some(Bug::UnclearIsNothing) {
                LookupResult::Nothing
            } else {
                LookupResult::Unclear(cause)
            };
        }
        let stale = fault == Some(Fault::LookupStale);
        let found = lock(&self.provider).find(&lookup, self.executor.now(), stale);
        if matches!(found, LookupResult::Payment(ProviderOutcome::Declined(_))) {
            lock(&self.provider).declines.insert((lookup.payment.clone(), lookup.step.name()));
        }
        let back = match fault {
            Some(Fault::LookupSlow) => chance.between(1_000, TIMEOUT.saturating_sub(2_000)),
            _ => chance.between(0, self.latency),
        };
        self.executor.sleep(back).await;
        match (self.bug, found) {
            (Some(Bug::HeldIsDeclined), LookupResult::Nothing) if lookup.step == ProviderStep::Capture => {
                LookupResult::Payment(super::declined(None))
            }
            (_, found) => found,
        }
    }
}

/// An approval made up from the request.
fn believed(call: &ProviderCall) -> ProviderOutcome {
    let known =
        call.reference.clone().filter(|_| matches!(call.step, ProviderStep::Capture | ProviderStep::Void));
    ProviderOutcome::Approved(Approval {
        reference: known.unwrap_or_else(|| "pi_believed".into()),
        stands: call.step.leads_to(),
        amount_minor: call.amount.minor(),
        asset: Some(call.amount.asset()),
        payment: Some(call.payment.clone()),
    })
}

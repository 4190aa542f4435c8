//! Execution at the provider: as requested, or differently if a fault strikes.

use super::intent::Intent;
use super::{DECLINED, Effect, KeyAnswer, LAPSING, MOODY, Provider, declined, rejected};
use crate::chance::Chance;
use crate::faults::Fault;
use counterfoil_core::payments::provider::{
    Approval, Cause, ProviderFault, ProviderOutcome, ProviderStep, Stands,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_gateway::ProviderCall;

impl Provider {
    /// Executes a request and stores its answer.
    pub(super) fn execute(
        &mut self,
        call: &ProviderCall,
        fault: Option<Fault>,
        now: u64,
        chance: &mut Chance,
    ) -> ProviderOutcome {
        let truth = self.decide(call, fault, now, chance);
        let reported = match (truth, fault) {
            (ProviderOutcome::Approved(truth), Some(Fault::WrongPayment)) => {
                ProviderOutcome::Approved(Approval { payment: Some("ch_somebody_else".into()), ..truth })
            }
            (truth, _) => truth,
        };
        let (outcome, answer) = match fault {
            Some(Fault::ErrorAfter) => {
                (ProviderOutcome::Unknown(Cause::ServerError), KeyAnswer::Failed(Some(reported)))
            }
            Some(Fault::Unreadable) if matches!(reported, ProviderOutcome::Approved(_)) => {
                (ProviderOutcome::Unknown(Cause::Unreadable), KeyAnswer::Said(reported))
            }
            _ => (reported.clone(), KeyAnswer::Said(reported)),
        };
        let scope = self.scope(call);
        if let Some(kept) = self.keys.get_mut(&scope) {
            kept.answer = answer;
        }
        outcome
    }

    /// Approves or declines a step, and executes it.
    fn decide(
        &mut self,
        call: &ProviderCall,
        fault: Option<Fault>,
        now: u64,
        chance: &mut Chance,
    ) -> ProviderOutcome {
        let method = call.instrument.as_ref().map_or("", |token| token.reveal().as_str());
        let approves = match (call.step, method) {
            (ProviderStep::Charge | ProviderStep::Authorize | ProviderStep::Payout, DECLINED)
            | (ProviderStep::Capture, LAPSING) => false,
            (
                ProviderStep::Charge | ProviderStep::Authorize | ProviderStep::Capture | ProviderStep::Payout,
                MOODY,
            ) => chance.percent(50),
            _ => true,
        };
        if !approves {
            self.declines.insert((call.payment.clone(), call.step.name()));
        }
        match call.step {
            ProviderStep::Charge | ProviderStep::Authorize if !approves => {
                self.declined.insert(call.payment.clone(), now);
                declined(Some("insufficient_funds"))
            }
            ProviderStep::Charge | ProviderStep::Authorize => {
                let approval = self.make(call, fault, now, false);
                if fault == Some(Fault::Duplicate) {
                    self.make(call, fault, now, true);
                }
                ProviderOutcome::Approved(approval)
            }
            ProviderStep::Capture if !approves => declined(Some("authorization_lapsed")),
            ProviderStep::Payout if !approves => declined(Some("account_closed")),
            ProviderStep::Payout => {
                let approval = self.pay_out(call, fault, now, false);
                if fault == Some(Fault::Duplicate) {
                    self.pay_out(call, fault, now, true);
                }
                ProviderOutcome::Approved(approval)
            }
            ProviderStep::Capture | ProviderStep::Void | ProviderStep::Refund => {
                let done = self.operate(call, fault, now, false);
                if done.is_some() && fault == Some(Fault::Duplicate) && call.step == ProviderStep::Refund {
                    self.operate(call, fault, now, true);
                }
                done.map_or_else(|| rejected(ProviderFault::Request), ProviderOutcome::Approved)
            }
        }
    }

    /// Creates a payment.
    fn make(&mut self, call: &ProviderCall, fault: Option<Fault>, now: u64, own_duplicate: bool) -> Approval {
        let captured = (call.step == ProviderStep::Charge) != (fault == Some(Fault::WrongCapture));
        let amount = call.amount.minor().saturating_add(i64::from(fault == Some(Fault::WrongAmount)));
        let asset = reported_asset(call, fault);
        let reference = format!("pi_{}", self.effects.len());
        let stands = if captured { Stands::Captured } else { Stands::Held };
        let intent = Intent {
            reference: reference.clone(),
            payment: call.payment.clone(),
            amount,
            asset,
            captured: if captured { amount } else { 0 },
            refunded: 0,
            path: vec![(now, stands)],
        };
        self.intents.insert(reference.clone(), intent);
        self.made.entry(call.payment.clone()).or_default().push(reference.clone());
        self.effects.push(Effect {
            step: call.step,
            payment: call.payment.clone(),
            key: call.key.clone(),
            captured,
            amount,
            asked: call.amount.minor(),
            asset,
            at: now,
            reference: reference.clone(),
            on: reference.clone(),
            own_duplicate,
        });
        let payment = Some(call.payment.clone());
        Approval { reference, stands, amount_minor: amount, asset: Some(asset), payment }
    }

    /// Pays to a bank account.
    fn pay_out(
        &mut self,
        call: &ProviderCall,
        fault: Option<Fault>,
        now: u64,
        own_duplicate: bool,
    ) -> Approval {
        let asked = call.amount.minor();
        let amount = asked.saturating_add(i64::from(fault == Some(Fault::WrongAmount)));
        let asset = reported_asset(call, fault);
        let reference = format!("po_{}", self.effects.len());
        self.effects.push(Effect {
            step: call.step,
            payment: call.payment.clone(),
            key: call.key.clone(),
            captured: false,
            amount,
            asked,
            asset,
            at: now,
            reference: reference.clone(),
            on: reference.clone(),
            own_duplicate,
        });
        let approval = Approval {
            reference: reference.clone(),
            stands: Stands::PaidOut,
            amount_minor: amount,
            asset: Some(asset),
            payment: Some(call.payment.clone()),
        };
        self.payouts.insert(reference, (now, approval.clone()));
        approval
    }

    /// Captures, voids or refunds, if the payment allows it.
    fn operate(
        &mut self,
        call: &ProviderCall,
        fault: Option<Fault>,
        now: u64,
        own_duplicate: bool,
    ) -> Option<Approval> {
        let number = self.effects.len();
        let intent = self.intents.get_mut(call.reference.as_ref()?)?;
        let asked = call.amount.minor();
        // The wrong amount is one too few, because there may not be more.
        let amount = asked.saturating_sub(i64::from(fault == Some(Fault::WrongAmount)));
        match call.step {
            ProviderStep::Charge | ProviderStep::Authorize | ProviderStep::Payout => return None,
            ProviderStep::Capture => intent.capture(amount, call.amount.asset(), now).ok()?,
            ProviderStep::Void => intent.cancel(now).ok()?,
            ProviderStep::Refund => intent.refund(amount, call.amount.asset()).ok()?,
        }
        let on = intent.reference.clone();
        let amount = if call.step == ProviderStep::Void { intent.amount } else { amount };
        let reference = if call.step == ProviderStep::Refund { format!("re_{number}") } else { on.clone() };
        self.effects.push(Effect {
            step: call.step,
            payment: call.payment.clone(),
            key: call.key.clone(),
            captured: call.step == ProviderStep::Capture,
            amount,
            asked,
            asset: call.amount.asset(),
            at: now,
            reference: reference.clone(),
            on,
            own_duplicate,
        });
        let payment = Some(call.payment.clone());
        let (stands, asset) = (call.step.leads_to(), Some(reported_asset(call, fault)));
        Some(Approval { reference, stands, amount_minor: amount, asset, payment })
    }
}

fn reported_asset(call: &ProviderCall, fault: Option<Fault>) -> Asset {
    match fault {
        Some(Fault::WrongCurrency) => Asset::currency("ISK").unwrap_or(call.amount.asset()),
        _ => call.amount.asset(),
    }
}

//! The simulated provider: what it really executed, and how it answers, by the letter of each profile and no better.

mod connector;

pub use connector::{Connector, TIMEOUT};

use crate::chance::{Chance, mix};
use crate::faults::Fault;
use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, Fault as Blame, Found, Outcome, Rejection, Rules, Step,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_gateway::{Call, Profile};
use std::collections::BTreeMap;

/// Always approved.
pub const VISA: &str = "pm_card_visa";
/// Always declined.
pub const DECLINED: &str = "pm_card_chargeDeclined";
/// Approved or declined, anew with every execution.
pub const MOODY: &str = "pm_moody";

/// Something the provider really did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The payment it was told.
    pub payment: String,
    /// The key it was told.
    pub key: String,
    /// Captured, or held.
    pub captured: bool,
    /// Minor units.
    pub amount: i64,
    /// The currency.
    pub asset: Asset,
    /// When, in virtual milliseconds.
    pub at: u64,
    /// Its own reference.
    pub reference: String,
    /// The provider did the same work twice on its own account.
    pub own_duplicate: bool,
}

/// A request that left a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// For which payment.
    pub payment: String,
    /// When the call began.
    pub at: u64,
    /// How many commits the store had taken by then.
    pub commits: usize,
}

/// What the provider keeps under a key.
#[derive(Clone, Debug)]
struct Kept {
    first_at: u64,
    print: (String, i64, bool),
    answer: Answered,
}

#[derive(Clone, Debug)]
enum Answered {
    /// Work is under way.
    Busy,
    /// This is said again.
    Said(Outcome),
    /// A server error, and the approval behind it if there is one.
    Failed(Option<Outcome>),
}

/// The provider.
pub struct Provider {
    profile: &'static Profile,
    seed: u64,
    keys: BTreeMap<(String, String), Kept>,
    /// What it executed.
    pub effects: Vec<Effect>,
    declined: BTreeMap<String, u64>,
    /// Calls that were begun.
    pub sent: Vec<Sent>,
    /// It can not be reached before this instant.
    pub down_until: u64,
    /// How often each outcome was given.
    pub told: BTreeMap<&'static str, u64>,
}

impl Provider {
    /// A provider that keeps the promises of `profile` and no other.
    pub fn new(profile: &'static Profile, seed: u64) -> Provider {
        Provider {
            profile,
            seed,
            keys: BTreeMap::new(),
            effects: Vec::new(),
            declined: BTreeMap::new(),
            sent: Vec::new(),
            down_until: 0,
            told: BTreeMap::new(),
        }
    }

    /// Its profile.
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    fn rules(&self) -> &Rules {
        &self.profile.rules
    }

    /// Keys of one endpoint are unknown at another where the provider says so.
    fn scope(&self, call: &Call) -> (String, String) {
        let endpoint =
            if self.profile.name == "adyen" { call.pinned.endpoint.clone() } else { String::new() };
        (endpoint, call.key.clone())
    }

    /// A request arrives. Either it is answered at once, or it is worked on and [`Provider::execute`] ends it.
    fn arrive(
        &mut self,
        call: &Call,
        fault: Option<Fault>,
        now: u64,
        chance: &mut Chance,
    ) -> Option<Outcome> {
        match fault {
            Some(Fault::Busy) => return Some(Outcome::Busy { retry_after: None }),
            Some(Fault::InProgress) => return Some(Outcome::Unknown(Cause::InProgress)),
            Some(Fault::Rejected) => return Some(rejected(Blame::Request)),
            Some(Fault::Unauthorized) => return Some(rejected(Blame::Credentials)),
            _ => {}
        }
        let print = (call.payment.clone(), call.amount.minor(), call.step == Step::Charge);
        let scope = self.scope(call);
        let window = match self.rules().dedup_window {
            Some(window) => window.ms(),
            // A heuristic that works now and then.
            None if chance.percent(50) => 30_000,
            None => 0,
        };
        let reexecutes = self.rules().reexecutes_errors;
        if self.keys.get(&scope).is_some_and(|kept| now.saturating_sub(kept.first_at) >= window) {
            self.keys.remove(&scope);
        }
        if let Some(kept) = self.keys.get(&scope) {
            if kept.print != print && self.profile.name != "qonto" {
                return Some(rejected(Blame::Request));
            }
            match &kept.answer {
                Answered::Busy => return Some(Outcome::Unknown(Cause::InProgress)),
                Answered::Said(Outcome::Declined(_)) if reexecutes => {}
                Answered::Said(outcome) if fault != Some(Fault::ErrorBefore) => return Some(outcome.clone()),
                Answered::Said(_) => return Some(Outcome::Unknown(Cause::ServerError)),
                Answered::Failed(_) if self.rules().stores_errors => {
                    return Some(Outcome::Unknown(Cause::ServerError));
                }
                Answered::Failed(Some(approval)) if !reexecutes => return Some(approval.clone()),
                Answered::Failed(_) => {}
            }
        }
        let first_at = self.keys.get(&scope).map_or(now, |kept| kept.first_at);
        if fault == Some(Fault::ErrorBefore) {
            self.keys.insert(scope, Kept { first_at, print, answer: Answered::Failed(None) });
            return Some(Outcome::Unknown(Cause::ServerError));
        }
        self.keys.insert(scope, Kept { first_at, print, answer: Answered::Busy });
        None
    }

    /// The work is done, and this is the answer.
    fn execute(&mut self, call: &Call, fault: Option<Fault>, now: u64, chance: &mut Chance) -> Outcome {
        let approves = match call.payment_method.reveal().as_str() {
            DECLINED => false,
            MOODY => chance.percent(50),
            _ => true,
        };
        let scope = self.scope(call);
        let (outcome, answer) = if approves {
            let truth = self.effect(call, fault, now, false);
            if fault == Some(Fault::Duplicate) {
                self.effect(call, fault, now, true);
            }
            let told = match fault {
                Some(Fault::WrongPayment) => Approval { payment: Some("ch_somebody_else".into()), ..truth },
                _ => truth,
            };
            let told = Outcome::Approved(told);
            match fault {
                Some(Fault::ErrorAfter) => {
                    (Outcome::Unknown(Cause::ServerError), Answered::Failed(Some(told)))
                }
                Some(Fault::Unreadable) => (Outcome::Unknown(Cause::Unreadable), Answered::Said(told)),
                _ => (told.clone(), Answered::Said(told)),
            }
        } else {
            self.declined.insert(call.payment.clone(), now);
            let decline = Outcome::Declined(Decline {
                code: "card_declined".into(),
                decline_code: Some("insufficient_funds".into()),
                reference: None,
            });
            match fault {
                Some(Fault::ErrorAfter) => {
                    (Outcome::Unknown(Cause::ServerError), Answered::Failed(Some(decline)))
                }
                _ => (decline.clone(), Answered::Said(decline)),
            }
        };
        if let Some(kept) = self.keys.get_mut(&scope) {
            kept.answer = answer;
        }
        outcome
    }

    /// Executes: what was asked, or something else if the fault says so.
    fn effect(&mut self, call: &Call, fault: Option<Fault>, now: u64, own_duplicate: bool) -> Approval {
        let captured = (call.step == Step::Charge) != (fault == Some(Fault::WrongCapture));
        let amount = call.amount.minor().saturating_add(i64::from(fault == Some(Fault::WrongAmount)));
        let asset = match fault {
            Some(Fault::WrongCurrency) => Asset::currency("ISK").unwrap_or(call.amount.asset()),
            _ => call.amount.asset(),
        };
        let reference = format!("pi_{}", self.effects.len());
        self.effects.push(Effect {
            payment: call.payment.clone(),
            key: call.key.clone(),
            captured,
            amount,
            asset,
            at: now,
            reference: reference.clone(),
            own_duplicate,
        });
        Approval {
            reference,
            captured,
            amount_minor: amount,
            asset: Some(asset),
            payment: Some(call.payment.clone()),
        }
    }

    /// What a question finds. `stale`: as little as the promise allows.
    fn find(&self, payment: &str, now: u64, stale: bool) -> Found {
        let lag = self.rules().query_lag.ms();
        let visible = |number: u64, at: u64| {
            let own = mix(&[self.seed, 5, number]).checked_rem(lag.saturating_add(1)).unwrap_or(0);
            now.saturating_sub(at) >= if stale { lag } else { own }
        };
        let seen: Vec<&Effect> = (0_u64..)
            .zip(&self.effects)
            .filter(|(number, effect)| effect.payment == payment && visible(*number, effect.at))
            .map(|(_, effect)| effect)
            .collect();
        match seen.as_slice() {
            [] => match self.declined.get(payment) {
                Some(at) if visible(*at, *at) => Found::Payment(Outcome::Declined(Decline {
                    code: "card_declined".into(),
                    decline_code: None,
                    reference: None,
                })),
                _ => Found::Nothing,
            },
            [one] => Found::Payment(Outcome::Approved(Approval {
                reference: one.reference.clone(),
                captured: one.captured,
                amount_minor: one.amount,
                asset: Some(one.asset),
                payment: Some(one.payment.clone()),
            })),
            _ => Found::Several,
        }
    }
}

fn rejected(fault: Blame) -> Outcome {
    Outcome::Rejected(Rejection { fault, code: "simulated".into() })
}

//! The simulated provider: what it really executed, and how it answers, by the letter of each profile and no better.

mod connector;
mod execute;
mod intent;

pub use connector::{Connector, TIMEOUT};

use crate::chance::{Chance, mix};
use crate::faults::Fault;
use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, LookupResult, ProviderFault, ProviderOutcome, ProviderStep, Rejection, Rules,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_gateway::{ProviderCall, ProviderLookup, ProviderProfile};
use intent::Intent;
use std::collections::{BTreeMap, BTreeSet};

/// Always approved.
pub const VISA: &str = "pm_card_visa";
/// Always declined.
pub const DECLINED: &str = "pm_card_chargeDeclined";
/// Approved or declined, anew with every execution, a capture too.
pub const MOODY: &str = "pm_moody";
/// Held, and never captured.
pub const LAPSING: &str = "pm_lapsing";

/// Something the provider really did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// What was done.
    pub step: ProviderStep,
    /// The payment it was told.
    pub payment: String,
    /// The key it was told.
    pub key: String,
    /// Money was taken; else held, given up or given back.
    pub captured: bool,
    /// Minor units.
    pub amount: i64,
    /// Minor units that were asked for.
    pub asked: i64,
    /// The currency.
    pub asset: Asset,
    /// When, in virtual milliseconds.
    pub at: u64,
    /// Its own reference; that of the payment unless it is a refund.
    pub reference: String,
    /// The reference of the payment it was done to.
    pub on: String,
    /// The provider did the same work twice on its own account.
    pub own_duplicate: bool,
}

/// A request that left a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// For which payment.
    pub payment: String,
    /// For which step.
    pub step: ProviderStep,
    /// When the call began.
    pub at: u64,
    /// How many commits the store had taken by then.
    pub commits: usize,
}

/// What the provider keeps under a key.
#[derive(Clone, Debug)]
struct Kept {
    first_at: u64,
    print: Print,
    answer: Answered,
}

/// What a key was used for: step, payment, its reference and the amount.
type Print = (&'static str, String, Option<String>, i64);

#[derive(Clone, Debug)]
enum Answered {
    /// Work is under way.
    Busy,
    /// This is said again.
    Said(ProviderOutcome),
    /// A server error, and what is behind it if anything is.
    Failed(Option<ProviderOutcome>),
}

/// The provider.
pub struct Provider {
    profile: &'static ProviderProfile,
    seed: u64,
    keys: BTreeMap<(String, String), Kept>,
    /// What it executed.
    pub effects: Vec<Effect>,
    intents: BTreeMap<String, Intent>,
    /// What was paid out, by its reference.
    payouts: BTreeMap<String, (u64, Approval)>,
    /// References of what was made for a payment.
    made: BTreeMap<String, Vec<String>>,
    declined: BTreeMap<String, u64>,
    /// What it refused, or told as refused: the payment and the step.
    pub declines: BTreeSet<(String, &'static str)>,
    /// Calls that were begun.
    pub sent: Vec<Sent>,
    /// Keys that came with something else than before, and steps that came again under another key.
    pub misuses: Vec<String>,
    /// It can not be reached before this instant.
    pub down_until: u64,
    /// How often each outcome was given.
    pub told: BTreeMap<&'static str, u64>,
}

impl Provider {
    /// A provider that keeps the promises of `profile` and no other.
    pub fn new(profile: &'static ProviderProfile, seed: u64) -> Provider {
        Provider {
            profile,
            seed,
            keys: BTreeMap::new(),
            effects: Vec::new(),
            intents: BTreeMap::new(),
            payouts: BTreeMap::new(),
            made: BTreeMap::new(),
            declined: BTreeMap::new(),
            declines: BTreeSet::new(),
            sent: Vec::new(),
            misuses: Vec::new(),
            down_until: 0,
            told: BTreeMap::new(),
        }
    }

    /// Its profile.
    pub fn profile(&self) -> &'static ProviderProfile {
        self.profile
    }

    fn rules(&self) -> &Rules {
        &self.profile.rules
    }

    /// Keys of one endpoint are unknown at another where the provider says so.
    fn scope(&self, call: &ProviderCall) -> (String, String) {
        let endpoint =
            if self.profile.name == "adyen" { call.binding.endpoint.to_string() } else { String::new() };
        (endpoint, call.key.clone())
    }

    /// Notes a capture or void that comes again under a new key though it was done: nobody who knows what happened sends
    /// that. What comes late under a key that has its answer gets that answer.
    fn note_again(&mut self, call: &ProviderCall) {
        if !matches!(call.step, ProviderStep::Capture | ProviderStep::Void) {
            return;
        }
        if self.keys.contains_key(&self.scope(call)) {
            return;
        }
        let again = |effect: &Effect| {
            effect.step == call.step && effect.payment == call.payment && effect.key != call.key
        };
        if self.effects.iter().any(again) {
            let what =
                format!("{} of {} was done and came under another key", call.step.name(), call.payment);
            self.misuses.push(what);
        }
    }

    /// How much is held under a reference.
    fn held(&self, reference: Option<&String>) -> Option<i64> {
        self.intents.get(reference?).map(|intent| intent.amount)
    }

    /// A request arrives. Either it is answered at once, or it is worked on and [`Provider::execute`] ends it.
    fn arrive(
        &mut self,
        call: &ProviderCall,
        fault: Option<Fault>,
        now: u64,
        chance: &mut Chance,
    ) -> Option<ProviderOutcome> {
        self.note_again(call);
        let print = print(call);
        let scope = self.scope(call);
        let differs = self.keys.get(&scope).is_some_and(|kept| kept.print != print);
        if differs {
            self.misuses.push(format!("the key of {} came with a {}", call.payment, call.step.name()));
        }
        match fault {
            Some(Fault::Busy) => return Some(ProviderOutcome::Busy { retry_after: None }),
            Some(Fault::InProgress) => return Some(ProviderOutcome::Unknown(Cause::InProgress)),
            Some(Fault::Rejected) => return Some(rejected(ProviderFault::Request)),
            Some(Fault::Unauthorized) => return Some(rejected(ProviderFault::Credentials)),
            _ => {}
        }
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
            if differs && self.profile.name != "qonto" {
                return Some(rejected(ProviderFault::Request));
            }
            match &kept.answer {
                Answered::Busy => return Some(ProviderOutcome::Unknown(Cause::InProgress)),
                Answered::Said(ProviderOutcome::Declined(_) | ProviderOutcome::Rejected(_)) if reexecutes => {
                }
                Answered::Said(outcome) if fault != Some(Fault::ErrorBefore) => return Some(outcome.clone()),
                Answered::Said(_) => return Some(ProviderOutcome::Unknown(Cause::ServerError)),
                Answered::Failed(_) if self.rules().stores_errors => {
                    return Some(ProviderOutcome::Unknown(Cause::ServerError));
                }
                Answered::Failed(Some(behind)) if !reexecutes => return Some(behind.clone()),
                Answered::Failed(_) => {}
            }
        }
        let first_at = self.keys.get(&scope).map_or(now, |kept| kept.first_at);
        if fault == Some(Fault::ErrorBefore) {
            self.keys.insert(scope, Kept { first_at, print, answer: Answered::Failed(None) });
            return Some(ProviderOutcome::Unknown(Cause::ServerError));
        }
        self.keys.insert(scope, Kept { first_at, print, answer: Answered::Busy });
        None
    }

    /// What a question finds. `stale`: as little as the promise allows.
    fn find(&self, lookup: &ProviderLookup, now: u64, stale: bool) -> LookupResult {
        let lag = self.rules().query_lag.ms();
        let is_seen = |at: u64| {
            let own = mix(&[self.seed, 5, at]).checked_rem(lag.saturating_add(1)).unwrap_or(0);
            now.saturating_sub(at) >= if stale { lag } else { own }
        };
        if lookup.step == ProviderStep::Payout {
            // It is looked up by its own reference, if it has one.
            let paid = lookup.reference.as_ref().and_then(|reference| self.payouts.get(reference));
            return match paid {
                Some((at, approval)) if is_seen(*at) => {
                    LookupResult::Payment(ProviderOutcome::Approved(approval.clone()))
                }
                _ => LookupResult::Unclear(Cause::Unreadable),
            };
        }
        if matches!(lookup.step, ProviderStep::Capture | ProviderStep::Void | ProviderStep::Refund) {
            let intent = lookup.reference.as_ref().and_then(|reference| self.intents.get(reference));
            return match intent {
                Some(intent) => intent.after(lookup.step, lookup.amount, is_seen),
                None => LookupResult::Unclear(Cause::Unreadable),
            };
        }
        let made = self.made.get(&lookup.payment).into_iter().flatten();
        let own = made.filter_map(|reference| self.intents.get(reference));
        let mut seen: Vec<ProviderOutcome> = own.filter_map(|intent| intent.made(is_seen)).collect();
        match (seen.pop(), seen.is_empty()) {
            (Some(one), true) => LookupResult::Payment(one),
            (Some(_), false) => LookupResult::Several,
            (None, _) => match self.declined.get(&lookup.payment) {
                Some(at) if is_seen(*at) => LookupResult::Payment(declined(None)),
                _ => LookupResult::Nothing,
            },
        }
    }
}

/// What of a request must be the same whenever its key comes: what a connector puts into it.
fn print(call: &ProviderCall) -> Print {
    let (reference, amount) = match call.step {
        ProviderStep::Charge | ProviderStep::Authorize | ProviderStep::Payout => (None, call.amount.minor()),
        ProviderStep::Capture | ProviderStep::Refund => (call.reference.clone(), call.amount.minor()),
        ProviderStep::Void => (call.reference.clone(), 0),
    };
    (call.step.name(), call.payment.clone(), reference, amount)
}

fn rejected(fault: ProviderFault) -> ProviderOutcome {
    ProviderOutcome::Rejected(Rejection { fault, code: "simulated".into() })
}

fn declined(decline_code: Option<&str>) -> ProviderOutcome {
    ProviderOutcome::Declined(Decline {
        code: "card_declined".into(),
        decline_code: decline_code.map(str::to_owned),
        reference: None,
    })
}

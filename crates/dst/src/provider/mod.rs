//! The simulated provider: its effects, and answers exactly as its profile promises, no better.

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

/// A payment method that is always approved.
pub const VISA: &str = "pm_card_visa";
/// A payment method that is always declined.
pub const DECLINED: &str = "pm_card_chargeDeclined";
/// A payment method that is approved or declined at random, for every execution and capture.
pub const MOODY: &str = "pm_moody";
/// A payment method that can be authorized and never captured.
pub const LAPSING: &str = "pm_lapsing";

/// An executed step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub step: ProviderStep,
    /// The payment in the request.
    pub payment: String,
    /// The key of the request.
    pub key: String,
    /// Whether money was taken.
    pub captured: bool,
    /// Executed minor units.
    pub amount: i64,
    /// Requested minor units.
    pub asked: i64,
    pub asset: Asset,
    /// Time in virtual milliseconds.
    pub at: u64,
    /// Reference of the effect: the payment's, unless the effect is a refund.
    pub reference: String,
    /// Reference of the payment it belongs to.
    pub on: String,
    /// Whether the provider executed the same request a second time by mistake.
    pub own_duplicate: bool,
}

/// A call that a process has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub payment: String,
    pub step: ProviderStep,
    /// Start of the call.
    pub at: u64,
    /// Number of commits at that time.
    pub commits: usize,
}

/// The provider's record of an idempotency key.
#[derive(Clone, Debug)]
struct KeyRecord {
    first_at: u64,
    print: RequestPrint,
    answer: KeyAnswer,
}

/// The parameters of a key's request: step, payment, reference and amount.
type RequestPrint = (&'static str, String, Option<String>, i64);

#[derive(Clone, Debug)]
enum KeyAnswer {
    Busy,
    /// The stored answer.
    Said(ProviderOutcome),
    /// A server error, and the result behind it, if any.
    Failed(Option<ProviderOutcome>),
}

pub struct Provider {
    profile: &'static ProviderProfile,
    seed: u64,
    keys: BTreeMap<(String, String), KeyRecord>,
    /// Executed steps.
    pub effects: Vec<Effect>,
    intents: BTreeMap<String, Intent>,
    /// Payouts by reference.
    payouts: BTreeMap<String, (u64, Approval)>,
    /// References by payment.
    made: BTreeMap<String, Vec<String>>,
    declined: BTreeMap<String, u64>,
    /// Declined steps, by payment and step name.
    pub declines: BTreeSet<(String, &'static str)>,
    /// Started calls.
    pub sent: Vec<Sent>,
    /// Keys used for two requests, and steps repeated under another key.
    pub misuses: Vec<String>,
    /// End of the provider's outage.
    pub down_until: u64,
    /// Number of times each outcome was returned.
    pub outcomes: BTreeMap<&'static str, u64>,
}

impl Provider {
    /// A provider with exactly the promises of `profile`.
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
            outcomes: BTreeMap::new(),
        }
    }

    pub fn profile(&self) -> &'static ProviderProfile {
        self.profile
    }

    fn rules(&self) -> &Rules {
        &self.profile.rules
    }

    /// The scope of a key. Some providers do not deduplicate across endpoints.
    fn scope(&self, call: &ProviderCall) -> (String, String) {
        let endpoint =
            if self.profile.name == "adyen" { call.binding.endpoint.to_string() } else { String::new() };
        (endpoint, call.key.clone())
    }

    /// Notes an executed capture or void that is repeated under a new key: a correct client never
    /// repeats those. A late request under an answered key only gets that answer.
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

    /// The amount held under a reference.
    fn held(&self, reference: Option<&String>) -> Option<i64> {
        self.intents.get(reference?).map(|intent| intent.amount)
    }

    /// Takes a request. Returns its answer, or `None` if [`Provider::execute`] has to work on it.
    fn arrive(
        &mut self,
        call: &ProviderCall,
        fault: Option<Fault>,
        now: u64,
        chance: &mut Chance,
    ) -> Option<ProviderOutcome> {
        self.note_again(call);
        let print = request_print(call);
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
            // A heuristic that works sometimes.
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
                KeyAnswer::Busy => return Some(ProviderOutcome::Unknown(Cause::InProgress)),
                KeyAnswer::Said(ProviderOutcome::Declined(_) | ProviderOutcome::Rejected(_))
                    if reexecutes => {}
                KeyAnswer::Said(outcome) if fault != Some(Fault::ErrorBefore) => {
                    return Some(outcome.clone());
                }
                KeyAnswer::Said(_) => return Some(ProviderOutcome::Unknown(Cause::ServerError)),
                KeyAnswer::Failed(_) if self.rules().stores_errors => {
                    return Some(ProviderOutcome::Unknown(Cause::ServerError));
                }
                KeyAnswer::Failed(Some(behind)) if !reexecutes => return Some(behind.clone()),
                KeyAnswer::Failed(_) => {}
            }
        }
        let first_at = self.keys.get(&scope).map_or(now, |kept| kept.first_at);
        if fault == Some(Fault::ErrorBefore) {
            self.keys.insert(scope, KeyRecord { first_at, print, answer: KeyAnswer::Failed(None) });
            return Some(ProviderOutcome::Unknown(Cause::ServerError));
        }
        self.keys.insert(scope, KeyRecord { first_at, print, answer: KeyAnswer::Busy });
        None
    }

    /// Answers a lookup. With `stale`, the answer is as old as the promise allows.
    fn find(&self, lookup: &ProviderLookup, now: u64, stale: bool) -> LookupResult {
        let lag = self.rules().query_lag.ms();
        let is_seen = |at: u64| {
            let own = mix(&[self.seed, 5, at]).checked_rem(lag.saturating_add(1)).unwrap_or(0);
            now.saturating_sub(at) >= if stale { lag } else { own }
        };
        if lookup.step == ProviderStep::Payout {
            // An operation with a reference is looked up by that reference.
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

/// The parameters that must be equal in every request with the same key.
fn request_print(call: &ProviderCall) -> RequestPrint {
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

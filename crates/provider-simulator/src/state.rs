//! The whole state of a run, behind one lock.
//!
//! Owns the objects and their changes: requests decide, and this applies. Objects are numbered in
//! order of creation and never removed within a run.

use std::ops::Range;
use std::sync::Arc;

use crate::effects::{Effect, EffectKind, Effects, Object};
use crate::execute::Context;
use crate::faults::FaultInjector;
use crate::id;
use crate::idempotency::Keys;
use crate::intents::{Intent, Status};
use crate::payouts::Payout;
use crate::refusal::Refusal;
use crate::spread::Spread;

/// The provider's memory.
pub(crate) struct State {
    /// Part of every id; changes with each reset.
    pub(crate) run: u64,
    pub(crate) effects: Effects,
    pub(crate) keys: Keys,
    pub(crate) injector: FaultInjector,
    /// Number of pending late deliveries.
    pub(crate) late_pending: u32,
    intents: Vec<Intent>,
    intents_max: u32,
    keys_max: usize,
    /// The newest intent of each payment.
    payments: Spread<u32>,
    refunds: u32,
    payouts: Vec<Payout>,
}

impl State {
    pub(crate) fn new(run: u64, effects: Effects, intents_max: u32, keys_max: usize) -> Self {
        State {
            run,
            effects,
            keys: Keys::new(keys_max),
            injector: FaultInjector::default(),
            late_pending: 0,
            intents: Vec::new(),
            intents_max,
            keys_max,
            payments: Spread::new(),
            refunds: 0,
            payouts: Vec::new(),
        }
    }

    /// Forgets every object, effect and key. Fault settings stay.
    pub(crate) fn reset(&mut self, run: u64) {
        self.run = run;
        self.effects.restart(run);
        self.keys = Keys::new(self.keys_max);
        self.intents = Vec::new();
        self.payments = Spread::new();
        self.refunds = 0;
        self.payouts = Vec::new();
    }

    /// The number in an id, if this run made the intent.
    pub(crate) fn intent_number(&self, id: &str) -> Option<u32> {
        id::number(id, id::INTENT, self.run).filter(|number| (*number as usize) < self.intents.len())
    }

    /// An intent by a number of this run.
    pub(crate) fn intent(&self, number: u32) -> &Intent {
        &self.intents[number as usize]
    }

    /// The newest intent of a payment, with links to earlier ones.
    pub(crate) fn newest_intent(&self, payment: &str) -> Option<u32> {
        self.payments.get(payment).copied()
    }

    /// The number of the next intent, if there is room for it.
    pub(crate) fn next_intent(&self) -> Result<u32, Refusal> {
        u32::try_from(self.intents.len())
            .ok()
            .filter(|number| *number < self.intents_max)
            .ok_or_else(|| Refusal::full(self.intents_max))
    }

    /// Adds the intent with the number from [`State::next_intent`].
    pub(crate) fn add_intent(&mut self, mut intent: Intent) {
        if let (Some(payment), Ok(number)) = (&intent.metadata.payment, self.next_intent()) {
            intent.earlier = self.payments.insert(Arc::clone(payment), number);
        }
        self.intents.push(intent);
    }

    /// The number of the next payout, if there is room for it.
    pub(crate) fn next_payout(&self) -> Result<u32, Refusal> {
        u32::try_from(self.payouts.len())
            .ok()
            .filter(|number| *number < self.intents_max)
            .ok_or_else(|| Refusal::full(self.intents_max))
    }

    /// Adds the payout with the number from [`State::next_payout`].
    pub(crate) fn add_payout(&mut self, payout: Payout) {
        self.payouts.push(payout);
    }

    pub(crate) fn payout(&self, number: u32) -> Option<&Payout> {
        self.payouts.get(number as usize)
    }

    /// Records an effect on an intent, twice with the `duplicate` fault.
    pub(crate) fn record(
        &mut self,
        kind: EffectKind,
        number: u32,
        amount: u64,
        context: &Context<'_>,
    ) -> Result<(), Refusal> {
        let intent = &self.intents[number as usize];
        let payment = intent.metadata.payment.as_deref();
        let object = Object::Intent(number);
        self.effects.record(kind, object, payment, amount, intent.currency, context)?;
        if context.twice {
            // Without room for it the second effect does not happen.
            let _ = self.effects.record(kind, object, payment, amount, intent.currency, context);
        }
        Ok(())
    }

    /// Moves an intent to its last state.
    pub(crate) fn move_intent(&mut self, number: u32, status: Status, now_ms: u64) {
        let intent = &mut self.intents[number as usize];
        assert!(intent.moved.is_none(), "an intent moves once, and {number} moved before");
        intent.moved = Some((now_ms, status));
    }

    /// Counts a refund and numbers it.
    pub(crate) fn add_refund(&mut self, number: u32, amount: u64) -> u32 {
        let intent = &mut self.intents[number as usize];
        // Both are at most the captured amount, which is bounded far below overflow.
        intent.refunded = intent.refunded.saturating_add(amount);
        let refund = self.refunds;
        self.refunds = self.refunds.saturating_add(1);
        refund
    }

    /// The effects of a range, as outsiders see them.
    pub(crate) fn effects_in(&self, range: Range<usize>) -> impl Iterator<Item = Effect> {
        self.effects.entries.get(range).unwrap_or_default().iter().map(|entry| {
            let (metadata, currency) = match entry.object {
                Object::Intent(number) => {
                    let intent = &self.intents[number as usize];
                    (&intent.metadata, intent.currency)
                }
                Object::Payout(number) => {
                    let payout = &self.payouts[number as usize];
                    (&payout.metadata, payout.currency)
                }
            };
            Effect {
                kind: entry.kind,
                key: entry.key.clone(),
                payment: metadata.payment.clone(),
                object: entry.object.id(self.run),
                amount: entry.amount,
                currency: currency.as_str().to_owned(),
                at_ms: entry.at_ms,
            }
        })
    }
}

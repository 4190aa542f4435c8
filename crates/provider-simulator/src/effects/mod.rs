//! The truth: every executed effect, in order, with an optional log file of the same effects.
//!
//! An effect is logged before it is applied; if logging fails, the effect does not happen.

mod list;
mod log;

use std::sync::Arc;

pub(crate) use list::List;
pub(crate) use log::Log;

use crate::answer::Json;
use crate::clock::rfc3339;
use crate::execute::Context;
use crate::id;
use crate::intents::Currency;
use crate::refusal::Refusal;

/// Direction of an effect's money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EffectKind {
    /// Captured at once.
    Charge,
    /// Authorized only.
    Authorize,
    /// An authorization captured.
    Capture,
    /// An authorization released.
    Cancel,
    /// Captured money given back.
    Refund,
    /// Money paid to a bank account.
    Payout,
}

/// An executed effect, as outsiders see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    pub kind: EffectKind,
    /// The idempotency key of the request, if it had one.
    pub key: Option<Arc<str>>,
    /// `metadata[counterfoil_payment]` of the payment intent or the payout, if present.
    pub payment: Option<Arc<str>>,
    /// Id of the payment intent or the payout.
    pub object: String,
    /// In minor units.
    pub amount: u64,
    /// Lower case.
    pub currency: String,
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// The list of effects, without the fields that intents store already.
pub(crate) struct Effects {
    pub(crate) entries: Vec<Entry>,
    entries_max: u32,
    run: u64,
    log: Option<Log>,
}

/// The object of an effect, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    Intent(u32),
    Payout(u32),
}

impl Object {
    pub(crate) fn id(self, run: u64) -> String {
        match self {
            Object::Intent(number) => id::text(id::INTENT, run, number),
            Object::Payout(number) => id::text(id::PAYOUT, run, number),
        }
    }
}

/// An executed effect in memory.
pub(crate) struct Entry {
    pub(crate) kind: EffectKind,
    pub(crate) object: Object,
    pub(crate) key: Option<Arc<str>>,
    pub(crate) amount: u64,
    pub(crate) at_ms: u64,
}

impl EffectKind {
    /// The word used in lists and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            EffectKind::Charge => "charge",
            EffectKind::Authorize => "authorize",
            EffectKind::Capture => "capture",
            EffectKind::Cancel => "cancel",
            EffectKind::Refund => "refund",
            EffectKind::Payout => "payout",
        }
    }
}

impl Effect {
    pub(crate) fn write(&self, json: &mut Json) {
        json.raw(r#"{"kind":""#).raw(self.kind.as_str());
        json.raw(r#"","key":"#).quoted_or_null(self.key.as_deref());
        json.raw(r#","payment":"#).quoted_or_null(self.payment.as_deref());
        json.raw(if self.kind == EffectKind::Payout { r#","payout":"# } else { r#","payment_intent":"# });
        json.quoted(&self.object);
        json.raw(r#","amount":"#).number(self.amount);
        json.raw(r#","currency":"#).quoted(&self.currency);
        json.raw(r#","at":""#).raw(&rfc3339(self.at_ms)).raw(r#""}"#);
    }
}

impl Effects {
    pub(crate) fn new(entries_max: u32, run: u64, log: Option<Log>) -> Self {
        Effects { entries: Vec::new(), entries_max, run, log }
    }

    /// Starts an empty list for a new run; the log continues.
    pub(crate) fn restart(&mut self, run: u64) {
        self.entries = Vec::new();
        self.run = run;
    }

    /// Records an effect that is about to be applied, or refuses it.
    pub(crate) fn record(
        &mut self,
        kind: EffectKind,
        object: Object,
        payment: Option<&str>,
        amount: u64,
        currency: Currency,
        context: &Context<'_>,
    ) -> Result<(), Refusal> {
        if self.entries.len() >= self.entries_max as usize {
            return Err(Refusal::full(self.entries_max));
        }
        if let Some(log) = &mut self.log {
            let effect = Effect {
                kind,
                key: context.key.cloned(),
                payment: payment.map(Arc::from),
                object: object.id(self.run),
                amount,
                currency: currency.as_str().to_owned(),
                at_ms: context.now_ms,
            };
            log.append(&effect).map_err(|error| Refusal::log_failed(&error))?;
        }
        self.entries.push(Entry { kind, object, key: context.key.cloned(), amount, at_ms: context.now_ms });
        Ok(())
    }
}

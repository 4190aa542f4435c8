//! The provider's effects, grouped by payment, and the rules that hold for them regardless of any
//! answer.

use super::super::provider::{Effect, EffectKind};
use super::{Verdict, Wrong};
use std::collections::HashMap;

/// Amounts that the provider moved for a payment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) charges: Vec<u64>,
    pub(super) authorized: Vec<u64>,
    pub(super) captures: Vec<u64>,
    pub(super) cancels: Vec<u64>,
    pub(super) refunds: Vec<u64>,
    pub(super) payouts: Vec<u64>,
}

impl Done {
    /// Total captured from the card.
    pub(super) fn taken(&self) -> u64 {
        self.charges.iter().chain(&self.captures).sum()
    }

    /// Total refunded to the card.
    pub(super) fn given_back(&self) -> u64 {
        self.refunds.iter().sum()
    }

    /// Whether the card's holder pays nothing: nothing was authorized, or the authorization was
    /// released.
    pub(super) fn is_nothing(&self) -> bool {
        let released = self.authorized.len() == self.cancels.len();
        self.charges.is_empty() && self.captures.is_empty() && self.refunds.is_empty() && released
    }
}

/// Groups effects by payment. With `by_itself` the provider sometimes executes a request twice,
/// under one of our keys and at one instant. Such repeats are counted but are no violation; a
/// second request of ours would come later.
pub(super) fn sort(
    effects: &[Effect],
    by_itself: bool,
    verdict: &mut Verdict,
) -> (HashMap<String, Done>, u64) {
    let mut all: HashMap<String, Done> = HashMap::new();
    let (mut keys, mut repeated) = (HashMap::new(), 0);
    for effect in effects {
        if let Some(key) = &effect.key
            && let Some(at) = keys.insert(key, &effect.at)
        {
            repeated += 1;
            if by_itself && *at == effect.at {
                continue;
            }
            verdict.note(Wrong::Double, format!("the provider executed its key {key} again"));
        }
        let Some(payment) = &effect.payment else {
            verdict.note(Wrong::Unexplained, "an effect names no payment".to_owned());
            continue;
        };
        let done = all.entry(payment.clone()).or_default();
        let kind = match effect.kind {
            EffectKind::Charge => &mut done.charges,
            EffectKind::Authorize => &mut done.authorized,
            EffectKind::Capture => &mut done.captures,
            EffectKind::Cancel => &mut done.cancels,
            EffectKind::Refund => &mut done.refunds,
            EffectKind::Payout => &mut done.payouts,
        };
        kind.push(effect.amount);
    }
    for (payment, done) in &all {
        judge_one(payment, done, verdict);
    }
    (all, repeated)
}

fn judge_one(payment: &str, done: &Done, verdict: &mut Verdict) {
    let made = done.charges.len() + done.authorized.len();
    let (captured, voided, paid_out) = (done.captures.len(), done.cancels.len(), done.payouts.len());
    for (what, count) in [("made", made), ("captured", captured), ("voided", voided), ("paid out", paid_out)]
    {
        if count > 1 {
            verdict.note(Wrong::Double, format!("{payment} was {what} {count} times"));
        }
    }
    if !done.captures.is_empty() && !done.cancels.is_empty() {
        verdict.note(Wrong::Both, format!("{payment} was captured and voided"));
    }
    let (taken, back) = (done.taken(), done.given_back());
    if back > taken {
        verdict.note(Wrong::OverRefund, format!("{payment}: {back} of {taken} were given back"));
    }
}

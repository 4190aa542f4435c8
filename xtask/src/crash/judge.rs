//! The judge: the clients' history against the provider's, against what is shown, and against the ledger. Pure, so that
//! planted lies can be shown to be found.

mod effects;
mod money;
mod payments;
mod payouts;

pub(super) use money::judge_ledger;
pub(super) use payments::{Evidence, Judged, judge};

use super::told::Told;
use std::collections::BTreeMap;

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrong {
    /// More than one effect for a step of a payment, or for a key at the provider.
    Double,
    /// A charge that was both captured and voided.
    Both,
    /// More given back than was taken.
    OverRefund,
    /// Something that was answered as done, without an effect.
    Unpaid,
    /// An effect of something that was answered as refused.
    PaidRefusal,
    /// An effect, or an answer, of another amount.
    Amount,
    /// An answer that was given and is gone.
    Lost,
    /// A replay that is not the first answer again.
    Differing,
    /// A key without a final answer.
    Unanswered,
    /// An effect, a charge or a payout, that no client was told of.
    Unexplained,
    /// Two keys that were told the same charge or transfer, or an answer that names none.
    Mistaken,
    /// A charge or payout that is shown otherwise than the provider has it.
    Shown,
    /// A balance that is not what the acknowledged requests, or the provider's effects, make it.
    Balance,
    /// A balance that was seen below its floor.
    Floor,
    /// An answer that a good request should never get.
    Strange,
}

/// Every kind with its name in reports.
pub(super) const WRONGS: [(Wrong, &str); 15] = [
    (Wrong::Double, "double effects"),
    (Wrong::Both, "captured and voided"),
    (Wrong::OverRefund, "refunded above captured"),
    (Wrong::Unpaid, "answered but not done"),
    (Wrong::PaidRefusal, "refused but done"),
    (Wrong::Amount, "wrong amounts"),
    (Wrong::Lost, "lost answers"),
    (Wrong::Differing, "differing replays"),
    (Wrong::Unanswered, "unanswered keys"),
    (Wrong::Unexplained, "unexplained effects"),
    (Wrong::Mistaken, "mistaken ids"),
    (Wrong::Shown, "payments shown wrongly"),
    (Wrong::Balance, "wrong balances"),
    (Wrong::Floor, "broken floors"),
    (Wrong::Strange, "strange answers"),
];

/// Examples kept.
pub(super) const EXAMPLES_MAX: usize = 20;

/// What the last pass over all orders found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replay {
    Same,
    Differs,
    Lost,
}

impl Replay {
    pub(super) fn of(first: &Told, now: Option<&Told>) -> Replay {
        match now {
            Some(told) if told == first => Replay::Same,
            Some(_) => Replay::Differs,
            None => Replay::Lost,
        }
    }
}

/// The counts, and the first few cases in words.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    counts: BTreeMap<Wrong, u64>,
    pub(super) examples: Vec<String>,
}

impl Verdict {
    pub(super) fn count(&self, wrong: Wrong) -> u64 {
        self.counts.get(&wrong).copied().unwrap_or(0)
    }

    pub(super) fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }

    /// Adds what another look found.
    pub(super) fn join(&mut self, other: Verdict) {
        for (wrong, count) in other.counts {
            *self.counts.entry(wrong).or_default() += count;
        }
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES_MAX);
    }

    pub(super) fn note(&mut self, wrong: Wrong, example: String) {
        *self.counts.entry(wrong).or_default() += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(example);
        }
    }
}

#[cfg(test)]
mod tests;

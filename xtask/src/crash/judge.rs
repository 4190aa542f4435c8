//! The judge compares the clients' history with the provider's effects, the API's answers and the
//! ledger. It is a pure function, so tests can show that it finds planted lies.

mod effects;
mod money;
mod payments;
mod payouts;

pub(super) use money::judge_ledger;
pub(super) use payments::{Evidence, Judged, judge};

use super::attempt::FinalAnswer;
use std::collections::BTreeMap;

/// Kinds of violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrong {
    /// Two effects for one step of a payment, or for one key at the provider.
    Double,
    /// A charge both captured and voided.
    Both,
    /// Refunds above the captured amount.
    OverRefund,
    /// A success without an effect.
    Unpaid,
    /// An effect of a refused request.
    PaidRefusal,
    /// An effect or an answer with a wrong amount.
    Amount,
    /// An answer that is gone.
    Lost,
    /// A replay that differs from the first answer.
    Differing,
    /// A key without a final answer.
    Unanswered,
    /// An effect, charge or payout that no client was told of.
    Unexplained,
    /// Two keys with the same charge or transfer in their answers, or an answer that names none.
    Mistaken,
    /// A charge or payout that the API shows differently from the provider.
    Shown,
    /// A balance that disagrees with the acknowledged requests or the provider's effects.
    Balance,
    /// A balance below its floor.
    Floor,
    /// A status that a valid request should never get.
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

pub(super) const EXAMPLES_MAX: usize = 20;

/// Result of the last pass for one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replay {
    Same,
    Differs,
    Lost,
}

impl Replay {
    pub(super) fn of(first: &FinalAnswer, now: Option<&FinalAnswer>) -> Replay {
        match now {
            Some(answer) if answer == first => Replay::Same,
            Some(_) => Replay::Differs,
            None => Replay::Lost,
        }
    }
}

/// Counts of violations, and the first few as text.
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

    /// Merges the counts and examples of another verdict.
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

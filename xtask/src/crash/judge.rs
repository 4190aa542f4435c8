//! The judge: the clients' history against the provider's, and against the books. Pure, so that planted lies can be
//! shown to be found.

mod transfers;

pub(super) use transfers::judge_transfers;

use super::order::{Order, What};
use super::provider::Effect;
use super::told::Told;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrong {
    /// More than one effect for a payment, or for a key at the provider.
    Double,
    /// A charge that was answered as made, without an effect.
    Unpaid,
    /// An effect for a payment that was answered as refused.
    PaidRefusal,
    /// An effect, or an answer, of another amount.
    Amount,
    /// An answer that was given and is gone.
    Lost,
    /// A replay that is not the first answer again.
    Differing,
    /// A key without a final answer.
    Unanswered,
    /// An effect that no client was told of.
    Unexplained,
    /// Two keys that were told the same charge or transfer, or an answer that names none.
    Mistaken,
    /// A balance that is not what the acknowledged transfers make it.
    Balance,
    /// A balance that was seen below its floor.
    Floor,
    /// An answer that a good request should never get.
    Strange,
}

/// Every kind with its name in reports.
pub(super) const WRONGS: [(Wrong, &str); 12] = [
    (Wrong::Double, "double effects"),
    (Wrong::Unpaid, "answered but not charged"),
    (Wrong::PaidRefusal, "refused but charged"),
    (Wrong::Amount, "wrong amounts"),
    (Wrong::Lost, "lost answers"),
    (Wrong::Differing, "differing replays"),
    (Wrong::Unanswered, "unanswered keys"),
    (Wrong::Unexplained, "unexplained effects"),
    (Wrong::Mistaken, "mistaken ids"),
    (Wrong::Balance, "wrong balances"),
    (Wrong::Floor, "broken floors"),
    (Wrong::Strange, "strange answers"),
];

/// Examples kept.
const EXAMPLES_MAX: usize = 20;

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

/// Judges the final answers of charges against effects.
pub(super) fn judge(orders: &[Order], effects: &[Effect]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut by_payment: HashMap<&str, Vec<&Effect>> = HashMap::new();
    let mut by_key: HashMap<&str, u64> = HashMap::new();
    for effect in effects {
        match &effect.payment {
            Some(payment) => by_payment.entry(payment).or_default().push(effect),
            None => verdict.note(Wrong::Unexplained, "an effect names no payment".to_owned()),
        }
        if let Some(key) = &effect.key {
            *by_key.entry(key).or_default() += 1;
        }
    }
    for (payment, effects) in by_payment.iter().filter(|(_, effects)| effects.len() > 1) {
        verdict.note(Wrong::Double, format!("{payment} has {} effects", effects.len()));
    }
    for (key, count) in by_key.iter().filter(|(_, count)| **count > 1) {
        verdict.note(Wrong::Double, format!("the provider executed its key {key} {count} times"));
    }
    let mut seen = HashSet::new();
    for order in orders {
        if let What::Charge { amount, declined } = order.what {
            judge_charge(order, amount, declined, &mut by_payment, &mut seen, &mut verdict);
        }
    }
    // What is left belongs to no answer. Keys without an answer are counted already, and theirs may be among it.
    for payment in by_payment.keys() {
        verdict.note(Wrong::Unexplained, format!("{payment} was charged and nobody was told"));
    }
    verdict
}

fn judge_charge(
    order: &Order,
    amount: u64,
    declined: bool,
    by_payment: &mut HashMap<&str, Vec<&Effect>>,
    seen: &mut HashSet<String>,
    verdict: &mut Verdict,
) {
    let key = &order.key;
    let Some(first) = &order.first else {
        verdict.note(Wrong::Unanswered, format!("{key} has no final answer"));
        return;
    };
    let Some(id) = first.names() else {
        verdict.note(Wrong::Mistaken, format!("{key}: the answer {} names no charge", first.status));
        return;
    };
    if !seen.insert(id.clone()) {
        verdict.note(Wrong::Mistaken, format!("{key}: {id} is the charge of another key"));
        return;
    }
    let effects = by_payment.remove(id.as_str()).unwrap_or_default();
    if first.status != 201 {
        if !effects.is_empty() {
            verdict.note(Wrong::PaidRefusal, format!("{key}: {id} was refused with {}", first.status));
        }
        return;
    }
    if declined {
        verdict.note(Wrong::Strange, format!("{key}: {id} succeeded with a card that is declined"));
    }
    if first.amount() != Some(amount) {
        verdict.note(Wrong::Amount, format!("{key}: {id} was answered with another amount"));
    }
    match effects.first() {
        None => verdict.note(Wrong::Unpaid, format!("{key}: {id} was answered and never charged")),
        Some(effect) if effect.amount != amount => {
            verdict.note(Wrong::Amount, format!("{key}: {id} was charged {} for {amount}", effect.amount));
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests;

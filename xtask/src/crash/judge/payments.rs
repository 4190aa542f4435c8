//! Charges, their operations, and payouts: clients' answers against the provider's effects and the
//! API.

use super::super::attempt::FinalAnswer;
use super::super::order::{Charge, Operate, Order, SagaAction, Tender, What};
use super::super::provider::Effect;
use super::super::served::{Parked, Shown};
use super::effects::{Done, sort};
use super::{Verdict, Wrong, payouts};
use std::collections::{HashMap, HashSet};

/// All observations from outside the server.
pub(in super::super) struct Evidence<'a> {
    pub(in super::super) orders: &'a [Order],
    pub(in super::super) effects: &'a [Effect],
    pub(in super::super) shown: &'a HashMap<String, Shown>,
    /// Dead letters, for which the provider may be responsible.
    pub(in super::super) parked: &'a Parked,
    /// Whether the provider sometimes executes twice by itself.
    pub(in super::super) by_itself: bool,
}

/// The verdict, and the sums that the ledger must show.
#[derive(Default)]
pub(in super::super) struct Judged {
    pub(in super::super) verdict: Verdict,
    /// Captured from cards minus refunds.
    pub(in super::super) cards: u64,
    /// Paid by ledger accounts.
    pub(in super::super) wallets: u64,
    /// Total of payouts.
    pub(in super::super) paid_out: u64,
    /// Requests executed twice by the provider itself.
    pub(in super::super) repeated: u64,
}

/// Answers about operations on one charge.
#[derive(Default)]
struct Asked {
    captured: Vec<u64>,
    voided: Vec<u64>,
    refunded: Vec<u64>,
    /// Refused operations, and those without a final answer.
    refused: Vec<SagaAction>,
    open: Vec<SagaAction>,
}

impl Asked {
    fn acknowledged(&self, action: SagaAction) -> &[u64] {
        match action {
            SagaAction::Capture => &self.captured,
            SagaAction::Void => &self.voided,
            SagaAction::Refund => &self.refunded,
        }
    }
}

pub(in super::super) fn judge(evidence: &Evidence<'_>) -> Judged {
    let mut judged = Judged::default();
    let (mut done, repeated) = sort(evidence.effects, evidence.by_itself, &mut judged.verdict);
    judged.repeated = repeated;
    let asked = operations(evidence, &mut judged.verdict);
    let mut seen = HashSet::new();
    for (index, order) in evidence.orders.iter().enumerate() {
        if !order.is_charge() && !order.is_payout() {
            continue;
        }
        let verdict = &mut judged.verdict;
        let Some(first) = &order.first else {
            if !evidence.parked.orders.contains(&index) {
                verdict.note(Wrong::Unanswered, format!("{} has no final answer", order.key));
            }
            continue;
        };
        let Some(id) = named(order, first, &mut seen, verdict) else { continue };
        let done = done.remove(&id).unwrap_or_default();
        let charge = match &order.what {
            What::Charge(charge) => charge,
            What::Payout(payout) => {
                let case = payouts::Case { key: &order.key, payout: *payout, first, id: &id, done: &done };
                judged.paid_out += case.judge(evidence.shown.get(&id), verdict);
                continue;
            }
            What::Operate(_) | What::Transfer { .. } => continue,
        };
        let none = Asked::default();
        let case =
            Case { order, charge, first, id: &id, done: &done, asked: asked.get(&id).unwrap_or(&none) };
        case.judge(verdict);
        let settled = case.asked.open.is_empty();
        case.compare_shown(evidence.shown.get(&id), settled, verdict);
        let (cards, wallets) = case.money(settled);
        judged.cards += cards;
        judged.wallets += wallets;
    }
    // The remaining effects belong to no answer. A parked charge has no answer, so its effect may
    // be among them.
    let unexplained = |id: &&String| !seen.contains(*id) && !evidence.parked.charges.contains(*id);
    for id in done.keys().filter(unexplained) {
        judged.verdict.note(Wrong::Unexplained, format!("{id} was executed without an answer"));
    }
    for id in evidence.shown.keys().filter(unexplained) {
        judged.verdict.note(Wrong::Unexplained, format!("{id} is shown without an answer"));
    }
    judged
}

/// The payment that an answer is about. A charge that its account could not pay for has none.
fn named(
    order: &Order,
    first: &FinalAnswer,
    seen: &mut HashSet<String>,
    verdict: &mut Verdict,
) -> Option<String> {
    let key = &order.key;
    match first.names() {
        Some(id) if seen.insert(id.clone()) => Some(id),
        Some(id) => {
            verdict.note(Wrong::Mistaken, format!("{key}: {id} is the payment of another key"));
            None
        }
        None if first.error().as_deref() == Some("insufficient_funds") => None,
        None => {
            verdict.note(Wrong::Mistaken, format!("{key}: the answer {} names no payment", first.status));
            None
        }
    }
}

fn operations(evidence: &Evidence<'_>, verdict: &mut Verdict) -> HashMap<String, Asked> {
    let mut all: HashMap<String, Asked> = HashMap::new();
    let mut refunds = HashSet::new();
    for (index, order) in evidence.orders.iter().enumerate() {
        let What::Operate(Operate { action, charge, amount }) = &order.what else { continue };
        let (key, asked) = (&order.key, all.entry(charge.to_string()).or_default());
        let Some(first) = &order.first else {
            if evidence.parked.behind.contains(&index) {
                continue;
            }
            asked.open.push(*action);
            if !evidence.parked.orders.contains(&index) {
                verdict.note(Wrong::Unanswered, format!("{key} has no final answer"));
            }
            continue;
        };
        if !first.is_success() {
            asked.refused.push(*action);
            continue;
        }
        let told = match action {
            SagaAction::Capture => first.number("amount_captured"),
            SagaAction::Void | SagaAction::Refund => first.number("amount"),
        };
        let Some(told) = told else {
            verdict.note(Wrong::Mistaken, format!("{key}: the answer names no amount"));
            continue;
        };
        if amount.is_some_and(|amount| amount != told) {
            verdict.note(Wrong::Amount, format!("{key} was answered with another amount"));
        }
        let id = first.names().unwrap_or_default();
        match action {
            SagaAction::Capture => asked.captured.push(told),
            SagaAction::Void => asked.voided.push(told),
            SagaAction::Refund => asked.refunded.push(told),
        }
        let mistaken = match action {
            SagaAction::Capture | SagaAction::Void => id != **charge,
            SagaAction::Refund => !refunds.insert(id.clone()),
        };
        if mistaken {
            verdict.note(Wrong::Mistaken, format!("{key} was answered with {id}"));
        }
    }
    all
}

/// A charge with all observations.
struct Case<'a> {
    order: &'a Order,
    charge: &'a Charge,
    first: &'a FinalAnswer,
    id: &'a str,
    done: &'a Done,
    asked: &'a Asked,
}

impl Case<'_> {
    fn judge(&self, verdict: &mut Verdict) {
        let Case { order: Order { key, .. }, charge, first, id, done, asked } = self;
        if !first.is_success() {
            if !done.is_nothing() {
                verdict.note(Wrong::PaidRefusal, format!("{key}: {id} was refused with {}", first.status));
            }
            return;
        }
        if charge.declined {
            verdict.note(Wrong::Strange, format!("{key}: {id} succeeded with a card that is declined"));
        }
        if first.number("amount") != Some(charge.amount) {
            verdict.note(Wrong::Amount, format!("{key}: {id} was answered with another amount"));
        }
        let made = match &charge.tender {
            Tender::Card => done.charges.first(),
            Tender::Held | Tender::Split { .. } => done.authorized.first(),
        };
        match made {
            None => verdict.note(Wrong::Unpaid, format!("{key}: {id} was answered and never charged")),
            Some(amount) if *amount != charge.card() => {
                verdict
                    .note(Wrong::Amount, format!("{key}: {id} was charged {amount} for {}", charge.card()));
            }
            Some(_) => {}
        }
        let own = match &charge.tender {
            Tender::Card | Tender::Held => None,
            // The charge's own capture is part of a split.
            Tender::Split { .. } => Some(charge.card()),
        };
        self.compare(SagaAction::Capture, own, &done.captures, verdict);
        self.compare(SagaAction::Void, None, &done.cancels, verdict);
        self.compare(SagaAction::Refund, None, &done.refunds, verdict);
        if asked.captured.len() > 1 || asked.voided.len() > 1 {
            verdict.note(Wrong::Double, format!("{id}: several captures or voids were acknowledged"));
        }
    }

    /// Compares the answers about one kind of operation with its effects, one by one.
    fn compare(&self, action: SagaAction, own: Option<u64>, done: &[u64], verdict: &mut Verdict) {
        let (id, mut done) = (self.id, done.to_vec());
        for told in self.asked.acknowledged(action).iter().chain(&own) {
            match done.iter().position(|amount| amount == told) {
                Some(place) => {
                    done.swap_remove(place);
                }
                None => {
                    verdict.note(
                        Wrong::Unpaid,
                        format!("{id}: {action:?} of {told} was acknowledged and not executed"),
                    );
                }
            }
        }
        let open = self.asked.open.iter().filter(|open| **open == action).count();
        for amount in done.iter().skip(open) {
            let (wrong, told) = if self.asked.refused.contains(&action) {
                (Wrong::PaidRefusal, "refused")
            } else {
                (Wrong::Unexplained, "not acknowledged")
            };
            verdict.note(wrong, format!("{id}: {action:?} of {amount} was executed and {told}"));
        }
    }

    fn compare_shown(&self, shown: Option<&Shown>, settled: bool, verdict: &mut Verdict) {
        let (id, done) = (self.id, self.done);
        let Some(shown) = shown else {
            return verdict.note(Wrong::Shown, format!("{id} was acknowledged and is not shown"));
        };
        if !settled {
            return;
        }
        let (taken, back) = (done.taken(), done.given_back());
        let status = if !self.first.is_success() {
            "failed"
        } else if !done.cancels.is_empty() {
            "voided"
        } else if taken == 0 {
            "requires_capture"
        } else if back == 0 {
            "succeeded"
        } else if back < taken {
            "partially_refunded"
        } else {
            "refunded"
        };
        let captured = taken + if taken > 0 { self.charge.wallet() } else { 0 };
        let expected = Shown { status: status.to_owned(), captured, refunded: back };
        if *shown != expected {
            verdict.note(Wrong::Shown, format!("{id} is shown as {shown:?} and is {expected:?}"));
        }
    }

    /// Amounts paid by card and account. They come from the provider's effects, or from the answers
    /// while an open operation may or may not be in the ledger.
    fn money(&self, settled: bool) -> (u64, u64) {
        if !self.first.is_success() {
            return (0, 0);
        }
        let cards = if settled {
            self.done.taken().saturating_sub(self.done.given_back())
        } else {
            let sum = |amounts: &[u64]| amounts.iter().sum::<u64>();
            let at_once = match &self.charge.tender {
                Tender::Held => 0,
                Tender::Card | Tender::Split { .. } => self.charge.card(),
            };
            (at_once + sum(&self.asked.captured)).saturating_sub(sum(&self.asked.refunded))
        };
        (cards, self.charge.wallet())
    }
}

//! The mix of orders: the next charge or payout, and the operations that follow a charge.
//! Operations come in bunches, each under its own key, so that several clients race on one charge.

use super::attempt::FinalAnswer;
use super::ledger;
use super::order::{Charge, Operate, Order, Payout, SagaAction, Tender, What};
use counterfoil_prng::Prng;
use std::sync::Arc;

/// One of this many charges uses a declined card.
const DECLINED_ONCE_IN: u64 = 7;
/// One of this many captured charges is refunded, wholly or in part.
const REFUNDED_ONCE_IN: u64 = 8;
/// One of this many payouts goes to a closed bank account.
const CLOSED_ONCE_IN: u64 = 7;
/// Most operations of a bunch.
const BUNCH_MAX: u64 = 4;
/// Largest share that an account pays.
const WALLET_MAX: u64 = 1_000;

/// Percentages.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    /// Of all orders: transfers between guarded accounts.
    pub(super) transfers: u64,
    /// Of the others: payouts.
    pub(super) payouts: u64,
    /// Of charges: authorized now, captured or voided later.
    pub(super) held: u64,
    /// Of charges: paid by an account and a card together.
    pub(super) split: u64,
    /// Ids of the guarded accounts, in their order; if empty, nothing is split.
    pub(super) wallets: Vec<Arc<str>>,
}

impl Mix {
    /// Immediate charges only.
    pub(super) const CHARGES: Mix = Mix { transfers: 0, payouts: 0, held: 0, split: 0, wallets: Vec::new() };

    /// Draws the order at this position.
    pub(super) fn draw(&self, index: usize, prng: &mut Prng) -> What {
        if prng.below(100) < self.transfers {
            return ledger::draw(prng);
        }
        // Every amount is unique, so that an effect of the wrong payment shows.
        let amount = 100 + index as u64;
        if prng.below(100) < self.payouts {
            return What::Payout(Payout { amount, closed: prng.once_in(CLOSED_ONCE_IN) });
        }
        let share = prng.below(100);
        let (place, wallet) = (ledger::place(prng), 1 + prng.below(WALLET_MAX.min(amount - 1)));
        let tender = match self.wallets.get(place) {
            _ if share < self.held => Tender::Held,
            Some(account) if share < self.held + self.split => {
                Tender::Split { place, account: Arc::clone(account), wallet }
            }
            Some(_) | None => Tender::Card,
        };
        What::Charge(Charge { amount, declined: prng.once_in(DECLINED_ONCE_IN), tender })
    }

    /// Follow-up orders, due as soon as `order` was answered.
    pub(super) fn after(&self, order: &Order, answer: &FinalAnswer, prng: &mut Prng) -> Vec<What> {
        if !answer.is_success() || self.held == 0 {
            return Vec::new();
        }
        let charge = match &order.what {
            What::Charge(Charge { tender: Tender::Held, .. }) => {
                return named(answer).map_or(Vec::new(), |charge| claims(&charge, answer, prng));
            }
            What::Charge(Charge { tender: Tender::Card | Tender::Split { .. }, .. }) => {
                if !prng.once_in(REFUNDED_ONCE_IN) {
                    return Vec::new();
                }
                named(answer)
            }
            What::Operate(Operate { action: SagaAction::Capture, charge, .. }) => Some(charge.clone()),
            What::Operate(Operate { action: SagaAction::Void | SagaAction::Refund, .. })
            | What::Payout(_)
            | What::Transfer { .. } => None,
        };
        charge.map_or(Vec::new(), |charge| refunds(&charge, answer, prng))
    }
}

fn named(answer: &FinalAnswer) -> Option<Box<str>> {
    answer.names().map(Into::into)
}

/// Captures and voids of a held charge, of which one may succeed.
fn claims(charge: &str, answer: &FinalAnswer, prng: &mut Prng) -> Vec<What> {
    let amount = answer.number("amount").unwrap_or(1).max(1);
    (0..=prng.below(BUNCH_MAX))
        .map(|_| match prng.below(5) {
            0 | 1 => operate(SagaAction::Capture, charge, None),
            2 | 3 => operate(SagaAction::Capture, charge, Some(1 + prng.below(amount))),
            _ => operate(SagaAction::Void, charge, None),
        })
        .collect()
}

/// Refunds of a captured charge; together they may exceed the captured amount.
fn refunds(charge: &str, answer: &FinalAnswer, prng: &mut Prng) -> Vec<What> {
    let captured = answer.number("amount_captured").unwrap_or(1).max(1);
    (0..=prng.below(BUNCH_MAX))
        .map(|_| {
            let part = 1 + prng.below(captured);
            operate(SagaAction::Refund, charge, (!prng.once_in(4)).then_some(part))
        })
        .collect()
}

fn operate(action: SagaAction, charge: &str, amount: Option<u64>) -> What {
    What::Operate(Operate { action, charge: charge.into(), amount })
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::final_answer;
    use super::*;

    fn mix() -> Mix {
        Mix { transfers: 10, payouts: 10, held: 30, split: 20, wallets: vec!["ac_1".into(); 4] }
    }

    #[test]
    fn shares_are_kept() {
        let (mut prng, mix) = (Prng::new(1), mix());
        let drawn: Vec<What> = (0..4_000).map(|index| mix.draw(index, &mut prng)).collect();
        let count = |which: fn(&What) -> bool| drawn.iter().filter(|what| which(what)).count();
        let charges = count(|what| matches!(what, What::Charge(_)));
        assert!((3_090..=3_390).contains(&charges), "{charges}");
        let payouts = count(|what| matches!(what, What::Payout(_)));
        assert!((290..=430).contains(&payouts), "{payouts}");
        let closed = count(|what| matches!(what, What::Payout(Payout { closed: true, .. })));
        assert!((25..=80).contains(&closed), "{closed}");
        let held = count(|what| matches!(what, What::Charge(Charge { tender: Tender::Held, .. })));
        assert!((840..=1_100).contains(&held), "{held}");
        let split =
            |what: &What| matches!(what, What::Charge(charge) if charge.wallet() > 0 && charge.card() > 0);
        assert!((530..=770).contains(&count(split)), "{}", count(split));
        assert!((0..500).all(|index| matches!(
            Mix::CHARGES.draw(index, &mut prng),
            What::Charge(Charge { tender: Tender::Card, .. })
        )));
    }

    #[test]
    fn follow_up_operations_fit_the_answer() {
        let mut prng = Prng::new(1);
        let made = final_answer(201, r#"{"id":"ch_1","amount":500,"amount_captured":500}"#);
        let order = |tender| Order {
            key: "k".into(),
            what: What::Charge(Charge { amount: 500, declined: false, tender }),
            first: None,
        };
        let (held, taken) = (order(Tender::Held), order(Tender::Card));
        let mut refunded = 0;
        for _ in 0..200 {
            let claims = mix().after(&held, &made, &mut prng);
            assert!((1..=4).contains(&claims.len()));
            for what in claims.into_iter().chain(mix().after(&taken, &made, &mut prng)) {
                let What::Operate(Operate { action, charge, amount }) = what else { panic!("{what:?}") };
                assert!(&*charge == "ch_1" && amount.is_none_or(|amount| (1..=500).contains(&amount)));
                refunded += u32::from(action == SagaAction::Refund);
            }
            assert!(mix().after(&held, &final_answer(402, "{}"), &mut prng).is_empty());
            assert!(Mix::CHARGES.after(&held, &made, &mut prng).is_empty());
        }
        assert!(refunded > 10, "{refunded}");
    }
}

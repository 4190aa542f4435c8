//! The model: sums per account, a list of holds, a list of transactions.

use crate::support::ledger::view;
use counterfoil_core::ledger::account::Side::{self, Credit, Debit};
use counterfoil_core::ledger::totals::BalanceAmounts;
use counterfoil_core::types::time::Time;

pub(super) struct Account {
    pub(super) code: String,
    pub(super) asset: &'static str,
    pub(super) normal: Side,
    pub(super) floor: Option<i64>,
    pub(super) cap: Option<i64>,
    pub(super) debits: i64,
    pub(super) credits: i64,
    pub(super) debits_held: i64,
    pub(super) credits_held: i64,
}

impl Account {
    pub(super) fn new(
        code: String,
        asset: &'static str,
        normal: Side,
        (floor, cap): (Option<i64>, Option<i64>),
    ) -> Account {
        Account { code, asset, normal, floor, cap, debits: 0, credits: 0, debits_held: 0, credits_held: 0 }
    }

    pub(super) fn view(&self) -> BalanceAmounts {
        let (up, down, incoming, outgoing) = match self.normal {
            Credit => (self.credits, self.debits, self.credits_held, self.debits_held),
            Debit => (self.debits, self.credits, self.debits_held, self.credits_held),
        };
        view(i128::from(up - down), i128::from(outgoing), i128::from(incoming))
    }
}

/// One move: account, side, and the changes of the posted and the held sum.
pub(super) type Moved = (usize, Side, i64, i64);

pub(super) struct Held {
    pub(super) id: i64,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) amount: i64,
    pub(super) expires_at: Time,
    pub(super) open: bool,
}

/// A transaction's data for the reversal.
pub(super) struct Done {
    pub(super) id: i64,
    pub(super) posted: Vec<Moved>,
    pub(super) reversible: bool,
    pub(super) reversed: bool,
}

#[derive(Default)]
pub(super) struct Model {
    pub(super) accounts: Vec<Account>,
    pub(super) holds: Vec<Held>,
    pub(super) done: Vec<Done>,
}

impl Model {
    /// Applies all moves or none. Accounts are judged in order.
    pub(super) fn apply(&mut self, moves: &[Moved]) -> Result<(), &'static str> {
        let mut order: Vec<usize> = Vec::new();
        for (account, ..) in moves {
            if !order.contains(account) {
                order.push(*account);
            }
        }
        let before: Vec<BalanceAmounts> =
            order.iter().map(|account| self.accounts[*account].view()).collect();
        self.shift(moves, 1);
        for (account, before) in order.iter().zip(before) {
            let (account, after) = (&self.accounts[*account], self.accounts[*account].view());
            let low = account.floor.is_some_and(|floor| after.available < i128::from(floor));
            let high = account.cap.is_some_and(|cap| after.posted + after.incoming > i128::from(cap));
            let refusal = if low && after.available < before.available {
                Some("insufficient_funds")
            } else if high && after.posted + after.incoming > before.posted + before.incoming {
                Some("cap_exceeded")
            } else {
                None
            };
            if let Some(refusal) = refusal {
                self.shift(moves, -1);
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn shift(&mut self, moves: &[Moved], sign: i64) {
        for (account, side, posted, held) in moves {
            let account = &mut self.accounts[*account];
            match side {
                Debit => {
                    account.debits += sign * posted;
                    account.debits_held += sign * held;
                }
                Credit => {
                    account.credits += sign * posted;
                    account.credits_held += sign * held;
                }
            }
        }
    }

    pub(super) fn lapse(&mut self, now: Time) {
        let mut moves = Vec::new();
        for hold in self.holds.iter_mut().filter(|hold| hold.open && hold.expires_at <= now) {
            hold.open = false;
            moves.extend([(hold.from, Debit, 0, -hold.amount), (hold.to, Credit, 0, -hold.amount)]);
        }
        self.apply(&moves).unwrap();
    }
}

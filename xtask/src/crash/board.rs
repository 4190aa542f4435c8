//! What the clients share: every charge they asked for, what they were told, and what is to be asked next.

use super::told::{Attempt, Told};
use crate::dice::Dice;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Charges without a final answer at any time; above it no new ones are asked for.
const OPEN_MAX: usize = 2_000;
/// Charges of one campaign, kept in memory with their answers.
const CHARGES_MAX: usize = 1_000_000;
/// A charge that was answered is asked for again once in this many times, under the kills.
const REPLAY_ONCE_IN: u64 = 8;
/// Every so-many-th charge uses a card that is declined.
const DECLINED_ONCE_IN: u64 = 7;
/// A client that was told to come back, or was cut off, comes back after this much at least.
const RETRY_AFTER: Duration = Duration::from_millis(20);
const RETRY_SPREAD_MS: u64 = 180;

/// A charge as its client knows it.
#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) key: String,
    pub(super) amount: u64,
    pub(super) declined: bool,
    /// The first final answer.
    pub(super) first: Option<Told>,
}

impl Charge {
    pub(super) fn body(&self) -> String {
        let method = if self.declined { "pm_card_chargeDeclined" } else { "pm_card_visa" };
        format!(r#"{{"amount":{},"currency":"USD","payment_method":"{method}"}}"#, self.amount)
    }
}

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// Ask for this charge.
    Ask(usize),
    /// There is nothing to ask for right now.
    Idle,
    /// There will be nothing to ask for.
    Done,
}

/// The shared state.
pub(super) struct Board {
    pub(super) charges: Vec<Charge>,
    pub(super) differing: Vec<usize>,
    pub(super) strange: Vec<(usize, u16)>,
    run: u64,
    dice: Dice,
    again: BinaryHeap<Reverse<(Instant, usize)>>,
    asked: usize,
    making: bool,
}

impl Board {
    pub(super) fn new(mut dice: Dice) -> Board {
        Board {
            charges: Vec::new(),
            differing: Vec::new(),
            strange: Vec::new(),
            run: dice.roll(),
            dice,
            again: BinaryHeap::new(),
            asked: 0,
            making: true,
        }
    }

    /// Charges without a final answer.
    pub(super) fn open(&self) -> usize {
        self.charges.iter().filter(|charge| charge.first.is_none()).count()
    }

    /// From now on only what was begun is asked for.
    pub(super) fn close(&mut self) {
        self.making = false;
    }

    pub(super) fn next(&mut self, now: Instant) -> Errand {
        if let Some(Reverse((due, index))) = self.again.peek().copied()
            && due <= now
        {
            self.again.pop();
            self.asked += 1;
            return Errand::Ask(index);
        }
        let waiting = self.asked + self.again.len();
        if !self.making {
            return if waiting == 0 { Errand::Done } else { Errand::Idle };
        }
        if waiting >= OPEN_MAX || self.charges.len() >= CHARGES_MAX {
            return Errand::Idle;
        }
        self.asked += 1;
        Errand::Ask(self.make())
    }

    fn make(&mut self) -> usize {
        let index = self.charges.len();
        self.charges.push(Charge {
            key: format!("crash-{:016x}-{index:07}", self.run),
            // Every amount is another, so that an effect of the wrong charge shows.
            amount: 100 + index as u64,
            declined: self.dice.once_in(DECLINED_ONCE_IN),
            first: None,
        });
        index
    }

    /// Notes what came of an errand, and plans the next one for this charge, if any.
    pub(super) fn note(&mut self, index: usize, attempt: Attempt, now: Instant) {
        self.asked -= 1;
        let charge = &mut self.charges[index];
        match attempt {
            Attempt::Final(told) => {
                match &charge.first {
                    None => charge.first = Some(told),
                    Some(first) if *first == told => {}
                    Some(_) => self.differing.push(index),
                }
                if self.making && self.dice.once_in(REPLAY_ONCE_IN) {
                    self.plan(index, now);
                }
            }
            Attempt::Strange(status) => {
                self.strange.push((index, status));
                self.plan(index, now);
            }
            Attempt::Later | Attempt::Cut => self.plan(index, now),
        }
    }

    fn plan(&mut self, index: usize, now: Instant) {
        // A replay that was cut short after the kills is judged by the last pass over all charges.
        if !self.making && self.charges[index].first.is_some() {
            return;
        }
        let spread = Duration::from_millis(self.dice.below(RETRY_SPREAD_MS));
        self.again.push(Reverse((now + RETRY_AFTER + spread, index)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::told::tests::told;
    use super::*;

    #[test]
    fn a_key_is_asked_for_until_it_is_final() {
        let mut board = Board::new(Dice::new(1));
        let now = Instant::now();
        assert_eq!(board.next(now), Errand::Ask(0));
        board.note(0, Attempt::Cut, now);
        board.close();
        assert_eq!(board.next(now), Errand::Idle);
        let later = now + Duration::from_secs(1);
        assert_eq!(board.next(later), Errand::Ask(0));
        board.note(0, Attempt::Later, later);
        assert_eq!(board.next(later + Duration::from_secs(1)), Errand::Ask(0));
        assert_eq!((board.open(), board.next(later)), (1, Errand::Idle));
        board.note(0, Attempt::Final(told(201, "{}")), later);
        assert_eq!((board.open(), board.next(later)), (0, Errand::Done));
    }

    #[test]
    fn another_final_answer_is_noted() {
        let mut board = Board::new(Dice::new(1));
        let now = Instant::now();
        for body in ["a", "a", "b"] {
            board.asked += 1;
            if board.charges.is_empty() {
                board.make();
            }
            board.note(0, Attempt::Final(told(201, body)), now);
        }
        assert_eq!(board.differing, [0]);
        assert_eq!(board.charges[0].first, Some(told(201, "a")));
    }

    #[test]
    fn what_is_open_is_bounded() {
        let mut board = Board::new(Dice::new(1));
        let now = Instant::now();
        let asked = (0..OPEN_MAX * 2).filter(|_| board.next(now) != Errand::Idle).count();
        assert_eq!(asked, OPEN_MAX);
    }
}

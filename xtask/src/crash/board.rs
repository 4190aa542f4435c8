//! State shared by the clients: their orders, the answers so far, and the queue of requests.

use super::attempt::Attempt;
use super::mix::Mix;
use super::order::{Order, What};
use counterfoil_prng::Prng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// Limit of orders without a final answer; above it, clients make no new ones.
const OPEN_MAX: usize = 2_000;
/// Limit of orders in a campaign, because all stay in memory. Follow-up orders come on top.
pub(super) const ORDERS_MAX: usize = 1_000_000;
/// During the kills, one of this many answered orders is sent again.
const REPLAY_ONCE_IN: u64 = 8;
/// Minimum wait of a client that was told to retry or was cut off.
const RETRY_AFTER: Duration = Duration::from_millis(20);
const RETRY_SPREAD_MS: u64 = 180;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// Send this order.
    Ask(usize),
    /// Nothing is due yet.
    Idle,
    /// Nothing will ever be due.
    Done,
}

/// State shared by all clients.
pub(super) struct Board {
    pub(super) orders: Vec<Order>,
    pub(super) differing: Vec<usize>,
    pub(super) strange: Vec<(usize, u16)>,
    /// Number of answers that said the store is unavailable.
    pub(super) away: u64,
    run: u64,
    mix: Mix,
    made: usize,
    made_max: usize,
    prng: Prng,
    again: BinaryHeap<Reverse<(Instant, usize)>>,
    asked: usize,
    making: bool,
}

impl Board {
    /// After `made_max` orders only follow-up orders are made.
    pub(super) fn new(mut prng: Prng, mix: Mix, made_max: usize) -> Board {
        Board {
            orders: Vec::new(),
            differing: Vec::new(),
            strange: Vec::new(),
            away: 0,
            run: prng.next_u64(),
            mix,
            made: 0,
            made_max,
            prng,
            again: BinaryHeap::new(),
            asked: 0,
            making: true,
        }
    }

    /// Number of orders without a final answer.
    pub(super) fn open(&self) -> usize {
        self.orders.iter().filter(|order| order.first.is_none()).count()
    }

    /// Stops making orders; started ones are finished.
    pub(super) fn close(&mut self) {
        self.making = false;
    }

    pub(super) fn is_closed(&self) -> bool {
        !self.making
    }

    pub(super) fn is_full(&self) -> bool {
        self.made >= self.made_max
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
        if waiting >= OPEN_MAX || self.is_full() {
            return Errand::Idle;
        }
        self.asked += 1;
        Errand::Ask(self.make())
    }

    fn make(&mut self) -> usize {
        self.made += 1;
        let what = self.mix.draw(self.orders.len(), &mut self.prng);
        self.add(what)
    }

    fn add(&mut self, what: What) -> usize {
        let index = self.orders.len();
        let key = format!("crash-{:016x}-{index:07}", self.run);
        self.orders.push(Order { key, what, first: None });
        index
    }

    /// Records the result of an errand and schedules the order's next one, if any.
    pub(super) fn note(&mut self, index: usize, attempt: Attempt, now: Instant) {
        self.asked -= 1;
        match attempt {
            Attempt::Final(answer) => {
                match &self.orders[index].first {
                    None => {
                        if self.making {
                            let next = self.mix.after(&self.orders[index], &answer, &mut self.prng);
                            // All are due at once; the next free client takes the first.
                            let added = next.into_iter().map(|what| Reverse((now, self.add(what))));
                            let added: Vec<_> = added.collect();
                            self.again.extend(added);
                        }
                        self.orders[index].first = Some(answer);
                    }
                    Some(first) if *first == answer => {}
                    Some(_) => self.differing.push(index),
                }
                if self.making && self.prng.once_in(REPLAY_ONCE_IN) {
                    self.plan(index, now);
                }
            }
            Attempt::Strange(status) => {
                // A retry would get the same answer.
                self.strange.push((index, status));
            }
            Attempt::Away => {
                self.away += 1;
                self.plan(index, now);
            }
            Attempt::Later | Attempt::Cut => self.plan(index, now),
        }
    }

    fn plan(&mut self, index: usize, now: Instant) {
        // A replay cut short after the kills is left to the last pass over all orders.
        if !self.making && self.orders[index].first.is_some() {
            return;
        }
        let spread = Duration::from_millis(self.prng.below(RETRY_SPREAD_MS));
        self.again.push(Reverse((now + RETRY_AFTER + spread, index)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::final_answer;
    use super::*;

    #[test]
    fn a_key_is_retried_until_its_answer_is_final() {
        let mut board = Board::new(Prng::new(1), Mix::CHARGES, ORDERS_MAX);
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
        board.note(0, Attempt::Final(final_answer(201, "{}")), later);
        assert_eq!((board.open(), board.next(later)), (0, Errand::Done));
    }

    #[test]
    fn another_final_answer_is_noted() {
        let mut board = Board::new(Prng::new(1), Mix::CHARGES, ORDERS_MAX);
        let now = Instant::now();
        for body in ["a", "a", "b"] {
            board.asked += 1;
            if board.orders.is_empty() {
                board.make();
            }
            board.note(0, Attempt::Final(final_answer(201, body)), now);
        }
        assert_eq!(board.differing, [0]);
        assert_eq!(board.orders[0].first, Some(final_answer(201, "a")));
    }

    #[test]
    fn a_held_charge_is_followed_by_operations_at_once() {
        let mix = Mix { held: 100, ..Mix::CHARGES };
        let mut board = Board::new(Prng::new(1), mix, 1);
        let now = Instant::now();
        assert_eq!(board.next(now), Errand::Ask(0));
        assert_eq!(board.next(now), Errand::Idle, "the limit is one charge");
        board.note(0, Attempt::Final(final_answer(201, r#"{"id":"ch_1","amount":100}"#)), now);
        assert_eq!(board.next(now), Errand::Ask(1));
        assert!(board.orders[1].is_operation());
    }

    #[test]
    fn open_orders_are_bounded() {
        let mut board = Board::new(Prng::new(1), Mix::CHARGES, ORDERS_MAX);
        let now = Instant::now();
        let asked = (0..OPEN_MAX * 2).filter(|_| board.next(now) != Errand::Idle).count();
        assert_eq!(asked, OPEN_MAX);
    }
}

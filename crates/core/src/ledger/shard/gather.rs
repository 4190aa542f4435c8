//! Gathers thinly divided resources: funds, room and holds move to one shard, from as many others
//! as fit.
//!
//! Funds move as parts of the floor, and room moves as parts of the cap. The amount above a shard's
//! floor may go out. Raising one shard's floor and lowering another's by the same amount therefore
//! moves the right to spend without touching a bound. A hold moves together with a part of the
//! affected bound. Posted money stays in place.
//!
//! A shard gives all of the requested resource at once, and the receiver only gains. Gathering from
//! `n` shards, `k` at a time, therefore ends after `n / k` rounds.

use super::{ShardPart, funds, lowered, narrow, raised, room};
use crate::ledger::balance::{Balance, Delta};
use std::cmp::Reverse;

/// Amounts of the resources that a delta asks of a shard.
#[derive(Clone, Copy)]
struct Stock {
    funds: i128,
    room: i128,
    outgoing: i128,
    incoming: i128,
}

impl Stock {
    fn asked(delta: Delta) -> Stock {
        Stock {
            funds: lowered(delta).max(0),
            room: raised(delta).max(0),
            outgoing: i128::from(delta.outgoing).saturating_neg().max(0),
            incoming: i128::from(delta.incoming).saturating_neg().max(0),
        }
    }

    /// The resources available in a shard. Without a bound, the shard has no parts of that bound to
    /// move. Beyond a bound, the shard can give neither parts of the bound nor holds under the
    /// bound.
    fn of(shard: &Balance, asked: Stock) -> Stock {
        let held = |amount: i64, left: Option<i128>| {
            if left.is_some_and(i128::is_negative) { 0 } else { i128::from(amount) }
        };
        let (funds, room) = (funds(shard), room(shard));
        Stock {
            funds: funds.unwrap_or(0).max(0),
            room: room.unwrap_or(0).max(0),
            outgoing: held(shard.outgoing, funds),
            incoming: held(shard.incoming, room),
        }
        .at_most(asked)
    }

    fn at_most(self, other: Stock) -> Stock {
        Stock {
            funds: self.funds.min(other.funds),
            room: self.room.min(other.room),
            outgoing: self.outgoing.min(other.outgoing),
            incoming: self.incoming.min(other.incoming),
        }
    }

    fn less(self, other: Stock) -> Stock {
        Stock {
            funds: self.funds.saturating_sub(other.funds),
            room: self.room.saturating_sub(other.room),
            outgoing: self.outgoing.saturating_sub(other.outgoing),
            incoming: self.incoming.saturating_sub(other.incoming),
        }
    }

    fn sum(self) -> i128 {
        self.funds.saturating_add(self.room).saturating_add(self.outgoing).saturating_add(self.incoming)
    }
}

/// The capacity of the receiver, limited by overflow of 64 bits in a number or in a delta.
#[derive(Clone, Copy)]
struct Space {
    floor: i128,
    cap: i128,
    outgoing: i128,
    incoming: i128,
}

impl Space {
    fn of(shard: &Balance) -> Space {
        let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
        let floor = shard.floor.map_or(max, |floor| i128::from(floor).saturating_sub(min));
        let cap = shard.cap.map_or(max, |cap| max.saturating_sub(i128::from(cap)));
        Space {
            floor: floor.min(max),
            cap: cap.min(max),
            outgoing: max.saturating_sub(i128::from(shard.outgoing)),
            incoming: max.saturating_sub(i128::from(shard.incoming)),
        }
    }

    /// Takes as much of `stock` as fits. A hold and its funds share the floor's space; the cap's
    /// side works the same way.
    fn take(&mut self, stock: Stock) -> Stock {
        let outgoing = stock.outgoing.min(self.outgoing).min(self.floor);
        let incoming = stock.incoming.min(self.incoming).min(self.cap);
        let funds = stock.funds.min(self.floor.saturating_sub(outgoing));
        let room = stock.room.min(self.cap.saturating_sub(incoming));
        self.outgoing = self.outgoing.saturating_sub(outgoing);
        self.incoming = self.incoming.saturating_sub(incoming);
        self.floor = self.floor.saturating_sub(outgoing).saturating_sub(funds);
        self.cap = self.cap.saturating_sub(incoming).saturating_sub(room);
        Stock { funds, room, outgoing, incoming }
    }
}

/// The receiving shard: the one with the most of the resources that `delta` asks for.
pub(super) fn receiver(shards: &[Balance], delta: Delta) -> Option<&Balance> {
    let asked = Stock::asked(delta);
    // A shard beyond a bound cannot take over a hold.
    shards.iter().filter(|shard| is_within(shard)).max_by_key(|shard| Stock::of(shard, asked).sum())
}

/// At most `parts_max` parts with the sum zero. The parts collect the resources for `delta` in one
/// shard. Empty if nothing can be collected.
pub(super) fn gather(shards: &[Balance], delta: Delta, parts_max: usize) -> Vec<ShardPart> {
    let Some(receiver) = receiver(shards, delta) else { return Vec::new() };
    let asked = Stock::asked(delta);
    let missing = asked.less(Stock::of(receiver, asked));
    let mut space = Space::of(receiver);
    let mut givers: Vec<&Balance> = shards.iter().filter(|shard| shard.shard != receiver.shard).collect();
    givers.sort_by_key(|shard| Reverse(Stock::of(shard, missing).sum()));
    let mut brought = Stock { funds: 0, room: 0, outgoing: 0, incoming: 0 };
    let mut parts = Vec::new();
    for giver in givers.into_iter().take(parts_max.saturating_sub(1)) {
        let given = space.take(Stock::of(giver, missing));
        if given.sum() > 0 {
            brought = brought.less(given);
            parts.push(part(giver, given));
        }
    }
    if !parts.is_empty() {
        parts.push(part(receiver, brought));
    }
    parts
}

fn is_within(shard: &Balance) -> bool {
    funds(shard).is_none_or(|funds| funds >= 0) && room(shard).is_none_or(|room| room >= 0)
}

/// The part of a shard for giving `given`; a negative amount is taken.
fn part(shard: &Balance, given: Stock) -> ShardPart {
    let floor = given.outgoing.saturating_add(given.funds);
    let cap = given.incoming.saturating_add(given.room).saturating_neg();
    let delta = Delta {
        posted: 0,
        outgoing: narrow(given.outgoing.saturating_neg()),
        incoming: narrow(given.incoming.saturating_neg()),
        floor: if shard.floor.is_some() { narrow(floor) } else { 0 },
        cap: if shard.cap.is_some() { narrow(cap) } else { 0 },
    };
    ShardPart { shard: shard.shard, delta }
}

//! Bringing together what is spread too thin: funds, room and holds go to one shard, from as many others as fit.
//!
//! Funds move as parts of the floor, and room as parts of the cap: what stands above a shard's floor may go out, so
//! raising the floor of one shard and lowering that of another by as much moves the right to spend without touching a
//! bound. A hold moves with its part of the bound it counts against. What was posted stays where it is.
//!
//! A shard gives all it has of what is needed, so it gives once; and what the receiver has only grows. So gathering
//! from `n` shards, `k` at a time, ends after `n / k` rounds.

use super::{ShardPart, funds, lowered, narrow, raised, room};
use crate::ledger::balance::{Balance, Delta};
use std::cmp::Reverse;

/// Amounts of what a delta asks of a shard.
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

    /// What a shard has of it to give. Without a bound there are no parts of it to move; beyond one, neither a part of
    /// it nor a hold that counts against it can go.
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

/// How much the receiver can take before one of its numbers, or the delta that changes it, leaves 64 bits.
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

    /// The part of `stock` that can be taken, which is then taken. A hold and the funds it is held from share the
    /// floor's space, and so do the cap's.
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

/// The shard to bring things to: the one that has the most of what `delta` asks for.
pub(super) fn receiver(shards: &[Balance], delta: Delta) -> Option<&Balance> {
    let asked = Stock::asked(delta);
    // A shard beyond a bound cannot take a hold on.
    shards.iter().filter(|shard| is_within(shard)).max_by_key(|shard| Stock::of(shard, asked).sum())
}

/// At most `parts_max` parts that add up to nothing and bring what `delta` asks for to one shard; none if nothing can
/// be brought.
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

/// What a shard does that gives `given`, or takes it if it is below zero.
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

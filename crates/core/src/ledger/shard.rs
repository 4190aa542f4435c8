//! Hot accounts: a guarded balance divided into shards. Each shard has a part of floor and cap, so
//! a write within the shard's part is within the account's bounds. Other writes are planned over
//! all shards.
//!
//! A plan is made from balances read earlier. The store's judge decides per shard, so a stale plan
//! is refused and planned again.

mod gather;
mod refill;
mod spread;

pub use refill::refill;

use super::balance::{Balance, BalanceRefusal, Delta};
use crate::types::limits::SHARDS_MAX;

/// A delta of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardPart {
    pub shard: u8,
    pub delta: Delta,
}

/// The steps that move an account by a delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardPlan {
    /// The parts add up to the delta and fit their shards.
    Apply(Vec<ShardPart>),
    /// The money or room is divided too thinly. The parts add up to zero and collect the resource
    /// in one shard; plan again after applying them.
    GatherFirst(Vec<ShardPart>),
}

/// Chooses the shard for a write to an account.
pub fn pick(shards: u16, chance: u128) -> u8 {
    let shards = u128::from(shards.clamp(1, SHARDS_MAX));
    chance.checked_rem(shards).and_then(|shard| u8::try_from(shard).ok()).unwrap_or(0)
}

/// Plans a move of an account by `delta` over all its `shards`, in at most `parts_max` parts.
/// `delta` has no part of a bound. Refused if the account as a whole does not allow the move.
///
/// Gathering takes at least two parts. A plan that gathering cannot shorten is returned unchanged.
/// This happens only if a shard started beyond a bound, or with numbers at the limit of 64 bits.
pub fn plan(shards: &[Balance], delta: Delta, parts_max: usize) -> Result<ShardPlan, BalanceRefusal> {
    judge_whole(shards, delta)?;
    if let Some(part) = one_shard(shards, delta) {
        return Ok(ShardPlan::Apply(vec![part]));
    }
    let parts = spread::spread(shards, delta)?;
    if parts.len() <= parts_max {
        return Ok(ShardPlan::Apply(parts));
    }
    let gathered = gather::gather(shards, delta, parts_max.max(2));
    Ok(if gathered.is_empty() { ShardPlan::Apply(parts) } else { ShardPlan::GatherFirst(gathered) })
}

/// Applies the rule of [`Balance::moved`] to the sums of all shards.
fn judge_whole(shards: &[Balance], delta: Delta) -> Result<(), BalanceRefusal> {
    let outgoing: i128 = shards.iter().map(|shard| i128::from(shard.outgoing)).sum();
    let incoming: i128 = shards.iter().map(|shard| i128::from(shard.incoming)).sum();
    if outgoing < i128::from(delta.outgoing).saturating_neg()
        || incoming < i128::from(delta.incoming).saturating_neg()
    {
        return Err(BalanceRefusal::NotHeld);
    }
    // A shard without a bound is unlimited, and so is the account.
    let funds: Option<i128> = shards.iter().map(funds).sum();
    let lowered = lowered(delta);
    if lowered > 0 && funds.is_some_and(|funds| funds < lowered) {
        return Err(BalanceRefusal::Insufficient);
    }
    let room: Option<i128> = shards.iter().map(room).sum();
    let raised = raised(delta);
    if raised > 0 && room.is_some_and(|room| room < raised) {
        return Err(BalanceRefusal::CapExceeded);
    }
    Ok(())
}

/// The shard that can take the whole delta, if there is one: the shard with the most of the
/// requested resource.
fn one_shard(shards: &[Balance], delta: Delta) -> Option<ShardPart> {
    let fits = shards.iter().filter(|shard| shard.moved(delta).is_ok());
    let best = fits.max_by_key(|shard| {
        let funds = if lowered(delta) > 0 { shard.spendable() } else { 0 };
        let room = if raised(delta) > 0 { shard.room() } else { 0 };
        let outgoing = if delta.outgoing < 0 { i128::from(shard.outgoing) } else { 0 };
        let incoming = if delta.incoming < 0 { i128::from(shard.incoming) } else { 0 };
        funds.saturating_add(room).saturating_add(outgoing).saturating_add(incoming)
    })?;
    Some(ShardPart { shard: best.shard, delta })
}

/// The amount by which `delta` lowers the available balance; negative for a rise.
fn lowered(delta: Delta) -> i128 {
    i128::from(delta.outgoing).saturating_sub(i128::from(delta.posted))
}

/// The amount by which `delta` raises the expected balance; negative for a fall.
fn raised(delta: Delta) -> i128 {
    i128::from(delta.posted).saturating_add(i128::from(delta.incoming))
}

/// The amount above a shard's part of the floor, negative if beyond it; `None` without a floor.
fn funds(shard: &Balance) -> Option<i128> {
    shard.floor.map(|floor| shard.available().saturating_sub(i128::from(floor)))
}

/// The amount below a shard's part of the cap, negative if beyond it; `None` without a cap.
fn room(shard: &Balance) -> Option<i128> {
    shard.cap.map(|cap| i128::from(cap).saturating_sub(shard.expected()))
}

/// Narrows a number that is known to fit.
fn narrow(value: i128) -> i64 {
    i64::try_from(value.clamp(i64::MIN.into(), i64::MAX.into())).unwrap_or(0)
}

//! Hot accounts: a guarded balance spread over shards. Each shard has its own part of floor and cap, so a write that
//! fits its shard fits the account; one that does not is planned over all shards.
//!
//! A plan is made from balances as they were read. The store's judge has the last word, shard by shard, so a plan that
//! was overtaken is refused and made anew.

mod gather;
mod refill;
mod spread;

pub use refill::refill;

use super::balance::{Balance, BalanceRefusal, Delta};
use crate::types::limits::SHARDS_MAX;

/// A delta of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardPart {
    /// Which shard.
    pub shard: u8,
    /// By how much.
    pub delta: Delta,
}

/// What is to be done so that an account moves by a delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardPlan {
    /// These parts add up to the delta, and each fits its shard.
    Apply(Vec<ShardPart>),
    /// What is needed is spread too thin. These parts add up to nothing and bring it closer together; then plan again.
    GatherFirst(Vec<ShardPart>),
}

/// Which of its shards a write of an account goes to.
pub fn pick(shards: u16, chance: u128) -> u8 {
    let shards = u128::from(shards.clamp(1, SHARDS_MAX));
    chance.checked_rem(shards).and_then(|shard| u8::try_from(shard).ok()).unwrap_or(0)
}

/// How an account moves by `delta`, which has no part of a bound, over `shards`, all of them, in at most `parts_max`
/// parts. Refused if the account as a whole does not allow it.
///
/// Gathering takes two parts at least. A plan that no gathering can shorten is given as it is; that needs a shard that
/// began beyond a bound, or numbers at the end of 64 bits.
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

/// The rule of [`Balance::moved`] for the sums of all shards.
fn judge_whole(shards: &[Balance], delta: Delta) -> Result<(), BalanceRefusal> {
    let outgoing: i128 = shards.iter().map(|shard| i128::from(shard.outgoing)).sum();
    let incoming: i128 = shards.iter().map(|shard| i128::from(shard.incoming)).sum();
    if outgoing < i128::from(delta.outgoing).saturating_neg()
        || incoming < i128::from(delta.incoming).saturating_neg()
    {
        return Err(BalanceRefusal::NotHeld);
    }
    // One shard without a bound has no end, and neither has the account.
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

/// The shard that takes all of it, if one does: the one with the most of what is asked for.
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

/// By how much `delta` lowers what is available; below zero if it raises it.
fn lowered(delta: Delta) -> i128 {
    i128::from(delta.outgoing).saturating_sub(i128::from(delta.posted))
}

/// By how much `delta` raises what is expected; below zero if it lowers it.
fn raised(delta: Delta) -> i128 {
    i128::from(delta.posted).saturating_add(i128::from(delta.incoming))
}

/// What stands above a shard's part of the floor, below zero if it is beyond it; nothing if there is no floor.
fn funds(shard: &Balance) -> Option<i128> {
    shard.floor.map(|floor| shard.available().saturating_sub(i128::from(floor)))
}

/// What is left below a shard's part of the cap, below zero if it is beyond it; nothing if there is no cap.
fn room(shard: &Balance) -> Option<i128> {
    shard.cap.map(|cap| i128::from(cap).saturating_sub(shard.expected()))
}

/// A number that is known to fit.
fn narrow(value: i128) -> i64 {
    i64::try_from(value.clamp(i64::MIN.into(), i64::MAX.into())).unwrap_or(0)
}

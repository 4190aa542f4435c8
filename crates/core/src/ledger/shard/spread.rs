//! Divides a delta over several shards in few parts, starting with the richest shards.

use super::gather::receiver;
use super::{ShardPart, funds, narrow, room};
use crate::ledger::balance::{Balance, BalanceRefusal, Delta};
use std::cmp::Reverse;

/// More than any shard or account has; stands for "no bound".
const NO_END: i128 = 1 << 100;

/// The part of one shard. Its numbers have the signs of the whole delta's.
struct Draft<'a> {
    shard: &'a Balance,
    /// Whether this shard comes first: resources were gathered there, or would be.
    leads: bool,
    posted: i128,
    outgoing: i128,
    incoming: i128,
}

impl Draft<'_> {
    const fn is_used(&self) -> bool {
        self.posted != 0 || self.outgoing != 0 || self.incoming != 0
    }

    /// The amount that may go out of the shard in all. Money beyond the floor may not, but money
    /// released there may.
    fn funds(&self) -> i128 {
        let own = funds(self.shard).map_or(NO_END, |funds| funds.max(0));
        own.saturating_sub(self.outgoing).saturating_add(self.posted)
    }

    /// The amount that may come into the shard in all.
    fn room(&self) -> i128 {
        let own = room(self.shard).map_or(NO_END, |room| room.max(0));
        own.saturating_sub(self.incoming).saturating_sub(self.posted)
    }

    /// The distance of a shard's number from the largest number.
    fn below_max(value: i64) -> i128 {
        i128::from(i64::MAX).saturating_sub(i128::from(value))
    }
}

/// Divides `delta`, which the account as a whole allows.
///
/// The released amount is divided first, then the posted, then the reserved amount. Every step
/// keeps all shards within bounds and preserves the account's total for the later steps. Only
/// numbers at the limit of 64 bits can make a step fail.
pub(super) fn spread<'a>(shards: &'a [Balance], delta: Delta) -> Result<Vec<ShardPart>, BalanceRefusal> {
    let leading = receiver(shards, delta).map(|shard| shard.shard);
    let draft = |shard: &'a Balance| {
        let leads = Some(shard.shard) == leading;
        Draft { shard, leads, posted: 0, outgoing: 0, incoming: 0 }
    };
    let mut drafts: Vec<Draft<'_>> = shards.iter().map(draft).collect();
    let (posted, outgoing, incoming) =
        (i128::from(delta.posted), i128::from(delta.outgoing), i128::from(delta.incoming));
    let released = |amount: i128| amount.saturating_neg().max(0);
    share(
        &mut drafts,
        released(outgoing),
        |draft| i128::from(draft.shard.outgoing),
        |draft, share| draft.outgoing = draft.outgoing.saturating_sub(share),
        BalanceRefusal::NotHeld,
    )?;
    share(
        &mut drafts,
        released(incoming),
        |draft| i128::from(draft.shard.incoming),
        |draft, share| draft.incoming = draft.incoming.saturating_sub(share),
        BalanceRefusal::NotHeld,
    )?;
    share(
        &mut drafts,
        released(posted),
        |draft| draft.funds().min(i128::from(draft.shard.posted).saturating_sub(i128::from(i64::MIN))),
        |draft, share| draft.posted = draft.posted.saturating_sub(share),
        BalanceRefusal::Insufficient,
    )?;
    share(
        &mut drafts,
        posted.max(0),
        |draft| draft.room().min(Draft::below_max(draft.shard.posted)),
        |draft, share| draft.posted = draft.posted.saturating_add(share),
        BalanceRefusal::CapExceeded,
    )?;
    share(
        &mut drafts,
        outgoing.max(0),
        |draft| draft.funds().min(Draft::below_max(draft.shard.outgoing)),
        |draft, share| draft.outgoing = draft.outgoing.saturating_add(share),
        BalanceRefusal::Insufficient,
    )?;
    share(
        &mut drafts,
        incoming.max(0),
        |draft| draft.room().min(Draft::below_max(draft.shard.incoming)),
        |draft, share| draft.incoming = draft.incoming.saturating_add(share),
        BalanceRefusal::CapExceeded,
    )?;
    Ok(drafts.iter().filter(|draft| draft.is_used()).map(part).collect())
}

/// Divides `amount`: first over shards in use anyway, then over shards with the largest capacity.
fn share(
    drafts: &mut [Draft<'_>],
    amount: i128,
    takes: impl Fn(&Draft<'_>) -> i128,
    give: impl Fn(&mut Draft<'_>, i128),
    short: BalanceRefusal,
) -> Result<(), BalanceRefusal> {
    let mut order: Vec<&mut Draft<'_>> = drafts.iter_mut().collect();
    order.sort_by_key(|draft| (!draft.leads, !draft.is_used(), Reverse(takes(draft))));
    let mut rest = amount;
    for draft in order {
        let share = rest.min(takes(draft)).max(0);
        give(draft, share);
        rest = rest.saturating_sub(share);
    }
    if rest == 0 { Ok(()) } else { Err(short) }
}

/// Shares do not exceed the whole, which fits 64 bits.
fn part(draft: &Draft<'_>) -> ShardPart {
    let delta = Delta {
        posted: narrow(draft.posted),
        outgoing: narrow(draft.outgoing),
        incoming: narrow(draft.incoming),
        ..Delta::default()
    };
    ShardPart { shard: draft.shard.shard, delta }
}

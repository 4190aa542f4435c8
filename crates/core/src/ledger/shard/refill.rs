//! Refills one shard. If a write does not fit its shard but another has plenty, the two share, so
//! the next write to this shard fits.

use super::{ShardPart, lowered, raised};
use crate::ledger::balance::{Balance, BalanceRefusal, Delta};

/// The parts by which the shard `wanted` takes all of `delta`, with a part of the bound of the
/// richest shard. The transfer covers the need and then makes both shards equal. `None` if the
/// richest shard has too little.
pub fn refill(shards: &[Balance], wanted: u8, delta: Delta) -> Option<Vec<ShardPart>> {
    let own = shards.iter().find(|shard| shard.shard == wanted)?;
    let (need, has): (i128, fn(&Balance) -> i128) = match own.moved(delta) {
        Ok(_) => return Some(vec![ShardPart { shard: wanted, delta }]),
        Err(BalanceRefusal::Insufficient) => (lowered(delta), Balance::spendable),
        Err(BalanceRefusal::CapExceeded) => (raised(delta), Balance::room),
        Err(BalanceRefusal::NotHeld) => return None,
    };
    let richest = shards.iter().filter(|shard| shard.shard != wanted).max_by_key(|shard| has(shard))?;
    let missing = need.saturating_sub(has(own));
    let even = has(richest).saturating_sub(has(own)).checked_div(2)?;
    let given = missing.max(even);
    if given > has(richest) {
        return None;
    }
    let given = i64::try_from(given).ok()?;
    let (gives, takes) = match own.moved(delta) {
        Err(BalanceRefusal::Insufficient) => {
            (Delta { floor: given, ..Delta::default() }, Delta { floor: given.checked_neg()?, ..delta })
        }
        _ => (Delta { cap: given.checked_neg()?, ..Delta::default() }, Delta { cap: given, ..delta }),
    };
    let parts =
        vec![ShardPart { shard: richest.shard, delta: gives }, ShardPart { shard: wanted, delta: takes }];
    let fits = richest.moved(gives).is_ok() && own.moved(takes).is_ok();
    fits.then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::id::{AccountId, TenantId};
    use proptest::prelude::*;

    fn shard(number: u8, posted: i64, floor: Option<i64>, cap: Option<i64>) -> Balance {
        let account = AccountId::from_i64(1);
        let tenant = TenantId::from_i64(1);
        Balance { tenant, account, shard: number, posted, outgoing: 0, incoming: 0, floor, cap, revision: 1 }
    }

    fn debit(amount: i64) -> Delta {
        Delta { posted: -amount, ..Delta::default() }
    }

    #[test]
    fn an_empty_shard_gets_half_of_the_richest_one() {
        let shards =
            [shard(0, 1_000, Some(0), None), shard(1, 0, Some(0), None), shard(2, 10, Some(0), None)];
        let parts = refill(&shards, 1, debit(4)).unwrap();
        assert_eq!(parts[0], ShardPart { shard: 0, delta: Delta { floor: 500, ..Delta::default() } });
        assert_eq!(parts[1], ShardPart { shard: 1, delta: Delta { floor: -500, ..debit(4) } });
    }

    #[test]
    fn a_shard_without_room_gets_some() {
        let shards = [shard(0, 0, None, Some(100)), shard(1, 0, None, Some(0))];
        let credit = Delta { posted: 60, ..Delta::default() };
        let parts = refill(&shards, 1, credit).unwrap();
        assert_eq!(parts[0].delta.cap, -60, "more than half is needed");
        assert_eq!(parts[1].delta, Delta { cap: 60, ..credit });
    }

    #[test]
    fn a_refill_gives_everything_if_everything_is_needed() {
        let shards = [shard(0, 4, Some(0), None), shard(1, 0, Some(0), None)];
        let parts = refill(&shards, 1, debit(4)).unwrap();
        assert_eq!((parts[0].delta.floor, parts[1].delta.floor), (4, -4));
    }

    #[test]
    fn a_shard_beyond_its_bound_needs_more_than_the_delta() {
        let shards = [shard(0, 4, Some(0), None), shard(1, -5, Some(0), None)];
        assert_eq!(refill(&shards, 1, debit(4)), None);
    }

    #[test]
    fn a_delta_beyond_every_single_shard_is_left_to_the_plan() {
        let shards = [shard(0, 5, Some(0), None), shard(1, 0, Some(0), None), shard(2, 5, Some(0), None)];
        assert_eq!(refill(&shards, 1, debit(6)), None);
        assert_eq!(refill(&shards, 7, debit(1)), None, "no such shard");
        let release = Delta { outgoing: -1, ..Delta::default() };
        assert_eq!(refill(&shards, 1, release), None, "holds are not refilled");
    }

    proptest! {
        /// Asserts that every part fits its shard, the parts add up to the delta, and the parts of
        /// the bounds add up to zero.
        #[test]
        fn parts_fit_and_add_up(
            posted in prop::collection::vec(0_i64..1_000, 2..6),
            floor in prop::option::of(-500_i64..=0),
            cap in prop::option::of(1_000_i64..9_000),
            wanted in 0_u8..6,
            amount in -2_000_i64..2_000,
        ) {
            let shards: Vec<Balance> = (0_u8..)
                .zip(&posted)
                .map(|(number, posted)| {
                    let first = number == 0;
                    shard(number, *posted, floor.map(|floor| if first { floor } else { 0 }), cap.map(|cap| if first { cap } else { *posted }))
                })
                .collect();
            let delta = Delta { posted: amount, ..Delta::default() };
            if let Some(parts) = refill(&shards, wanted, delta) {
                for part in &parts {
                    let at = shards.iter().find(|shard| shard.shard == part.shard).unwrap();
                    prop_assert!(at.moved(part.delta).is_ok());
                }
                prop_assert_eq!(parts.iter().map(|part| part.delta.posted).sum::<i64>(), amount);
                prop_assert_eq!(parts.iter().map(|part| part.delta.floor).sum::<i64>(), 0);
                prop_assert_eq!(parts.iter().map(|part| part.delta.cap).sum::<i64>(), 0);
            }
        }
    }
}

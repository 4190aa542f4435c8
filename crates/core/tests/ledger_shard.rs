//! Sharded balances against a naive model: an account of many shards behaves like their sum.

#![allow(clippy::expect_used, reason = "an invalid fixture must stop its test")]

use counterfoil_core::ledger::balance::{Balance, BalanceRefusal, Delta};
use counterfoil_core::ledger::shard::{ShardPart, ShardPlan, pick, plan};
use counterfoil_core::types::id::{AccountId, TenantId};
use proptest::prelude::*;

const ACCOUNT: AccountId = AccountId::from_i64(1);
const NOTHING: Delta = Delta { posted: 0, outgoing: 0, incoming: 0, floor: 0, cap: 0 };

fn funded(number: usize, posted: i64, floor: i64) -> Balance {
    Balance {
        tenant: TenantId::from_i64(2),
        account: ACCOUNT,
        shard: u8::try_from(number).expect("at most 256 shards"),
        posted,
        outgoing: 0,
        incoming: 0,
        floor: Some(floor),
        cap: None,
        revision: 1,
    }
}

fn posted(posted: i64) -> Delta {
    Delta { posted, ..NOTHING }
}

/// The sums of all shards: posted, outgoing, incoming, floor, cap.
fn sums(shards: &[Balance]) -> [i128; 5] {
    let sum = |of: fn(&Balance) -> i64| shards.iter().map(|shard| i128::from(of(shard))).sum();
    [
        sum(|shard| shard.posted),
        sum(|shard| shard.outgoing),
        sum(|shard| shard.incoming),
        sum(|shard| shard.floor.unwrap_or(0)),
        sum(|shard| shard.cap.unwrap_or(0)),
    ]
}

/// The naive model: one balance of 128 bits that holds the sums.
fn whole(shards: &[Balance], delta: Delta) -> Result<[i128; 5], BalanceRefusal> {
    let [posted, outgoing, incoming, floor, cap] = sums(shards);
    let after = [
        posted + i128::from(delta.posted),
        outgoing + i128::from(delta.outgoing),
        incoming + i128::from(delta.incoming),
        floor,
        cap,
    ];
    if after[1] < 0 || after[2] < 0 {
        return Err(BalanceRefusal::NotHeld);
    }
    let (available, expected) = (after[0] - after[1], after[0] + after[2]);
    let bounded = |bound: fn(&Balance) -> Option<i64>| shards.iter().all(|shard| bound(shard).is_some());
    if bounded(|shard| shard.floor) && available < posted - outgoing && available < floor {
        return Err(BalanceRefusal::Insufficient);
    }
    if bounded(|shard| shard.cap) && expected > posted + incoming && expected > cap {
        return Err(BalanceRefusal::CapExceeded);
    }
    Ok(after)
}

/// The shards after `parts`. Each part must fit its shard, and no shard occurs twice.
fn applied(shards: &[Balance], parts: &[ShardPart]) -> Vec<Balance> {
    let mut after = shards.to_vec();
    for (index, part) in parts.iter().enumerate() {
        assert!(parts[..index].iter().all(|other| other.shard != part.shard), "twice: {parts:?}");
        let shard = after.iter_mut().find(|shard| shard.shard == part.shard).expect("a shard that was given");
        *shard =
            shard.moved(part.delta).unwrap_or_else(|refusal| panic!("{refusal:?}: {part:?} of {shard:?}"));
    }
    after
}

/// Plans and gathers until the delta is applied, in at most `rounds` gatherings. Returns the parts
/// of the last plan.
fn carried_out(
    shards: &[Balance],
    delta: Delta,
    parts_max: usize,
    rounds: usize,
) -> Result<Vec<ShardPart>, BalanceRefusal> {
    let expected = whole(shards, delta);
    let mut now = shards.to_vec();
    for _ in 0..=rounds {
        match plan(&now, delta, parts_max) {
            Err(refusal) => {
                assert_eq!(expected, Err(refusal));
                return Err(refusal);
            }
            Ok(ShardPlan::Apply(parts)) => {
                let after = applied(&now, &parts);
                assert_eq!(expected, Ok(sums(&after)));
                return Ok(parts);
            }
            Ok(ShardPlan::GatherFirst(parts)) => {
                assert!(expected.is_ok(), "gathered for a delta that the account refuses");
                assert!((2..=parts_max.max(2)).contains(&parts.len()), "{} parts", parts.len());
                let after = applied(&now, &parts);
                assert_eq!(sums(&after), sums(&now), "gathering changed the sums");
                now = after;
            }
        }
    }
    panic!("still gathering after {rounds} rounds")
}

/// The bound of gatherings: each adds as many new shards as fit beside the receiver.
fn rounds(shards: usize, parts_max: usize) -> usize {
    shards.div_ceil(parts_max.max(2) - 1)
}

#[test]
fn a_write_goes_to_an_existing_shard() {
    for (shards, chance, expected) in
        [(0, 7, 0), (1, u128::MAX, 0), (4, 6, 2), (256, 511, 255), (256, 256, 0), (u16::MAX, 257, 1)]
    {
        assert_eq!(pick(shards, chance), expected, "{shards} {chance}");
    }
    let mut seen: Vec<u8> = (0..8).map(|chance| pick(8, chance)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn amounts_beyond_the_account_are_refused() {
    let shards = [funded(0, 30, 0), funded(1, 20, 0)];
    let held = Balance { outgoing: 5, incoming: 7, cap: Some(40), ..shards[0] };
    let capped = [held, Balance { cap: Some(20), ..shards[1] }];
    for (shards, delta, refusal) in [
        (&shards, posted(-51), BalanceRefusal::Insufficient),
        (&shards, Delta { outgoing: 51, ..NOTHING }, BalanceRefusal::Insufficient),
        (&shards, Delta { outgoing: -1, ..NOTHING }, BalanceRefusal::NotHeld),
        (&shards, Delta { incoming: -1, ..NOTHING }, BalanceRefusal::NotHeld),
        (&capped, posted(4), BalanceRefusal::CapExceeded),
        (&capped, Delta { incoming: 4, ..NOTHING }, BalanceRefusal::CapExceeded),
        (&capped, Delta { outgoing: -6, ..NOTHING }, BalanceRefusal::NotHeld),
        (&capped, Delta { incoming: -8, posted: -100, ..NOTHING }, BalanceRefusal::NotHeld),
    ] {
        assert_eq!(plan(shards, delta, 9), Err(refusal), "{delta:?}");
    }
    assert_eq!(plan(&[], posted(-1), 9), Err(BalanceRefusal::Insufficient));
    assert_eq!(plan(&[], posted(1), 9), Err(BalanceRefusal::CapExceeded));
    assert_eq!(plan(&[], NOTHING, 9), Ok(ShardPlan::Apply(Vec::new())));
}

#[test]
fn one_shard_takes_the_whole_delta_if_possible() {
    let shards = [funded(0, 30, 0), funded(1, 90, 0), funded(2, 60, 0)];
    let expected = ShardPart { shard: 1, delta: posted(-50) };
    assert_eq!(plan(&shards, posted(-50), 9), Ok(ShardPlan::Apply(vec![expected])));
}

#[test]
fn a_debit_draws_on_the_largest_first() {
    let shards = [funded(0, 30, 0), funded(1, 90, 0), funded(2, 60, 10), funded(3, 5, 0)];
    let parts = vec![ShardPart { shard: 1, delta: posted(-90) }, ShardPart { shard: 2, delta: posted(-20) }];
    assert_eq!(plan(&shards, posted(-110), 9), Ok(ShardPlan::Apply(parts)));
}

#[test]
fn a_posted_hold_is_paired_with_its_release_in_each_shard() {
    let held = |number, outgoing| Balance { outgoing, ..funded(number, 50, 0) };
    let shards = [held(0, 50), held(1, 40), held(2, 10)];
    let parts = carried_out(&shards, Delta { outgoing: -100, posted: -60, ..NOTHING }, 9, 0).unwrap();
    assert_eq!(parts.len(), 3, "only the shards that hold, and each once");
    let expecting = |number, incoming| Balance { incoming, cap: Some(incoming), ..funded(number, 0, 0) };
    let shards = [expecting(0, 50), expecting(1, 40), expecting(2, 10)];
    let parts = carried_out(&shards, Delta { incoming: -100, posted: 60, ..NOTHING }, 9, 0).unwrap();
    assert_eq!(parts.len(), 3);
}

#[test]
fn posted_money_goes_to_the_shards_of_its_release() {
    let held = |number| Balance { outgoing: 50, ..funded(number, 50, 0) };
    let shards = [held(0), held(1), funded(2, 1_000, 0)];
    let parts = carried_out(&shards, Delta { outgoing: -100, posted: -60, ..NOTHING }, 9, 0).unwrap();
    assert_eq!(parts.iter().map(|part| part.shard).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_hold_in_shards_beyond_their_bounds_can_be_posted() {
    let below = |number| Balance { outgoing: 50, ..funded(number, 0, 10) };
    let parts = carried_out(&[below(0), below(1)], Delta { outgoing: -100, posted: -100, ..NOTHING }, 9, 0);
    assert_eq!(parts.unwrap().len(), 2);
    let above = |number| Balance { incoming: 50, cap: Some(40), ..funded(number, 0, 0) };
    let parts = carried_out(&[above(0), above(1)], Delta { incoming: -100, posted: 100, ..NOTHING }, 9, 0);
    assert_eq!(parts.unwrap().len(), 2);
}

#[test]
fn scattered_funds_are_gathered_for_a_large_debit() {
    let shards: Vec<Balance> = (0..256).map(|number| funded(number, 1, 0)).collect();
    let first = plan(&shards, posted(-256), 40);
    assert!(matches!(&first, Ok(ShardPlan::GatherFirst(parts)) if parts.len() == 40), "{first:?}");
    for (debit, fits) in [(256, true), (255, true), (257, false), (41, true)] {
        let outcome = carried_out(&shards, posted(-debit), 40, rounds(256, 40));
        assert_eq!(outcome.is_ok(), fits, "{debit}");
        assert!(outcome.unwrap_or_default().len() <= 40);
    }
    assert_eq!(rounds(256, 40), 7);
}

#[test]
fn scattered_holds_and_room_are_gathered_too() {
    for (count, parts_max) in [(32, 0), (32, 1), (32, 2), (32, 3), (256, 40), (256, 99)] {
        let thin = |number| Balance {
            outgoing: 2,
            incoming: 3,
            cap: Some(10 + 3 + 1),
            ..funded(number, 10, 10 - 2 - 1)
        };
        let shards: Vec<Balance> = (0..count).map(thin).collect();
        let all = i64::try_from(count).unwrap();
        let (outgoing, incoming) = (-2 * all, -3 * all);
        for delta in [
            Delta { outgoing, ..NOTHING },
            Delta { incoming, ..NOTHING },
            Delta { outgoing, incoming, ..NOTHING },
            Delta { outgoing, posted: -all, ..NOTHING },
            Delta { incoming, posted: 2 * all, ..NOTHING },
            Delta { outgoing, posted: -3 * all, ..NOTHING },
            Delta { incoming, posted: 4 * all, ..NOTHING },
            Delta { outgoing: all, incoming: all, ..NOTHING },
            posted(all),
            posted(-all),
        ] {
            let parts = carried_out(&shards, delta, parts_max, rounds(count, parts_max)).unwrap();
            assert!(parts.len() <= parts_max.max(1), "{} parts for {delta:?}", parts.len());
        }
    }
}

#[test]
fn gathered_money_is_taken_first() {
    // The first shard started beyond the cap, so the hold there stays. Everything else can move to
    // a single shard.
    let holding = |number, outgoing, incoming, cap| Balance {
        outgoing,
        incoming,
        floor: None,
        cap: Some(cap),
        ..funded(number, 0, 0)
    };
    let shards = [holding(0, 0, 2, 1), holding(1, 7, 0, 0), holding(2, 0, 2, 2)];
    let parts = carried_out(&shards, Delta { outgoing: -1, incoming: -3, ..NOTHING }, 2, 1).unwrap();
    assert_eq!(parts.len(), 2);
}

#[test]
fn a_shard_beyond_its_floor_gives_nothing() {
    // The account has a floor of 100 and 150 in all. One shard has the whole floor and no money.
    let shards = [funded(0, 0, 100), funded(1, 90, 0), funded(2, 60, 0)];
    let parts = carried_out(&shards, posted(-50), 9, 0).unwrap();
    assert!(parts.iter().all(|part| part.shard != 0));
    assert_eq!(carried_out(&shards, posted(-51), 9, 0), Err(BalanceRefusal::Insufficient));
    carried_out(&shards, posted(1_000), 9, 0).unwrap();
}

#[test]
fn a_shard_beyond_one_bound_receives_no_holds() {
    let below_floor = Balance { incoming: 100, cap: Some(1_000), ..funded(0, 0, 10) };
    let above_cap = Balance { outgoing: 100, cap: Some(10), ..funded(0, 20, -1_000) };
    let within = |number| Balance { outgoing: 10, incoming: 10, cap: Some(1_000), ..funded(number, 50, 0) };
    for (beyond, delta) in [
        (below_floor, Delta { outgoing: -60, incoming: -100, ..NOTHING }),
        (above_cap, Delta { outgoing: -100, incoming: -60, ..NOTHING }),
    ] {
        let shards: Vec<Balance> = std::iter::once(beyond).chain((1..=6).map(within)).collect();
        assert!(matches!(plan(&shards, delta, 3), Ok(ShardPlan::GatherFirst(_))), "{delta:?}");
        assert!(carried_out(&shards, delta, 3, rounds(7, 3)).is_ok(), "{delta:?}");
    }
}

#[test]
fn overflow_of_64_bits_is_refused() {
    let full = Balance { floor: None, ..funded(0, i64::MAX, 0) };
    let empty = Balance { floor: None, ..funded(1, i64::MIN, 0) };
    let plain = Balance { floor: None, ..funded(2, 0, 0) };
    assert_eq!(plan(&[full], posted(1), 9), Err(BalanceRefusal::CapExceeded));
    assert_eq!(plan(&[empty], posted(-1), 9), Err(BalanceRefusal::Insufficient));
    assert_eq!(
        plan(&[plain], posted(i64::MIN), 9),
        Ok(ShardPlan::Apply(vec![ShardPart { shard: 2, delta: posted(i64::MIN) }]))
    );
    let laden = Balance { outgoing: i64::MAX, incoming: i64::MAX, ..plain };
    assert_eq!(plan(&[laden], Delta { outgoing: 1, ..NOTHING }, 9), Err(BalanceRefusal::Insufficient));
    assert_eq!(plan(&[laden], Delta { incoming: 1, ..NOTHING }, 9), Err(BalanceRefusal::CapExceeded));
    assert_eq!(plan(&[laden], Delta { outgoing: i64::MIN, ..NOTHING }, 9), Err(BalanceRefusal::NotHeld));
    // Both halves fit in some shard.
    let parts = carried_out(&[full, Balance { posted: 5, ..plain }], posted(i64::MAX - 5), 9, 0).unwrap();
    assert_eq!(parts, [ShardPart { shard: 2, delta: posted(i64::MAX - 5) }]);
    let half = Balance { posted: i64::MAX / 2 + 1, ..full };
    let other = Balance { shard: 1, ..half };
    assert_eq!(carried_out(&[half, other], posted(i64::MAX - 1), 9, 0).unwrap().len(), 2);
    assert_eq!(plan(&[half, other], posted(i64::MAX), 9), Err(BalanceRefusal::CapExceeded));
}

#[test]
fn gathering_stops_when_the_receiver_is_full() {
    let holding = |number, outgoing| Balance { outgoing, floor: None, ..funded(number, 0, 0) };
    let shards = [holding(0, i64::MAX - 3), holding(1, 2), holding(2, 2)];
    let release = Delta { outgoing: i64::MIN, ..NOTHING };
    assert_eq!(carried_out(&shards, release, 1, 2).unwrap().len(), 2, "no shard can hold 2^63");
    let expecting = |number, incoming| Balance { incoming, floor: None, ..funded(number, 0, 0) };
    let shards = [expecting(0, i64::MAX - 3), expecting(1, 2), expecting(2, 2)];
    let release = Delta { incoming: i64::MIN, ..NOTHING };
    assert_eq!(carried_out(&shards, release, 1, 2).unwrap().len(), 2);
    let low = funded(0, i64::MIN + 13, i64::MIN + 3);
    let high = Balance { cap: Some(i64::MAX - 3), ..funded(0, i64::MAX - 13, 0) };
    let capped = |number| Balance { cap: Some(2), ..funded(number, 0, 0) };
    for parts_max in [1, 3] {
        let shards = [low, funded(1, 2, 0), funded(2, 2, 0), funded(3, 2, 0), funded(4, 2, 0)];
        let parts = carried_out(&shards, posted(-18), parts_max, 4).unwrap();
        assert!(parts.len() > 1, "a floor cannot fall further");
        let shards = [high, capped(1), capped(2), capped(3), capped(4)];
        let parts = carried_out(&shards, posted(18), parts_max, 4).unwrap();
        assert!(parts.len() > 1, "a cap cannot rise further");
    }
}

/// A shard within its bounds: its amounts, and its distance from floor and cap.
fn within(number: usize, (posted, outgoing, incoming): (i64, i64, i64), funds: i64, room: i64) -> Balance {
    Balance {
        outgoing,
        incoming,
        floor: Some(posted - outgoing - funds),
        cap: Some(posted + incoming + room),
        ..funded(number, posted, 0)
    }
}

/// Shards within their bounds: most have little, some have much, some are empty.
fn shards(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<Balance>> {
    let amount = || prop_oneof![3 => 0..20_i64, 1 => Just(0), 1 => 0..1_000_000_000_000_i64];
    let one = (-20..20_i64, amount(), amount(), amount(), amount());
    let guards = (any::<bool>(), any::<bool>());
    (prop::collection::vec(one, count), guards).prop_map(|(all, (floor, cap))| {
        let shard = |(number, (posted, outgoing, incoming, funds, room))| {
            let shard = within(number, (posted, outgoing, incoming), funds, room);
            Balance { floor: shard.floor.filter(|_| floor), cap: shard.cap.filter(|_| cap), ..shard }
        };
        all.into_iter().enumerate().map(shard).collect()
    })
}

/// Percentages to release, to lower and to raise, and a step to either side.
fn share() -> impl Strategy<Value = (i128, i128)> {
    let percent = prop_oneof![2 => Just(0), 2 => Just(100), 1 => -100..=110_i128];
    (percent, prop_oneof![4 => Just(0), 1 => -1..=1_i128])
}

/// A delta of that size for these shards.
fn sized(shards: &[Balance], [outgoing, incoming, posted]: [(i128, i128); 3]) -> Delta {
    let [all, held, expected, floor, cap] = sums(shards);
    let funds = if shards.iter().all(|shard| shard.floor.is_some()) { all - held - floor } else { 1_000 };
    let room = if shards.iter().all(|shard| shard.cap.is_some()) { cap - all - expected } else { 1_000 };
    let part = |of: i128, (percent, step): (i128, i128)| of * percent / 100 + step;
    let narrow = |value: i128| i64::try_from(value).expect("a plain amount");
    // Positive numbers reserve, negative numbers release.
    let hold =
        |held: i128, free: i128, share: (i128, i128)| part(if share.0 < 0 { held } else { free }, share);
    let outgoing = hold(held, funds, outgoing);
    let incoming = hold(expected, room, incoming);
    let posted = if posted.0 < 0 { part(funds - outgoing, posted) } else { part(room - incoming, posted) };
    Delta { posted: narrow(posted), outgoing: narrow(outgoing), incoming: narrow(incoming), ..NOTHING }
}

/// The fewest shards that can carry a debit.
fn fewest(shards: &[Balance], debit: i64) -> usize {
    let mut funds: Vec<i128> = shards.iter().map(Balance::spendable).collect();
    funds.sort_unstable_by(|one, other| other.cmp(one));
    let mut borne = 0;
    funds
        .iter()
        .take_while(|funds| {
            let short = borne < i128::from(debit);
            borne += **funds;
            short
        })
        .count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn shards_behave_like_their_sum(
        shards in shards(1..=24),
        shares in [share(), share(), share()],
        parts_max in 0_usize..12,
    ) {
        let delta = sized(&shards, shares);
        if let Ok(parts) = carried_out(&shards, delta, parts_max, rounds(shards.len(), parts_max)) {
            prop_assert!(parts.len() <= parts_max.max(1), "{} parts for {delta:?}", parts.len());
        }
    }

    #[test]
    fn a_debit_takes_the_fewest_parts(mut shards in shards(1..=12), percent in 1..=100_i128) {
        for shard in &mut shards {
            shard.floor = shard.floor.or(Some(shard.posted - shard.outgoing - 7));
        }
        let [posted_sum, outgoing, _, floor, _] = sums(&shards);
        let debit = i64::try_from((posted_sum - outgoing - floor) * percent / 100).unwrap().max(1);
        let outcome = carried_out(&shards, posted(-debit), 99, 0);
        let expected = if i128::from(debit) > posted_sum - outgoing - floor {
            Err(BalanceRefusal::Insufficient)
        } else {
            Ok(fewest(&shards, debit))
        };
        prop_assert_eq!(outcome.map(|parts| parts.len()), expected);
    }

    /// One shard started beyond a bound: the others still behave like their sum.
    #[test]
    fn a_shard_beyond_a_bound_changes_nothing_for_the_account(
        mut shards in shards(2..=24),
        by in 1..50_i64,
        above in any::<bool>(),
        shares in [share(), share(), share()],
        parts_max in 2_usize..12,
    ) {
        if above {
            shards[0].cap = shards[0].cap.map(|_| shards[0].posted + shards[0].incoming - by);
        } else {
            shards[0].floor = shards[0].floor.map(|_| shards[0].posted - shards[0].outgoing + by);
        }
        let delta = sized(&shards, shares);
        if let Ok(parts) = carried_out(&shards, delta, parts_max, rounds(shards.len(), parts_max)) {
            prop_assert!(parts.len() <= parts_max, "{} parts for {delta:?}", parts.len());
        }
    }

    /// Any numbers at all: a plan fits every shard, adds up, and terminates.
    #[test]
    fn no_number_breaks_a_plan(
        numbers in prop::collection::vec((edge(), edge(), edge(), edge(), edge()), 1..9),
        (floor, cap) in (any::<bool>(), any::<bool>()),
        (posted, outgoing, incoming) in (edge(), edge(), edge()),
        parts_max in 0_usize..9,
    ) {
        let shard = |(number, (posted, outgoing, incoming, low, high)): (usize, (i64, i64, i64, i64, i64))| Balance {
            outgoing: outgoing.max(0),
            incoming: incoming.max(0),
            floor: floor.then_some(low),
            cap: cap.then_some(high),
            ..funded(number, posted, 0)
        };
        let mut now: Vec<Balance> = numbers.into_iter().enumerate().map(shard).collect();
        let delta = Delta { posted, outgoing, incoming, ..NOTHING };
        let before = sums(&now);
        let mut ended = false;
        for _ in 0..=rounds(now.len(), parts_max) * 4 {
            match plan(&now, delta, parts_max) {
                Err(_) => ended = true,
                Ok(ShardPlan::Apply(parts)) => {
                    prop_assert_eq!(whole(&now, delta), Ok(sums(&applied(&now, &parts))));
                    ended = true;
                }
                Ok(ShardPlan::GatherFirst(parts)) => {
                    now = applied(&now, &parts);
                    prop_assert_eq!(sums(&now), before);
                }
            }
            if ended {
                break;
            }
        }
        prop_assert!(ended, "still gathering");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_widest_account_is_gathered_in_few_rounds(shards in shards(256..=256), shares in [share(), share(), share()]) {
        let delta = sized(&shards, shares);
        if let Ok(parts) = carried_out(&shards, delta, 40, 7) {
            prop_assert!(parts.len() <= 40);
        }
    }
}

/// Numbers near the limits and near the middle of 64 bits.
fn edge() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(0),
        -9..=9_i64,
        any::<i64>(),
        i64::MAX - 9..=i64::MAX,
        i64::MIN..=i64::MIN + 9,
        i64::MAX / 2 - 9..=i64::MAX / 2 + 9,
    ]
}

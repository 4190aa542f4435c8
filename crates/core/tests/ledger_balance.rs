//! Balances against a naive model in 128 bits: every bound, every hold, both limits of 64 bits.

#![allow(clippy::expect_used, reason = "an invalid fixture must stop its test")]

use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::balance::{Balance, BalanceRefusal, Delta, Guarded};
use counterfoil_core::ledger::transaction::{Layer, Leg};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_core::types::limits::AMOUNT_MAX;
use proptest::prelude::*;

const NOTHING: Delta = Delta { posted: 0, outgoing: 0, incoming: 0, floor: 0, cap: 0 };

fn balance(posted: i64, floor: Option<i64>, cap: Option<i64>) -> Balance {
    Balance {
        tenant: TenantId::from_i64(2),
        account: AccountId::from_i64(1),
        shard: 3,
        posted,
        outgoing: 0,
        incoming: 0,
        floor,
        cap,
        revision: 5,
    }
}

#[test]
fn an_empty_shard_has_no_money_and_zero_bounds() {
    for (floor, cap) in [(false, false), (true, false), (false, true), (true, true)] {
        let empty = Balance::empty(TenantId::from_i64(2), AccountId::from_i64(1), 3, Guarded { floor, cap });
        let expected = Balance { revision: 0, ..balance(0, floor.then_some(0), cap.then_some(0)) };
        assert_eq!(empty, expected);
    }
}

#[test]
fn a_move_changes_its_numbers_and_the_revision() {
    let before = Balance { outgoing: 20, incoming: 30, ..balance(100, Some(0), Some(200)) };
    let delta = Delta { posted: -10, outgoing: -5, incoming: 7, floor: -1, cap: 2 };
    let after = Balance {
        posted: 90,
        outgoing: 15,
        incoming: 37,
        floor: Some(-1),
        cap: Some(202),
        revision: 6,
        ..before
    };
    assert_eq!(before.moved(delta), Ok(after));
    assert_eq!(Balance { revision: u64::MAX, ..before }.moved(NOTHING).unwrap().revision, u64::MAX);
}

#[test]
fn numbers_that_leave_64_bits_are_refused() {
    let full = Balance { outgoing: i64::MAX, incoming: i64::MAX, ..balance(i64::MAX, None, None) };
    for (before, delta, refusal) in [
        (full, Delta { posted: 1, ..NOTHING }, BalanceRefusal::CapExceeded),
        (balance(i64::MIN, None, None), Delta { posted: -1, ..NOTHING }, BalanceRefusal::Insufficient),
        (full, Delta { outgoing: 1, ..NOTHING }, BalanceRefusal::Insufficient),
        (full, Delta { incoming: 1, ..NOTHING }, BalanceRefusal::CapExceeded),
        (balance(0, Some(i64::MIN), None), Delta { floor: -1, ..NOTHING }, BalanceRefusal::Insufficient),
        (balance(0, Some(i64::MAX), None), Delta { floor: 1, ..NOTHING }, BalanceRefusal::Insufficient),
        (balance(0, None, Some(i64::MAX)), Delta { cap: 1, ..NOTHING }, BalanceRefusal::CapExceeded),
        (balance(0, None, Some(i64::MIN)), Delta { cap: -1, ..NOTHING }, BalanceRefusal::CapExceeded),
    ] {
        assert_eq!(before.moved(delta), Err(refusal), "{delta:?} of {before:?}");
    }
    // The available balance may exceed 64 bits, because it is a difference.
    let owing = Balance { outgoing: i64::MAX, ..balance(i64::MIN, None, None) };
    assert_eq!(owing.available(), i128::from(i64::MIN) - i128::from(i64::MAX));
    assert_eq!(full.expected(), 2 * i128::from(i64::MAX));
}

#[test]
fn spendable_money_and_room_are_never_negative() {
    let held = Balance { outgoing: 30, incoming: 50, ..balance(100, Some(-20), Some(180)) };
    assert_eq!((held.available(), held.expected()), (70, 150));
    assert_eq!((held.spendable(), held.room()), (90, 30));
    let beyond = Balance { floor: Some(71), cap: Some(149), ..held };
    assert_eq!((beyond.spendable(), beyond.room()), (0, 0));
    let unbound = balance(0, None, None);
    assert_eq!((unbound.spendable(), unbound.room()), (1 << 63, i128::from(i64::MAX)));
}

#[test]
fn a_balance_beyond_a_bound_moves_no_further() {
    let (below, above) = (balance(50, Some(100), None), balance(50, None, Some(40)));
    for further in [
        Delta { posted: -1, ..NOTHING },
        Delta { outgoing: 1, ..NOTHING },
        Delta { floor: 1, ..NOTHING },
        Delta { posted: 9, floor: 1, ..NOTHING },
    ] {
        assert_eq!(below.moved(further), Err(BalanceRefusal::Insufficient), "{further:?}");
    }
    for further in [
        Delta { posted: 1, ..NOTHING },
        Delta { incoming: 1, ..NOTHING },
        Delta { cap: -1, ..NOTHING },
        Delta { posted: -9, cap: -1, ..NOTHING },
    ] {
        assert_eq!(above.moved(further), Err(BalanceRefusal::CapExceeded), "{further:?}");
    }
    let stays = [NOTHING, Delta { posted: 7, outgoing: 7, ..NOTHING }, Delta { incoming: 7, ..NOTHING }];
    for allowed in stays.into_iter().chain([Delta { posted: 1, ..NOTHING }, Delta { floor: -1, ..NOTHING }]) {
        assert!(below.moved(allowed).is_ok(), "{allowed:?}");
    }
    let stays = [NOTHING, Delta { posted: -7, incoming: 7, ..NOTHING }, Delta { outgoing: 7, ..NOTHING }];
    for allowed in stays.into_iter().chain([Delta { posted: -1, ..NOTHING }, Delta { cap: 1, ..NOTHING }]) {
        assert!(above.moved(allowed).is_ok(), "{allowed:?}");
    }
}

fn leg(side: Side, layer: Layer, amount: i64) -> Leg {
    Leg {
        account: AccountId::from_i64(1),
        side,
        layer,
        amount,
        asset: Asset::parse("USD").expect("a currency"),
    }
}

#[test]
fn a_leg_changes_the_sum_of_its_layer_and_side() {
    for amount in [1, 60, AMOUNT_MAX] {
        for normal in [Side::Debit, Side::Credit] {
            let (raise, lower) = (normal, normal.opposite());
            for (side, layer, expected) in [
                (raise, Layer::Posted, Delta { posted: amount, ..NOTHING }),
                (lower, Layer::Posted, Delta { posted: -amount, ..NOTHING }),
                (raise, Layer::Pending, Delta { incoming: amount, ..NOTHING }),
                (lower, Layer::Pending, Delta { outgoing: amount, ..NOTHING }),
                (raise, Layer::Released, Delta { incoming: -amount, ..NOTHING }),
                (lower, Layer::Released, Delta { outgoing: -amount, ..NOTHING }),
            ] {
                assert_eq!(Delta::of(&leg(side, layer, amount), normal), expected, "{layer:?} {side:?}");
            }
        }
    }
}

#[test]
fn deltas_add_up_or_overflow() {
    let one = Delta { posted: 1, outgoing: 2, incoming: 3, floor: 4, cap: 5 };
    let other = Delta { posted: -1, outgoing: 20, incoming: 30, floor: 40, cap: 50 };
    let both = Delta { posted: 0, outgoing: 22, incoming: 33, floor: 44, cap: 55 };
    assert_eq!(one.and(other), Some(both));
    for full in [
        Delta { posted: i64::MAX, ..NOTHING },
        Delta { outgoing: i64::MAX, ..NOTHING },
        Delta { incoming: i64::MAX, ..NOTHING },
        Delta { floor: i64::MAX, ..NOTHING },
        Delta { cap: i64::MAX, ..NOTHING },
    ] {
        assert_eq!(full.and(one), None, "{full:?}");
    }
}

#[test]
fn an_ended_hold_leaves_only_its_posted_amount() {
    let before = balance(100, Some(0), Some(200));
    for (normal, what) in [(Side::Credit, "reserved to go out"), (Side::Debit, "expected to come in")] {
        let of = |side, layer, amount| Delta::of(&leg(side, layer, amount), normal);
        let held = before.moved(of(Side::Debit, Layer::Pending, 60)).unwrap();
        assert_ne!((held.outgoing, held.incoming), (0, 0), "{what}");
        let voided = held.moved(of(Side::Debit, Layer::Released, 60)).unwrap();
        assert_eq!(voided, Balance { revision: 7, ..before });
        let ended = of(Side::Debit, Layer::Released, 60).and(of(Side::Debit, Layer::Posted, 45)).unwrap();
        let posted = held.moved(ended).unwrap();
        let directly = before.moved(of(Side::Debit, Layer::Posted, 45)).unwrap();
        assert_eq!(posted, Balance { revision: 7, ..directly });
    }
}

/// The naive model: sums in 128 bits, and a check of the result.
fn model(before: &Balance, delta: Delta) -> Result<[i128; 5], ()> {
    let fits = |sum: i128| i64::try_from(sum).map(i128::from).map_err(|_| ());
    let sum = |one: i64, other: i64| fits(i128::from(one) + i128::from(other));
    let posted = sum(before.posted, delta.posted)?;
    let outgoing = sum(before.outgoing, delta.outgoing)?;
    let incoming = sum(before.incoming, delta.incoming)?;
    let floor = before.floor.map_or(Ok(0), |floor| sum(floor, delta.floor))?;
    let cap = before.cap.map_or(Ok(0), |cap| sum(cap, delta.cap))?;
    let available = i128::from(before.posted) - i128::from(before.outgoing);
    let expected = i128::from(before.posted) + i128::from(before.incoming);
    let nearer_floor = posted - outgoing < available || delta.floor > 0;
    let nearer_cap = posted + incoming > expected || delta.cap < 0;
    let held = outgoing >= 0 && incoming >= 0;
    let above = before.floor.is_none() || !nearer_floor || posted - outgoing >= floor;
    let below = before.cap.is_none() || !nearer_cap || posted + incoming <= cap;
    if held && above && below { Ok([posted, outgoing, incoming, floor, cap]) } else { Err(()) }
}

/// Small numbers near the bounds, and numbers near the limits of 64 bits.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => -12..=12_i64,
        1 => any::<i64>(),
        1 => i64::MAX - 6..=i64::MAX,
        1 => i64::MIN..=i64::MIN + 6,
    ]
}

fn amount() -> impl Strategy<Value = i64> {
    number().prop_map(i64::saturating_abs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_balance_moves_exactly_as_the_model_says(
        (posted, outgoing, incoming) in (number(), amount(), amount()),
        (floor, cap) in (prop::option::of(number()), prop::option::of(number())),
        delta in (number(), number(), number(), number(), number()),
    ) {
        let before = Balance { outgoing, incoming, ..balance(posted, floor, cap) };
        let delta = Delta { posted: delta.0, outgoing: delta.1, incoming: delta.2, floor: delta.3, cap: delta.4 };
        match (before.moved(delta), model(&before, delta)) {
            (Ok(after), Ok(numbers)) => {
                let own = [after.posted, after.outgoing, after.incoming, after.floor.unwrap_or(0), after.cap.unwrap_or(0)];
                prop_assert_eq!(own.map(i128::from), numbers);
                prop_assert_eq!(after.floor.is_some(), floor.is_some());
                prop_assert_eq!(after.cap.is_some(), cap.is_some());
                prop_assert_eq!((after.account, after.shard, after.revision), (before.account, before.shard, 6));
            }
            (Err(_), Err(())) => {}
            (got, expected) => prop_assert!(false, "{got:?} where the model says {expected:?}"),
        }
    }

    /// A balance within its bounds stays within them after any delta.
    #[test]
    fn no_walk_leaves_the_bounds(
        (floor, cap) in (-50..=0_i64, 0..=50_i64),
        walk in prop::collection::vec((-20..=20_i64, -20..=20_i64, -20..=20_i64), 1..60),
    ) {
        let mut now = balance(0, Some(floor), Some(cap));
        for (posted, outgoing, incoming) in walk {
            let delta = Delta { posted, outgoing, incoming, ..NOTHING };
            if let Ok(next) = now.moved(delta) {
                now = next;
            }
            prop_assert!(now.outgoing >= 0 && now.incoming >= 0);
            prop_assert!(now.available() >= i128::from(floor), "{now:?}");
            prop_assert!(now.expected() <= i128::from(cap), "{now:?}");
        }
    }
}

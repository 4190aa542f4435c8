//! Transactions: only balanced legs, and stored names of every kind.

#![allow(clippy::expect_used, reason = "an invalid fixture must stop its test")]

use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::transaction::{BadLegs, Layer, Leg, Legs, Transaction, TransactionKind};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, ChargeId, HoldId, TenantId, TransactionId};
use counterfoil_core::types::limits::{AMOUNT_MAX, LEGS_MAX};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::time::Time;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};

const SIDES: [Side; 2] = [Side::Debit, Side::Credit];
const LAYERS: [Layer; 3] = [Layer::Posted, Layer::Pending, Layer::Released];

fn asset(code: &str) -> Asset {
    Asset::parse(code).expect("a valid code")
}

fn leg(account: i64, side: Side, amount: i64) -> Leg {
    Leg { account: AccountId::from_i64(account), side, layer: Layer::Posted, amount, asset: asset("USD") }
}

fn debit(account: i64, amount: i64) -> Leg {
    leg(account, Side::Debit, amount)
}

fn credit(account: i64, amount: i64) -> Leg {
    leg(account, Side::Credit, amount)
}

#[test]
fn fewer_than_two_legs_are_no_transaction() {
    assert_eq!(Legs::balanced(vec![]), Err(BadLegs::TooFew));
    assert_eq!(Legs::balanced(vec![debit(1, 5)]), Err(BadLegs::TooFew));
}

#[test]
fn too_many_legs_are_refused() {
    let legs = |count: usize| -> Vec<Leg> {
        (0..)
            .zip(SIDES.into_iter().cycle())
            .take(count)
            .map(|(account, side)| leg(account, side, 5))
            .collect()
    };
    assert!(Legs::balanced(legs(LEGS_MAX)).is_ok());
    assert_eq!(Legs::balanced(legs(LEGS_MAX + 2)), Err(BadLegs::TooMany));
}

#[test]
fn an_amount_outside_the_bounds_is_named() {
    for amount in [0, -1, i64::MIN, AMOUNT_MAX + 1, i64::MAX] {
        assert_eq!(Legs::balanced(vec![debit(1, 5), credit(2, amount)]), Err(BadLegs::Amount(1)), "{amount}");
        assert_eq!(Legs::balanced(vec![debit(1, amount), credit(2, amount)]), Err(BadLegs::Amount(0)));
    }
    assert!(Legs::balanced(vec![debit(1, AMOUNT_MAX), credit(2, AMOUNT_MAX)]).is_ok());
}

#[test]
fn an_account_occurs_once_per_layer() {
    let twice = vec![debit(1, 5), credit(2, 3), credit(3, 1), credit(2, 1)];
    assert_eq!(Legs::balanced(twice), Err(BadLegs::Twice(3)));
    let to_itself = vec![debit(1, 5), credit(1, 5)];
    assert_eq!(Legs::balanced(to_itself), Err(BadLegs::Twice(1)));
    let another_layer = [Layer::Posted, Layer::Released]
        .into_iter()
        .flat_map(|layer| [debit(1, 5), credit(2, 5)].map(|leg| Leg { layer, ..leg }));
    assert!(Legs::balanced(another_layer.collect()).is_ok());
}

#[test]
fn each_asset_and_layer_balances_on_its_own() {
    let euro = |leg: Leg| Leg { asset: asset("EUR"), ..leg };
    let pending = |leg: Leg| Leg { layer: Layer::Pending, ..leg };
    let usd = asset("USD");
    assert_eq!(Legs::balanced(vec![debit(1, 5), credit(2, 4)]), Err(BadLegs::Unbalanced(usd)));
    assert_eq!(Legs::balanced(vec![debit(1, 5), euro(credit(2, 5))]), Err(BadLegs::Unbalanced(usd)));
    assert_eq!(Legs::balanced(vec![debit(1, 5), pending(credit(2, 5))]), Err(BadLegs::Unbalanced(usd)));
    let euros_differ = vec![debit(1, 5), credit(2, 5), euro(debit(3, 1)), euro(credit(4, 2))];
    assert_eq!(Legs::balanced(euros_differ), Err(BadLegs::Unbalanced(asset("EUR"))));
    let both = vec![debit(1, 5), credit(2, 5), euro(debit(3, 7)), euro(credit(4, 7))];
    assert!(Legs::balanced(both).is_ok());
}

#[test]
fn a_transfer_debits_the_first_and_credits_the_second() {
    let (from, to) = (AccountId::from_i64(1), AccountId::from_i64(2));
    for layer in LAYERS {
        let legs = Legs::transfer(from, to, 5, asset("USD"), layer).unwrap();
        let expected = [debit(1, 5), credit(2, 5)].map(|leg| Leg { layer, ..leg });
        assert_eq!(legs.as_slice(), expected);
    }
    assert_eq!(Legs::transfer(from, from, 5, asset("USD"), Layer::Posted), Err(BadLegs::Twice(1)));
    assert_eq!(Legs::transfer(from, to, 0, asset("USD"), Layer::Posted), Err(BadLegs::Amount(0)));
}

#[test]
fn sides_and_layers_parse_back_from_their_names() {
    for side in SIDES {
        assert_eq!(Side::parse(side.name()), Some(side));
        assert_ne!(side.opposite(), side);
        assert_eq!(side.opposite().opposite(), side);
    }
    for layer in LAYERS {
        assert_eq!(Layer::parse(layer.name()), Some(layer));
    }
    assert_eq!((Side::parse("Debit"), Layer::parse("held")), (None, None));
}

fn kinds(number: i64) -> [TransactionKind; 9] {
    let hold = HoldId::from_i64(number);
    [
        TransactionKind::Transfer,
        TransactionKind::General,
        TransactionKind::Conversion,
        TransactionKind::Charge(ChargeId::from_i64(number)),
        TransactionKind::Reversal(TransactionId::from_i64(number)),
        TransactionKind::Held(hold),
        TransactionKind::HoldPosted(hold),
        TransactionKind::HoldVoided(hold),
        TransactionKind::HoldLapsed(hold),
    ]
}

#[test]
fn a_kind_is_its_name_and_its_number() {
    for number in [0, 7, i64::MAX] {
        let kinds = kinds(number);
        let names: HashSet<&str> = kinds.into_iter().map(TransactionKind::name).collect();
        assert_eq!(names.len(), kinds.len(), "every name is different");
        for kind in kinds {
            let about = kind.about();
            assert!(about.is_none_or(|about| about == number));
            assert_eq!(TransactionKind::parse(kind.name(), about), Some(kind));
            // A kind with a missing or a superfluous number does not parse.
            let other = if about.is_some() { None } else { Some(number) };
            assert_eq!(TransactionKind::parse(kind.name(), other), None, "{kind:?}");
        }
    }
    assert_eq!(TransactionKind::parse("refund", None), None);
    assert_eq!(TransactionKind::parse("", Some(1)), None);
}

#[test]
fn entries_are_the_legs_in_order_with_their_commit() {
    let legs = Legs::balanced(vec![debit(1, 5), credit(2, 3), credit(3, 2)]).unwrap();
    let transaction = Transaction {
        id: TransactionId::from_i64(9),
        tenant: TenantId::from_i64(1),
        kind: TransactionKind::General,
        legs: legs.clone(),
        metadata: BTreeMap::new(),
        at: Time::from_ms(1),
    };
    let entries: Vec<_> = transaction.entries(Position(4), Time::from_ms(2)).collect();
    assert_eq!(entries.len(), 3);
    for ((number, leg), entry) in (0..).zip(legs.as_slice()).zip(entries) {
        assert_eq!((entry.transaction, entry.leg), (transaction.id, number));
        assert_eq!(
            (entry.position, entry.at),
            (Position(4), Time::from_ms(2)),
            "the commit's, not the decision's"
        );
        let back = Leg {
            account: entry.account,
            side: entry.side,
            layer: entry.layer,
            amount: entry.amount,
            asset: entry.asset,
        };
        assert_eq!(back, *leg);
    }
}

/// The rule for legs, restated naively.
fn is_transaction(legs: &[Leg]) -> bool {
    let mut places = HashSet::new();
    let mut sums: HashMap<(Asset, Layer), i128> = HashMap::new();
    for leg in legs {
        let sign = if leg.side == Side::Debit { -1 } else { 1 };
        *sums.entry((leg.asset, leg.layer)).or_default() += sign * i128::from(leg.amount);
        if !places.insert((leg.account, leg.layer)) || leg.amount < 1 || leg.amount > AMOUNT_MAX {
            return false;
        }
    }
    (2..=LEGS_MAX).contains(&legs.len()) && sums.values().all(|sum| *sum == 0)
}

fn any_leg() -> impl Strategy<Value = Leg> {
    let amount =
        prop_oneof![9 => 1..4_i64, 1 => Just(AMOUNT_MAX), 1 => prop::sample::select(vec![0, -1, i64::MAX])];
    let code = prop::sample::select(vec!["USD", "POINTS"]);
    let (side, layer) = (prop::sample::select(SIDES.to_vec()), prop::sample::select(LAYERS.to_vec()));
    (0..12_i64, side, layer, amount, code).prop_map(|(account, side, layer, amount, code)| Leg {
        layer,
        asset: asset(code),
        ..leg(account, side, amount)
    })
}

/// Balanced pairs on separate accounts, shuffled.
fn pairs() -> impl Strategy<Value = Vec<Leg>> {
    prop::collection::vec(any_leg(), 1..=LEGS_MAX / 2)
        .prop_map(|legs| {
            let both = |(number, one): (i64, Leg)| {
                let one = Leg {
                    account: AccountId::from_i64(number * 2),
                    amount: one.amount.clamp(1, AMOUNT_MAX),
                    ..one
                };
                let other =
                    Leg { account: AccountId::from_i64(number * 2 + 1), side: one.side.opposite(), ..one };
                [one, other]
            };
            (0..).zip(legs).flat_map(both).collect::<Vec<_>>()
        })
        .prop_shuffle()
}

#[test]
fn posted_legs_are_separate_from_reserved_ones() {
    let released = |leg: Leg| Leg { layer: Layer::Released, ..leg };
    let legs = Legs::balanced(vec![released(debit(1, 9)), released(credit(2, 9)), debit(1, 5), credit(2, 5)]);
    assert_eq!(legs.expect("they balance").posted().as_slice(), [debit(1, 5), credit(2, 5)]);
}

proptest! {
    #[test]
    fn legs_are_balanced_exactly_if_their_sums_are_zero(legs in prop::collection::vec(any_leg(), 0..6)) {
        prop_assert_eq!(Legs::balanced(legs.clone()).is_ok(), is_transaction(&legs));
    }

    #[test]
    fn pairs_balance_and_one_changed_leg_spoils_them(
        legs in pairs(),
        which in any::<prop::sample::Index>(),
        change in 0..5_u8,
    ) {
        let balanced = Legs::balanced(legs.clone()).expect("pairs balance");
        prop_assert_eq!(balanced.as_slice(), &legs[..], "the order is kept");
        let mut spoilt = legs.clone();
        let leg = which.get(&legs);
        let place = spoilt.iter_mut().find(|other| *other == leg).unwrap();
        match change {
            0 => place.amount = if leg.amount == 1 { 2 } else { leg.amount - 1 },
            1 => place.side = leg.side.opposite(),
            2 => place.asset = asset("OTHER"),
            3 => place.layer = LAYERS.into_iter().find(|layer| *layer != leg.layer).unwrap(),
            _ => place.account = AccountId::from_i64(leg.account.to_i64() ^ 1),
        }
        prop_assert!(!is_transaction(&spoilt));
        prop_assert!(Legs::balanced(spoilt).is_err());
    }

    #[test]
    fn reversed_legs_balance_and_reverse_back(legs in pairs()) {
        let legs = Legs::balanced(legs).unwrap();
        let reversed = legs.reversed();
        prop_assert_eq!(&Legs::balanced(reversed.as_slice().to_vec()), &Ok(reversed.clone()));
        prop_assert_eq!(&reversed.reversed(), &legs);
        for (one, other) in legs.as_slice().iter().zip(reversed.as_slice()) {
            prop_assert_eq!(*other, Leg { side: one.side.opposite(), ..*one });
        }
    }
}

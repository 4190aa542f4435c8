//! Totals against naive sums, seen from both sides.

#![allow(clippy::expect_used, reason = "an invalid fixture must stop its test")]

use counterfoil_core::ledger::account::Side;
use counterfoil_core::ledger::balance::{Balance, Delta, Guarded};
use counterfoil_core::ledger::totals::{BalanceAmounts, Totals};
use counterfoil_core::ledger::transaction::{Layer, Leg};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_core::types::limits::AMOUNT_MAX;
use proptest::prelude::*;

const SIDES: [Side; 2] = [Side::Debit, Side::Credit];
const LAYERS: [Layer; 3] = [Layer::Posted, Layer::Pending, Layer::Released];

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
fn each_layer_and_side_has_its_sum() {
    let plain = Totals { entries: 1, ..Totals::default() };
    for (side, layer, expected) in [
        (Side::Debit, Layer::Posted, Totals { debits: 5, ..plain }),
        (Side::Credit, Layer::Posted, Totals { credits: 5, ..plain }),
        (Side::Debit, Layer::Pending, Totals { debits_pending: 5, ..plain }),
        (Side::Credit, Layer::Pending, Totals { credits_pending: 5, ..plain }),
        (Side::Debit, Layer::Released, Totals { debits_pending: -5, ..plain }),
        (Side::Credit, Layer::Released, Totals { credits_pending: -5, ..plain }),
    ] {
        assert_eq!(Totals::default().plus(side, layer, 5), expected, "{side:?} {layer:?}");
        assert_eq!(Totals::default().plus_leg(&leg(side, layer, 5)), expected);
    }
}

#[test]
fn amounts_are_in_terms_of_the_normal_side() {
    let totals = Totals { debits: 100, credits: 30, debits_pending: 7, credits_pending: 4, entries: 9 };
    let debit = BalanceAmounts { posted: 70, outgoing: 4, incoming: 7, available: 66 };
    let credit = BalanceAmounts { posted: -70, outgoing: 7, incoming: 4, available: -77 };
    assert_eq!(totals.seen_from(Side::Debit), debit);
    assert_eq!(totals.seen_from(Side::Credit), credit);
}

#[test]
fn the_largest_amounts_do_not_overflow_totals() {
    let age = Totals { debits: i128::from(i64::MAX) * i128::from(i64::MAX), ..Totals::default() };
    let more = age.plus(Side::Debit, Layer::Posted, i64::MAX);
    assert_eq!(more.debits - age.debits, i128::from(i64::MAX));
    assert_eq!(age.and(age).debits, 2 * age.debits);
    let full = Totals { entries: u64::MAX, ..age };
    assert_eq!(full.plus(Side::Debit, Layer::Posted, 1).entries, u64::MAX);
}

fn legs() -> impl Strategy<Value = Vec<Leg>> {
    let amount = prop_oneof![1..100_i64, Just(AMOUNT_MAX), 1..=AMOUNT_MAX];
    let (side, layer) = (prop::sample::select(SIDES.to_vec()), prop::sample::select(LAYERS.to_vec()));
    let one = (side, layer, amount).prop_map(|(side, layer, amount)| leg(side, layer, amount));
    prop::collection::vec(one, 0..60)
}

fn naive(legs: &[Leg], side: Side, layer: Layer) -> i128 {
    legs.iter().filter(|leg| leg.side == side && leg.layer == layer).map(|leg| i128::from(leg.amount)).sum()
}

proptest! {
    #[test]
    fn totals_are_the_sums_of_their_legs(legs in legs(), cut in any::<prop::sample::Index>()) {
        let fold = |legs: &[Leg]| legs.iter().fold(Totals::default(), Totals::plus_leg);
        let totals = fold(&legs);
        let pending = |side| naive(&legs, side, Layer::Pending) - naive(&legs, side, Layer::Released);
        let expected = Totals {
            debits: naive(&legs, Side::Debit, Layer::Posted),
            credits: naive(&legs, Side::Credit, Layer::Posted),
            debits_pending: pending(Side::Debit),
            credits_pending: pending(Side::Credit),
            entries: legs.len() as u64,
        };
        prop_assert_eq!(totals, expected);
        // The totals of two parts of a history add up to the totals of the whole.
        let (head, tail) = legs.split_at(cut.index(legs.len() + 1));
        prop_assert_eq!(fold(head).and(fold(tail)), totals);
        for normal in SIDES {
            let sum = |layer| naive(&legs, normal, layer) - naive(&legs, normal.opposite(), layer);
            let view = totals.seen_from(normal);
            prop_assert_eq!(view.posted, sum(Layer::Posted));
            prop_assert_eq!((view.incoming, view.outgoing), (pending(normal), pending(normal.opposite())));
            prop_assert_eq!(view.available, view.posted - view.outgoing);
        }
    }

    /// The journal and the guarded balance agree on every number.
    #[test]
    fn the_sum_of_entries_equals_the_balance(legs in legs()) {
        for normal in SIDES {
            let none = Guarded { floor: false, cap: false };
            let mut balance = Balance::empty(TenantId::from_i64(2), AccountId::from_i64(1), 0, none);
            let mut totals = Totals::default();
            for leg in &legs {
                // A release of more than the hold is refused, and then is in neither.
                if let Ok(next) = balance.moved(Delta::of(leg, normal)) {
                    balance = next;
                    totals = totals.plus_leg(leg);
                }
            }
            let view = totals.seen_from(normal);
            let held = (i128::from(balance.outgoing), i128::from(balance.incoming));
            prop_assert_eq!(view.posted, i128::from(balance.posted));
            prop_assert_eq!((view.outgoing, view.incoming), held);
            prop_assert_eq!(view.available, balance.available());
            prop_assert_eq!(totals.entries, balance.revision);
        }
    }
}

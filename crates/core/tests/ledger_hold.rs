//! Holds end once, within the reserved amount, and at their deadline at the latest.

#![allow(clippy::expect_used, reason = "an invalid fixture must stop its test")]

use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, HoldId, TenantId, TransactionId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use std::collections::BTreeMap;

const BY: TransactionId = TransactionId::from_i64(9);

fn hold() -> Hold {
    Hold {
        id: HoldId::from_i64(1),
        tenant: TenantId::from_i64(1),
        from: AccountId::from_i64(1),
        to: AccountId::from_i64(2),
        amount: 100,
        asset: Asset::parse("USD").expect("a currency"),
        expires_at: Time::from_ms(60),
        state: HoldState::Pending,
        metadata: BTreeMap::new(),
        created_at: Time::from_ms(0),
        revision: 1,
    }
}

/// Every end state, and whether it is legal for a hold of 100.
const ENDS: [(HoldState, bool); 8] = [
    (HoldState::Posted { amount: i64::MIN, by: BY }, false),
    (HoldState::Posted { amount: 0, by: BY }, false),
    (HoldState::Posted { amount: 1, by: BY }, true),
    (HoldState::Posted { amount: 100, by: BY }, true),
    (HoldState::Posted { amount: 101, by: BY }, false),
    (HoldState::Voided { by: BY }, true),
    (HoldState::Lapsed { by: BY }, true),
    (HoldState::Pending, false),
];

#[test]
fn a_hold_ends_within_what_it_reserves() {
    for (end, allowed) in ENDS {
        assert_eq!(hold().may_become(&hold().ended(end)), allowed, "{end:?}");
    }
}

#[test]
fn an_ended_hold_never_changes_again() {
    for (first, _) in ENDS.into_iter().filter(|(_, allowed)| *allowed) {
        let ended = hold().ended(first);
        for (second, _) in ENDS {
            assert!(!ended.may_become(&ended.ended(second)), "{first:?} to {second:?}");
        }
    }
}

#[test]
fn ending_a_hold_changes_nothing_else() {
    let ended = hold().ended(HoldState::Voided { by: BY });
    assert_eq!(ended, Hold { state: HoldState::Voided { by: BY }, revision: 2, ..hold() });
    for other in [
        Hold { id: HoldId::from_i64(2), ..ended.clone() },
        Hold { tenant: TenantId::from_i64(2), ..ended.clone() },
        Hold { from: AccountId::from_i64(3), ..ended.clone() },
        Hold { to: AccountId::from_i64(3), ..ended.clone() },
        Hold { amount: 99, ..ended.clone() },
        Hold { asset: Asset::parse("EUR").unwrap(), ..ended.clone() },
        Hold { expires_at: Time::from_ms(61), ..ended.clone() },
        Hold { metadata: BTreeMap::from([("a".into(), Masked::new("b".into()))]), ..ended.clone() },
        Hold { created_at: Time::from_ms(1), ..ended.clone() },
    ] {
        assert!(!hold().may_become(&other), "{other:?}");
    }
}

#[test]
fn a_deadline_counts_without_a_worker() {
    assert!(hold().is_open(Time::from_ms(59)));
    assert!(!hold().is_open(Time::from_ms(60)));
    assert_eq!(hold().lapses_at(), Some(Time::from_ms(60)));
    for (end, _) in ENDS.into_iter().filter(|(_, allowed)| *allowed) {
        let ended = hold().ended(end);
        assert!(!ended.is_open(Time::from_ms(0)), "{end:?}");
        assert_eq!(ended.lapses_at(), None, "{end:?}");
    }
}

#[test]
fn every_state_has_its_name() {
    let words = [ENDS[7].0, ENDS[2].0, ENDS[5].0, ENDS[6].0].map(HoldState::name);
    assert_eq!(words, ["pending", "posted", "voided", "lapsed"]);
}

#[test]
fn only_payments_own_holds_without_a_deadline() {
    assert!(!hold().is_a_payments());
    assert!(Hold { expires_at: Hold::NEVER, ..hold() }.is_a_payments());
}

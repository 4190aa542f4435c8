//! Accounts, their codes and the chart: fixed at opening, except for the number of shards.

#![allow(clippy::expect_used, reason = "an invalid fixture must stop its test")]

use counterfoil_core::ledger::account::{Account, AccountCode, BadCode, Guard, Side};
use counterfoil_core::ledger::balance::Guarded;
use counterfoil_core::ledger::chart::{PREFIX, ROLES, Role};
use counterfoil_core::ledger::snapshot::FeedReader;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_core::types::limits::{ACCOUNT_CODE_BYTES_MAX, ASSET_CODE_BYTES_MAX};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use std::collections::{BTreeMap, HashSet};

fn code(text: &str) -> AccountCode {
    AccountCode::parse(text).expect("a valid code")
}

fn asset(code: &str) -> Asset {
    Asset::parse(code).expect("a valid asset")
}

fn account() -> Account {
    Account {
        id: AccountId::from_i64(1),
        tenant: TenantId::from_i64(1),
        code: code("wallet"),
        asset: asset("USD"),
        normal: Side::Credit,
        guard: Guard { floor: Some(0), cap: None },
        shards: 4,
        widest: 8,
        metadata: BTreeMap::from([("a".into(), Masked::new("b".into()))]),
        created_at: Time::from_ms(5),
        revision: 3,
    }
}

#[test]
fn only_the_shards_of_an_account_change() {
    let before = account();
    for next in [
        Account { id: AccountId::from_i64(2), ..account() },
        Account { tenant: TenantId::from_i64(2), ..account() },
        Account { code: code("Wallet"), ..account() },
        Account { asset: asset("EUR"), ..account() },
        Account { normal: Side::Debit, ..account() },
        Account { guard: Guard { floor: Some(1), cap: None }, ..account() },
        Account { guard: Guard { floor: None, cap: None }, ..account() },
        Account { guard: Guard { floor: Some(0), cap: Some(0) }, ..account() },
        Account { metadata: BTreeMap::new(), ..account() },
        Account { metadata: BTreeMap::from([("a".into(), Masked::new("c".into()))]), ..account() },
        Account { created_at: Time::from_ms(6), ..account() },
        Account { widest: 7, ..account() },
        Account { shards: 9, ..account() },
        Account { shards: 9, widest: 7, ..account() },
    ] {
        let next = Account { revision: 4, ..next };
        assert!(!before.may_become(&next), "{next:?}");
    }
    for (shards, widest) in [(4, 8), (1, 8), (8, 8), (9, 9), (256, 256), (1, 256)] {
        let next = Account { shards, widest, revision: 4, ..account() };
        assert!(before.may_become(&next), "{shards} of {widest}");
    }
}

#[test]
fn a_guard_is_any_bound() {
    for (floor, cap) in [(None, None), (Some(0), None), (None, Some(0)), (Some(-1), Some(1))] {
        let guard = Guard { floor, cap };
        assert_eq!(guard.is_set(), floor.is_some() || cap.is_some());
        assert_eq!(guard.guarded(), Guarded { floor: floor.is_some(), cap: cap.is_some() });
    }
    assert!(!Guard::default().is_set());
}

#[test]
fn a_code_is_short_and_plain() {
    let long = "x".repeat(ACCOUNT_CODE_BYTES_MAX);
    for text in ["a", "0", "Z9", "a_b-c.d:e/f", "chart:payable:USD", long.as_str()] {
        assert_eq!(code(text).as_str(), text);
        assert_eq!(code(text).to_string(), text);
    }
    let longer = format!("{long}x");
    for text in
        ["", "_a", "-a", ":a", "/a", ".a", "a b", "a\n", "é", "aé", "a\0", "a,b", "a\\b", longer.as_str()]
    {
        assert_eq!(AccountCode::parse(text), Err(BadCode), "{text:?}");
    }
}

#[test]
fn every_role_has_its_own_code_in_every_asset() {
    let longest = "Z".repeat(ASSET_CODE_BYTES_MAX);
    let mut codes = HashSet::new();
    for asset in ["USD", "EUR", "A_1", longest.as_str()].map(asset) {
        for role in ROLES {
            let code = role.code(asset).unwrap();
            assert!(code.as_str().starts_with(PREFIX), "{code}");
            assert!(codes.insert(code));
        }
    }
    assert_eq!(Role::Payable.code(asset("usd")).unwrap().as_str(), "chart:payable:USD");
}

#[test]
fn receivables_and_fees_are_debit_accounts() {
    for role in ROLES {
        let expected = match role {
            Role::Receivable | Role::Fees => Side::Debit,
            Role::Payable | Role::Rounding | Role::Suspense | Role::Exchange => Side::Credit,
        };
        assert_eq!(role.normal(), expected, "{}", role.name());
    }
}

#[test]
fn a_feed_reader_parses_back_from_its_name() {
    assert_eq!(FeedReader::parse(FeedReader::Projection.name()), Some(FeedReader::Projection));
    assert_eq!(FeedReader::parse("archive"), None);
}

#[test]
fn golden_sides() {
    for (side, word) in [(Side::Debit, "debit"), (Side::Credit, "credit")] {
        assert_eq!((side.name(), Side::parse(word)), (word, Some(side)));
    }
    assert_eq!(Side::parse("left"), None);
}

/// Stores keep these codes, and clients use one to name their main account.
#[test]
fn golden_chart() {
    let codes = ROLES.map(|role| role.code(asset("USD")).expect("a valid code").to_string());
    let expected = ["receivable", "payable", "fees", "rounding", "suspense", "exchange"];
    assert_eq!(codes, expected.map(|role| format!("chart:{role}:USD")));
}

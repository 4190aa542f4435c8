//! Damage: a store with lost pages reports errors; it neither panics nor returns wrong rows.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::outbox::Payment;
use counterfoil_core::types::id::{ChargeId, PayoutId, SetId, TenantId};
use counterfoil_core::types::time::Time;
use counterfoil_store::conformance::fixtures::ledger::{
    FLOOR, account, account_id, cursor, definition, hold, moving, name, posted, reversal, snapshot, transfer,
};
use counterfoil_store::conformance::fixtures::{TENANT, operation, payout, set};
use counterfoil_store::{ChangeSet, CommitError, Due, EntryPage, Position, Row, RowKey, Scan, Store, Upto};
use counterfoil_store_embedded::{EmbeddedStore, OpenError, Options};
use std::fs;
use std::path::Path;
use support::rows::{Work, work};
use support::{one_charge, open};

const PAGE: usize = 4_096;

/// The file of a closed store, and the work in it.
async fn filled(dir: &Path) -> (Vec<u8>, Vec<Work>) {
    let store = open(dir);
    let mut all = Vec::new();
    for number in 1..=120 {
        let work = work(number, store.now());
        store.commit(work.opening(number)).await.unwrap();
        all.push(work);
    }
    store.commit(others().into_iter().fold(set(121), ChangeSet::insert)).await.unwrap();
    store.commit(set(122).shift(moving(1, FLOOR, posted(5)))).await.unwrap();
    drop(store);
    (fs::read(dir.join("counterfoil.db")).unwrap(), all)
}

/// An operation, a payout, and one row of every kind of the ledger.
fn others() -> [Row; 10] {
    [
        operation(1, 1).into(),
        payout(1).into(),
        account(1).into(),
        name(1).into(),
        definition("POINTS").into(),
        transfer(1, 1, 2, 5).into(),
        reversal(1).into(),
        hold(1).into(),
        snapshot(1, 1).into(),
        cursor(1).into(),
    ]
}

fn try_open(dir: &Path, bytes: &[u8]) -> Result<EmbeddedStore, OpenError> {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("counterfoil.db"), bytes).unwrap();
    EmbeddedStore::open(dir, Options::default())
}

#[tokio::test]
async fn a_destroyed_header_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, _) = filled(&dir.path().join("whole")).await;
    for (name, from, to) in [("zeroed", 0, PAGE), ("magic", 0, 16), ("schema", 100, PAGE)] {
        let mut damaged = bytes.clone();
        damaged[from..to].fill(0);
        let error = try_open(&dir.path().join(name), &damaged).expect_err(name);
        assert!(matches!(error, OpenError::Corrupt(_)), "{name}: {error:?}");
        assert!(error.to_string().contains("restore it from a backup"), "{error}");
        assert_eq!(fs::read(dir.path().join(name).join("counterfoil.db")).unwrap(), damaged, "{name}");
    }
}

#[tokio::test]
async fn a_lost_page_is_an_error_and_never_a_wrong_row() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, all) = filled(&dir.path().join("whole")).await;
    let pages = bytes.len() / PAGE;
    let mut unnoticed = Vec::new();
    for page in 1..pages {
        let mut damaged = bytes.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0);
        let Ok(store) = try_open(&dir.path().join(page.to_string()), &damaged) else {
            continue;
        };
        let mut failed = everything_else(&store).await;
        let charges = all.iter().flat_map(|work| -> [Row; 4] {
            let work = work.clone();
            [work.claim.into(), work.charge.into(), work.outbox.into(), work.audit.into()]
        });
        for row in charges.chain(others()) {
            match store.read(vec![row.key()]).await {
                Ok(found) => assert_eq!(found, [Some(row)], "page {page}"),
                Err(_) => failed = true,
            }
        }
        let answer = store.commit(one_charge(&store, 1_000)).await;
        let answered = matches!(answer, Ok(_) | Err(CommitError::Unavailable(_) | CommitError::InDoubt(_)));
        assert!(answered, "page {page}: {answer:?}");
        if !(failed || answer.is_err()) {
            unnoticed.push(page);
        }
    }
    assert!(pages > 30, "{pages}");
    assert_eq!(unnoticed, [0; 0], "these pages were lost unnoticed");
}

/// Whether any list, sum or page fails.
async fn everything_else(store: &EmbeddedStore) -> bool {
    let mut failed = store.feed(Position(0), 1_000).await.is_err() || store.tally(Time::MAX).await.is_err();
    for what in [Due::Outbox, Due::Claims, Due::Holds] {
        failed |= store.due(what, Time::MAX, 1_000).await.is_err();
    }
    for tenant in (1..=4).map(TenantId::from_i64) {
        for scan in [
            Scan::ChargesOf { tenant, before: None, limit: 1_000 },
            Scan::RefundsOf { tenant, before: None, limit: 1_000 },
            Scan::PayoutsOf { tenant, before: None, limit: 1_000 },
            Scan::ParkedOf { tenant, before: None, limit: 1_000 },
            Scan::AccountsOf { tenant, before: None, limit: 1_000 },
            Scan::TransactionsOf { tenant, before: None, limit: 1_000 },
        ] {
            failed |= store.scan(scan).await.is_err();
        }
    }
    failed |= store.entries(TENANT, account_id(1), EntryPage::Before(None), 1_000).await.is_err();
    failed |= store.fold(TENANT, account_id(1), Position(0), Upto::Now).await.is_err();
    for scan in [
        Scan::Tenants,
        Scan::ApiKeys,
        Scan::Slots,
        Scan::Balances { after: None, limit: 9 },
        Scan::OperationsOn { tenant: TENANT, charge: ChargeId::from_i64(1), after: None, limit: 9 },
        Scan::DoubtOn { payment: Payment::Charge(ChargeId::from_i64(1)), limit: 9 },
        Scan::DoubtOn { payment: Payment::Payout(PayoutId::from_i64(1)), limit: 9 },
    ] {
        failed |= store.scan(scan).await.is_err();
    }
    for set in (1..=122).map(SetId::from_i64) {
        failed |= store.committed(set).await.is_err();
    }
    failed
}

#[tokio::test]
async fn a_file_that_was_cut_is_an_error_and_never_a_wrong_row() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, all) = filled(&dir.path().join("whole")).await;
    let Ok(store) = try_open(&dir.path().join("cut"), &bytes[..bytes.len() / 2]) else { return };
    let mut failed = 0;
    for work in &all {
        match store.read(vec![RowKey::Charge(TENANT, work.charge.id)]).await {
            Ok(found) => assert_eq!(found, [Some(work.charge.clone().into())]),
            Err(_) => failed += 1,
        }
    }
    assert!(failed > 0);
}

//! What format 3 makes of a file of format 2, and format 3 read as it was written.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::{Claim, Resource};
use counterfoil_core::outbox::{Flow, History, Outbox, ParkReason, Payment, ProviderBinding, Saga};
use counterfoil_core::payments::charge::{
    Charge, ChargeStatus, ChargeSums, FailureCode, PaymentFailure, Wallet,
};
use counterfoil_core::payments::operation::{self, Operation};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::types::id::{AccountId, ChargeId, HoldId, OperationId, SetId, SubjectId, TenantId};
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::conformance::fixtures::ledger::asset;
use counterfoil_store::{Change, ChangeSet, Due, Position, Row, RowKey, Scan, Store};
use counterfoil_store_embedded::{EmbeddedStore, FORMAT, OpenError, Options};
use std::path::Path;
use std::sync::Arc;
use support::rows::{Work, work};
use support::{open, raw, whose};
use tempfile::TempDir;

const NOON: Time = Time::from_ms(1_760_000_000_000);

/// What a charge of old was: its number, whether it was to be captured at once, where it stood.
const CHARGES: [(i64, bool, &str); 7] = [
    (1, true, "processing"),
    (2, false, "processing"),
    (3, true, "succeeded"),
    (4, false, "requires_capture"),
    (5, true, "failed"),
    (6, true, "parked"),
    (7, true, "succeeded"),
];

/// A file of format 2 with those charges and the work of the first two and of the parked one, in one commit.
fn format_2() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let db = raw(dir.path());
    db.execute_batch(include_str!("../src/schema/v1.sql")).unwrap();
    db.execute_batch(include_str!("../src/schema/v2.sql")).unwrap();
    db.execute_batch(
        "PRAGMA application_id = 1131374191; PRAGMA user_version = 2;
         INSERT INTO meta VALUES ('secret', zeroblob(32));",
    )
    .unwrap();
    for (id, capture, status) in CHARGES {
        let sql = "INSERT INTO charges VALUES \
            (?1, ?2, 1250, 'USD', 'pm_card_visa', ?3, 7, NULL, '{}', ?4, 'simulator', NULL, NULL, NULL, ?5, 2)";
        db.execute(sql, (id, 1 + id % 4, capture, status, NOON.ms())).unwrap();
    }
    for (id, generation, parked) in [(1, 1, None), (2, 3, None), (6, 1, Some("no_evidence"))] {
        let old = work(id, NOON);
        let claim = old.claim.id;
        let sql = "INSERT INTO outbox VALUES \
            (?1, ?2, ?3, 'simulator', 'http://127.0.0.1:4242', ?4, ?5, ?6, 4, 1, 5, ?5, ?4, ?7, 8)";
        let due = NOON.plus(Span::from_ms(30_000));
        let row = (id, claim.digest().as_bytes(), 1 + id % 4, due.ms(), NOON.ms(), generation, parked);
        db.execute(sql, row).unwrap();
    }
    let touched = b"\x03\0\0\0\0\0\0\0\x01\x03\0\0\0\0\0\0\0\x02";
    db.execute("INSERT INTO commits VALUES (1, 1, ?1, ?2)", (NOON.ms(), touched.as_slice())).unwrap();
    dir
}

async fn charge(store: &EmbeddedStore, number: i64) -> Charge {
    match whose(store, |tenant| RowKey::Charge(tenant, ChargeId::from_i64(number))).await {
        Some(Row::Charge(charge)) => charge,
        other => panic!("{number}: {other:?}"),
    }
}

fn version(dir: &Path) -> u32 {
    raw(dir).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

fn pages(dir: &Path) -> u32 {
    raw(dir).query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap()
}

/// The work of a file of format 2, as it stands now.
fn expected(number: i64, flow: Flow, generation: u16, parked: Option<ParkReason>) -> Outbox {
    let due_at = NOON.plus(Span::from_ms(30_000));
    let history = History {
        generation,
        idle_calls: 4,
        unknown: true,
        server_errors: 5,
        first_sent_at: NOON,
        last_sent_at: due_at,
    };
    let saga = Saga { flow, version: 1, progress: SagaProgress::START };
    Outbox { saga, hold: None, due_at, history, parked, revision: 8, ..work(number, NOON).outbox }
}

#[tokio::test]
async fn a_file_for_which_there_is_no_room_is_left_as_it_was() {
    let dir = format_2();
    let schema = "SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_schema ORDER BY name)";
    let before: String = raw(dir.path()).query_row(schema, [], |row| row.get(0)).unwrap();
    let full = Options { pages_max: Some(pages(dir.path())), ..Options::default() };
    let error = EmbeddedStore::open(dir.path(), full).expect_err("there is no room");
    assert!(matches!(error, OpenError::DiskFull), "{error:?}");
    assert_eq!(version(dir.path()), 2);
    let after: String = raw(dir.path()).query_row(schema, [], |row| row.get(0)).unwrap();
    assert_eq!(after, before);
    let rows: i64 = raw(dir.path()).query_row("SELECT count(*) FROM outbox", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 3);
    let reader = EmbeddedStore::open_read_only(dir.path()).expect_err("an older format");
    assert!(matches!(reader, OpenError::OlderFormat { found: 2, known: FORMAT }), "{reader:?}");
    assert_eq!(charge(&open(dir.path()), 3).await.sums.captured, 1_250, "with room it goes on");
}

#[tokio::test]
async fn what_was_captured_was_captured_whole_and_nothing_else_was() {
    let dir = format_2();
    let store = open(dir.path());
    for (number, capture, status) in CHARGES {
        let charge = charge(&store, number).await;
        let captured = if status == "succeeded" { 1_250 } else { 0 };
        assert_eq!(charge.sums, ChargeSums { captured, ..ChargeSums::default() }, "{number}");
        assert_eq!((charge.status.name(), charge.order.capture), (status, capture));
        assert_eq!((charge.working, charge.order.wallet, charge.revision), (None, None, 2));
        let provider = ProviderBinding { profile: "simulator".into(), endpoint: "".into() };
        assert_eq!(charge.provider, provider, "where it was asked for was not written down");
    }
    let none = store.scan(Scan::Operations { after: None, limit: 9 }).await;
    assert_eq!(none, Ok(Vec::new()));
}

#[tokio::test]
async fn work_under_way_is_at_the_first_step_of_what_was_ordered() {
    let dir = format_2();
    let store = open(dir.path());
    let (charged, held) = (expected(1, Flow::Charge, 1, None), expected(2, Flow::Authorize, 3, None));
    let parked = expected(6, Flow::Charge, 1, Some(ParkReason::NoEvidence));
    let all: Vec<Row> = [&charged, &held, &parked].map(|work| work.clone().into()).to_vec();
    assert_eq!(store.scan(Scan::Outbox { after: None, limit: 9 }).await.unwrap(), all);
    let keys = all.iter().map(Row::key).collect();
    assert_eq!(store.read(keys).await.unwrap(), all.iter().cloned().map(Some).collect::<Vec<_>>());
    assert_eq!(store.due(Due::Outbox, Time::MAX, 9).await.unwrap(), all[..2]);
    let of = Scan::ParkedOf { tenant: parked.tenant, before: None, limit: 9 };
    assert_eq!(store.scan(of).await.unwrap(), all[2..]);
    let tally = store.tally(NOON).await.unwrap();
    assert_eq!((tally.pending, tally.parked), (2, 1));
}

#[tokio::test]
async fn work_under_way_is_driven_to_its_end() {
    let dir = format_2();
    let store = open(dir.path());
    let old = expected(1, Flow::Charge, 1, None);
    let claim = work(1, NOON).claim;
    store.commit(ChangeSet::new(SetId::from_i64(2)).insert(claim.clone())).await.unwrap();
    let next = History { generation: 2, ..old.history };
    let retried = Outbox { history: next, revision: 9, ..old };
    store.commit(ChangeSet::new(SetId::from_i64(3)).replace(retried.clone(), 8)).await.unwrap();
    let going = Work { claim, charge: charge(&store, 1).await, outbox: retried, ..work(1, NOON) };
    store.commit(going.settling(4, store.now(), bytes::Bytes::new())).await.unwrap();
    let settled = charge(&store, 1).await;
    assert_eq!(
        (settled.status, settled.sums.captured, settled.revision),
        (ChargeStatus::Succeeded, 1_250, 3)
    );
    assert_eq!(whose(&store, |tenant| RowKey::Outbox(tenant, SubjectId::from_i64(1))).await, None);
}

#[tokio::test]
async fn the_feed_tells_of_old_work_as_it_did_and_of_nothing_new() {
    let dir = format_2();
    let store = open(dir.path());
    let feed = store.feed(Position(0), 9).await.unwrap();
    let touched: Vec<_> = feed.iter().map(|commit| commit.touched.as_slice()).collect();
    let work = [1, 2]
        .map(|number| RowKey::Outbox(work(number, store.now()).charge.tenant, SubjectId::from_i64(number)));
    assert_eq!(touched, [work.as_slice()]);
}

#[tokio::test]
async fn work_whose_charge_is_gone_is_kept() {
    let dir = format_2();
    raw(dir.path()).execute_batch("DROP TRIGGER charges_are_kept; DELETE FROM charges WHERE id = 2").unwrap();
    let store = open(dir.path());
    let found = whose(&store, |tenant| RowKey::Outbox(tenant, SubjectId::from_i64(2))).await;
    assert_eq!(found, Some(expected(2, Flow::Charge, 3, None).into()));
}

/// A file that format 3 wrote, as SQL.
const GOLDEN: &str = include_str!("golden/v3.sql");

/// The sets it was written by: a split payment on its way back, a charge that is captured, given back in part and about
/// to be given back again, one that is being voided, and work that is parked.
fn golden() -> Vec<ChangeSet> {
    let usd = asset("USD");
    let money = |minor| Money::new(minor, usd).unwrap();
    let mut split = work(701, NOON);
    Arc::make_mut(&mut split.charge.order).wallet =
        Some(Wallet { account: AccountId::from_i64(501), amount: 250 });
    split.outbox.saga.flow = Flow::Split;
    split.outbox.hold = Some(HoldId::from_i64(801));
    split.outbox.saga.progress.step = 2;
    split.outbox.history.generation = 4;
    let back = SagaProgress { step: 1, way: Direction::Back };
    let undoing = Outbox {
        saga: Saga { progress: back, ..split.outbox.saga },
        history: History::begun(NOON.plus(Span::from_ms(5))),
        revision: 2,
        ..split.outbox.clone()
    };
    let operation = |number, on: &Charge, kind, minor| Operation {
        id: OperationId::from_i64(number),
        tenant: on.tenant,
        charge: on.id,
        kind,
        amount: money(minor),
        status: operation::OperationStatus::Processing,
        provider_reference: None,
        failure: None,
        created_at: NOON,
        revision: 1,
    };
    let charge = work(702, NOON).charge;
    let sums = ChargeSums { captured: 1_250, refunded: 200, refunding: 300 };
    let captured = Charge { status: ChargeStatus::PartiallyRefunded, sums, revision: 7, ..charge };
    let capture = Operation {
        status: operation::OperationStatus::Succeeded,
        provider_reference: Some("pi_1".to_owned()),
        revision: 2,
        ..operation(711, &captured, operation::OperationKind::Capture, 1_250)
    };
    let failure =
        PaymentFailure { code: FailureCode::CardDeclined, decline_code: Some("expired_card".to_owned()) };
    let refused = Operation {
        status: operation::OperationStatus::Failed,
        failure: Some(failure),
        revision: 2,
        ..operation(712, &captured, operation::OperationKind::Refund, 100)
    };
    let refund = operation(713, &captured, operation::OperationKind::Refund, 300);
    let refunding = Outbox {
        id: refund.id.into(),
        payment: Payment::Charge(captured.id),
        saga: Saga {
            flow: Flow::Refund,
            version: 1,
            progress: SagaProgress { step: 1, way: Direction::Forward },
        },
        hold: Some(HoldId::from_i64(802)),
        tenant: captured.tenant,
        ..work(713, NOON).outbox
    };
    let claim = Claim { makes: Resource::Refund, tenant: captured.tenant, ..work(713, NOON).claim };
    let mut held = work(703, NOON).charge;
    Arc::make_mut(&mut held.order).capture = false;
    let void = operation(714, &held, operation::OperationKind::Void, 1_250);
    let held = Charge { status: ChargeStatus::RequiresCapture, working: Some(void.id), ..held };
    let voiding = Outbox {
        id: void.id.into(),
        payment: Payment::Charge(held.id),
        saga: Saga { flow: Flow::Void, version: 1, progress: SagaProgress::START },
        parked: Some(ParkReason::CannotUndo),
        due_at: Time::MAX,
        tenant: held.tenant,
        ..work(714, NOON).outbox
    };
    let parked = Operation { status: operation::OperationStatus::Parked, revision: 2, ..void.clone() };
    vec![
        split.opening(1).insert(captured).insert(held).insert(void),
        ChangeSet::new(SetId::from_i64(2))
            .insert(capture)
            .insert(refused)
            .insert(claim)
            .insert(refund)
            .insert(refunding)
            .insert(voiding),
        ChangeSet::new(SetId::from_i64(3)).replace(undoing, 1).replace(parked, 1),
    ]
}

#[tokio::test]
async fn a_file_of_format_3_is_read_as_it_was_written() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    raw(old.path()).execute_batch(GOLDEN).unwrap();
    let (old, new) = (open(old.path()), open(new.path()));
    let mut keys = Vec::new();
    for set in golden() {
        keys.extend(set.changes().iter().map(Change::key));
        new.commit(set).await.unwrap();
    }
    let rows = old.read(keys.clone()).await.unwrap();
    assert!(rows.iter().all(Option::is_some));
    assert_eq!(rows, new.read(keys).await.unwrap());
    for scan in [
        Scan::OperationsOn {
            tenant: TenantId::from_i64(3),
            charge: ChargeId::from_i64(702),
            after: None,
            limit: 9,
        },
        Scan::RefundsOf { tenant: TenantId::from_i64(3), before: None, limit: 9 },
        Scan::ParkedOf { tenant: TenantId::from_i64(4), before: None, limit: 9 },
    ] {
        let found = old.scan(scan.clone()).await.unwrap();
        assert!(!found.is_empty(), "{scan:?}");
        assert_eq!(found, new.scan(scan).await.unwrap());
    }
    let (was, is) = (old.feed(Position(0), 9).await.unwrap(), new.feed(Position(0), 9).await.unwrap());
    for (was, is) in was.iter().zip(&is) {
        assert_eq!(was.touched, is.touched);
    }
    assert_eq!(was.len(), is.len());
}

//! What format 4 makes of a file of format 3, and format 4 read as it was written.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::outbox::{Flow, History, Outbox, ParkReason, Payment, ProviderBinding, Saga};
use counterfoil_core::payments::charge::{FailureCode, PaymentFailure};
use counterfoil_core::payments::payout::{Payout, PayoutOrder, PayoutStatus};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{AccountId, HoldId, PayoutId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::conformance::fixtures::ledger::asset;
use counterfoil_store::{Change, ChangeSet, Due, Position, Row, Scan, Store};
use counterfoil_store_embedded::{EmbeddedStore, FORMAT, OpenError, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use support::{open, raw};
use tempfile::TempDir;

const NOON: Time = Time::from_ms(1_760_000_000_000);

fn version(dir: &Path) -> u32 {
    raw(dir).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// A file of format 3 with work under way and work that is parked.
fn format_3() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    raw(dir.path()).execute_batch(include_str!("golden/v3.sql")).unwrap();
    dir
}

#[tokio::test]
async fn a_file_for_which_there_is_no_room_is_left_as_it_was() {
    let dir = format_3();
    let pages: u32 = raw(dir.path()).query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let schema = "SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_schema ORDER BY name)";
    let before: String = raw(dir.path()).query_row(schema, [], |row| row.get(0)).unwrap();
    let full = Options { pages_max: Some(pages), ..Options::default() };
    let error = EmbeddedStore::open(dir.path(), full).expect_err("there is no room");
    assert!(matches!(error, OpenError::DiskFull), "{error:?}");
    let after: String = raw(dir.path()).query_row(schema, [], |row| row.get(0)).unwrap();
    assert_eq!((version(dir.path()), after), (3, before));
    drop(open(dir.path()));
    assert_eq!(version(dir.path()), FORMAT, "with room it goes on");
}

#[tokio::test]
async fn work_under_way_is_for_the_charge_it_was_for() {
    let dir = format_3();
    let old: Vec<(i64, i64)> = {
        let db = raw(dir.path());
        let mut rows = db.prepare("SELECT id, charge FROM outbox ORDER BY id").unwrap();
        rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    assert!(old.len() > 1 && old.iter().any(|(id, charge)| id != charge), "{old:?}");
    let store = open(dir.path());
    let found: Vec<Outbox> = store
        .scan(Scan::Outbox { after: None, limit: 9 })
        .await
        .unwrap()
        .into_iter()
        .map(|row| if let Row::Outbox(outbox) = row { outbox } else { panic!("{row:?}") })
        .collect();
    let now: Vec<(i64, i64)> = found
        .iter()
        .map(|outbox| match outbox.payment {
            Payment::Charge(charge) => (outbox.id.to_i64(), charge.to_i64()),
            Payment::Payout(payout) => panic!("{payout:?}"),
        })
        .collect();
    assert_eq!(now, old);
    let due = store.due(Due::Outbox, Time::MAX, 9).await.unwrap().len();
    assert_eq!(due, found.iter().filter(|outbox| outbox.parked.is_none()).count());
    let tally = store.tally(NOON).await.unwrap();
    assert_eq!(usize::try_from(tally.pending + tally.parked).unwrap(), old.len());
    assert_eq!(store.scan(Scan::Payouts { after: None, limit: 9 }).await, Ok(Vec::new()));
}

/// A file that format 4 wrote, as SQL.
const GOLDEN: &str = include_str!("golden/v4.sql");

/// The set it was written by.
fn golden() -> ChangeSet {
    let provider = ProviderBinding { profile: "simulator".into(), endpoint: "http://127.0.0.1:4242".into() };
    let payout = |number, tenant, minor, code, account| Payout {
        id: PayoutId::from_i64(number),
        tenant: TenantId::from_i64(tenant),
        order: Arc::new(PayoutOrder {
            amount: Money::new(minor, asset(code)).unwrap(),
            account: AccountId::from_i64(account),
            destination: None,
            description: None,
            metadata: BTreeMap::new(),
        }),
        status: PayoutStatus::Parked,
        provider: provider.clone(),
        provider_reference: None,
        failure: None,
        created_at: NOON,
        revision: 2,
    };
    let mut paid = Payout {
        status: PayoutStatus::Paid,
        provider_reference: Some("po_1".to_owned()),
        ..payout(901, 3, 800, "USD", 7)
    };
    let order = Arc::make_mut(&mut paid.order);
    order.destination = Some(Masked::new("ba_1".to_owned()));
    order.description = Some(Masked::new("weekly".to_owned()));
    order.metadata.insert("order".to_owned(), Masked::new("1001".to_owned()));
    let parked = payout(902, 3, 999_999_999_999_999, "JPY", 8);
    let decline_code = Some("account_closed".to_owned());
    let failed = Payout {
        status: PayoutStatus::Failed,
        provider_reference: Some("po_3".to_owned()),
        failure: Some(PaymentFailure { code: FailureCode::PayoutFailed, decline_code }),
        ..payout(903, 4, 1, "USD", 7)
    };
    let work = Outbox {
        id: parked.id.into(),
        payment: Payment::Payout(parked.id),
        saga: Saga {
            flow: Flow::Payout,
            version: 1,
            progress: SagaProgress { step: 1, way: Direction::Forward },
        },
        hold: Some(HoldId::from_i64(902)),
        claim: ClaimId::from_digest(Digest::from_bytes([0xab; 32])),
        tenant: parked.tenant,
        provider,
        due_at: Time::MAX,
        created_at: NOON,
        history: History {
            unknown: true,
            server_errors: 20,
            last_sent_at: NOON.plus(Span::from_ms(30_000)),
            ..History::begun(NOON)
        },
        parked: Some(ParkReason::NoEvidence),
        revision: 2,
    };
    ChangeSet::new(SetId::from_i64(1)).insert(paid).insert(parked).insert(failed).insert(work)
}

#[tokio::test]
async fn a_file_of_format_4_is_read_as_it_was_written() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    raw(old.path()).execute_batch(GOLDEN).unwrap();
    let (old, new) = (open(old.path()), open(new.path()));
    let keys: Vec<_> = golden().changes().iter().map(Change::key).collect();
    new.commit(golden()).await.unwrap();
    let rows = old.read(keys.clone()).await.unwrap();
    assert!(rows.iter().all(Option::is_some), "{rows:?}");
    assert_eq!(rows, new.read(keys).await.unwrap());
    let tenant = TenantId::from_i64(3);
    for scan in [
        Scan::PayoutsOf { tenant, before: None, limit: 9 },
        Scan::Payouts { after: None, limit: 9 },
        Scan::ParkedOf { tenant, before: None, limit: 9 },
    ] {
        let found = old.scan(scan.clone()).await.unwrap();
        assert!(!found.is_empty(), "{scan:?}");
        assert_eq!(found, new.scan(scan).await.unwrap());
    }
    let (was, is) = (old.feed(Position(0), 9).await.unwrap(), new.feed(Position(0), 9).await.unwrap());
    assert_eq!(was[0].touched, is[0].touched);
}

//! Files of older formats: brought forward whole or left as they were, and format 2 read as it was written.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::{Claim, Resource};
use counterfoil_core::ledger::account::{Account, AccountCode, AccountName, Guard, Side};
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::balance::{Balance, Delta, Guarded};
use counterfoil_core::ledger::chart::{ROLES, Role};
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::ledger::snapshot::{Cursor, FeedReader, Snapshot};
use counterfoil_core::ledger::totals::Totals;
use counterfoil_core::ledger::transaction::{Layer, Leg, Legs, Reversal, Transaction, TransactionKind};
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::types::id::{AccountId, ChargeId, HoldId, SetId, TenantId, TransactionId};
use counterfoil_core::types::limits::CHANGES_PER_SET_MAX;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use counterfoil_store::conformance::fixtures::ledger::asset;
use counterfoil_store::{
    Change, ChangeSet, Committed, EntryPage, Move, Position, Row, RowKey, Scan, Store, Upto,
};
use counterfoil_store_embedded::{EmbeddedStore, FORMAT, OpenError, Options};
use std::collections::BTreeMap;
use std::path::Path;
use support::rows::work;
use support::{one_charge, open, raw, whose};
use tempfile::TempDir;

const NOON: i64 = 1_760_000_000_000;
const ACME: i64 = 1;
const ACME_MAIN: i64 = 1_000;
const BETA: i64 = 2;
const BETA_MAIN: i64 = 2_000;

/// A file of format 1 with two tenants and these charges, each in a commit of its own.
fn format_1(charges: &[(i64, i64, &str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let db = raw(dir.path());
    db.execute_batch(include_str!("../src/schema/v1.sql")).unwrap();
    db.execute_batch(&format!(
        "PRAGMA application_id = 1131374191; PRAGMA user_version = 1;
         INSERT INTO meta VALUES ('secret', zeroblob(32));
         INSERT INTO tenants VALUES ('acme', {ACME}, {ACME_MAIN}, NULL, 5, 1), ('beta', {BETA}, {BETA_MAIN}, 'required', 6, 1);"
    ))
    .unwrap();
    db.execute_batch("BEGIN").unwrap();
    for (position, (id, tenant, asset, status)) in (1_i64..).zip(charges) {
        let main = if *tenant == ACME { ACME_MAIN } else { BETA_MAIN };
        db.execute(
            "INSERT INTO charges VALUES (?1, ?2, ?3, ?4, 'pm_card_visa', 1, ?5, NULL, '{}', ?6, 'stripe', NULL, NULL, NULL, ?7, 2)",
            (id, tenant, id * 100, asset, main, status, NOON + id),
        )
        .unwrap();
        db.execute("INSERT INTO commits VALUES (?1, ?1, ?2, x'')", (position, NOON + position)).unwrap();
    }
    db.execute_batch("COMMIT").unwrap();
    dir
}

/// Charges of two tenants in several assets and every status.
fn several() -> TempDir {
    format_1(&[
        (10, ACME, "USD", "succeeded"),
        (11, ACME, "EUR", "succeeded"),
        (12, BETA, "EUR", "processing"),
        (13, ACME, "USD", "failed"),
        (14, ACME, "JPY", "parked"),
        (15, BETA, "EUR", "requires_capture"),
        (16, ACME, "USD", "succeeded"),
        (17, BETA, "USD", "succeeded"),
    ])
}

async fn account(store: &EmbeddedStore, tenant: i64, role: Role, code: &str) -> AccountId {
    let key = RowKey::Name(TenantId::from_i64(tenant), role.code(asset(code)).unwrap());
    match store.read(vec![key]).await.unwrap().remove(0) {
        Some(Row::Name(AccountName { account, .. })) => account,
        other => panic!("{tenant} has no {role:?} in {code}: {other:?}"),
    }
}

async fn charge(store: &EmbeddedStore, number: i64) -> Charge {
    match whose(store, |tenant| RowKey::Charge(tenant, ChargeId::from_i64(number))).await {
        Some(Row::Charge(charge)) => charge,
        other => panic!("{number}: {other:?}"),
    }
}

async fn transactions(store: &EmbeddedStore) -> Vec<Transaction> {
    let scan = store.scan(Scan::Transactions { after: None, limit: 1_000 }).await.unwrap();
    scan.into_iter()
        .map(|row| match row {
            Row::Transaction(transaction) => transaction,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn version(dir: &Path) -> u32 {
    raw(dir).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_file_that_cannot_be_brought_forward_is_left_as_it_was() {
    let dir = format_1(&[(10, ACME, "USD", "succeeded"), (11, ACME, "no asset", "succeeded")]);
    let schema = "SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_schema ORDER BY name)";
    let before: String = raw(dir.path()).query_row(schema, [], |row| row.get(0)).unwrap();
    for _ in 0..2 {
        let error = EmbeddedStore::open(dir.path(), Options::default()).expect_err("an asset nobody knows");
        assert!(matches!(&error, OpenError::Corrupt(why) if why.contains("charge 11")), "{error:?}");
        assert_eq!(version(dir.path()), 1);
        let after: String = raw(dir.path()).query_row(schema, [], |row| row.get(0)).unwrap();
        assert_eq!(after, before);
    }
    let reader = EmbeddedStore::open_read_only(dir.path()).expect_err("an older format");
    assert!(matches!(reader, OpenError::OlderFormat { found: 1, known: FORMAT }), "{reader:?}");
}

#[tokio::test]
async fn every_captured_charge_gets_its_transaction_and_no_other() {
    let dir = several();
    let store = open(dir.path());
    let mut expected = Vec::new();
    for (number, tenant, code) in [(10, ACME, "USD"), (11, ACME, "EUR"), (16, ACME, "USD"), (17, BETA, "USD")]
    {
        let receivable = account(&store, tenant, Role::Receivable, code).await;
        let payable = account(&store, tenant, Role::Payable, code).await;
        let legs = Legs::transfer(receivable, payable, number * 100, asset(code), Layer::Posted);
        expected.push(Transaction {
            id: TransactionId::from_i64(number),
            tenant: TenantId::from_i64(tenant),
            kind: TransactionKind::Charge(ChargeId::from_i64(number)),
            legs: legs.unwrap(),
            metadata: BTreeMap::new(),
            at: Time::from_ms(NOON + number),
        });
    }
    assert_eq!(transactions(&store).await, expected);
}

#[tokio::test]
async fn sums_of_the_accounts_are_the_captured_charges() {
    let dir = several();
    let store = open(dir.path());
    for (tenant, code, captured, entries) in [
        (ACME, "USD", 2_600, 2),
        (ACME, "EUR", 1_100, 1),
        (ACME, "JPY", 0, 0),
        (BETA, "EUR", 0, 0),
        (BETA, "USD", 1_700, 1),
    ] {
        for role in ROLES {
            let account = account(&store, tenant, role, code).await;
            let totals = store
                .fold(TenantId::from_i64(tenant), account, Position::START, Upto::Now)
                .await
                .unwrap()
                .totals;
            let expected = match role {
                Role::Receivable => Totals { debits: captured, entries, ..Totals::default() },
                Role::Payable => Totals { credits: captured, entries, ..Totals::default() },
                Role::Fees | Role::Rounding | Role::Suspense | Role::Exchange => Totals::default(),
            };
            assert_eq!(totals, expected, "{tenant} {role:?} {code}");
        }
    }
}

#[tokio::test]
async fn the_main_account_is_payable_in_the_first_asset_and_every_charge_credits_an_account() {
    let dir = several();
    let store = open(dir.path());
    assert_eq!(account(&store, ACME, Role::Payable, "USD").await.to_i64(), ACME_MAIN);
    assert_eq!(account(&store, BETA, Role::Payable, "EUR").await.to_i64(), BETA_MAIN);
    for (number, tenant, code, revision) in [
        (10, ACME, "USD", 2),
        (11, ACME, "EUR", 3),
        (12, BETA, "EUR", 2),
        (13, ACME, "USD", 2),
        (14, ACME, "JPY", 3),
        (15, BETA, "EUR", 2),
        (16, ACME, "USD", 2),
        (17, BETA, "USD", 3),
    ] {
        let charge = charge(&store, number).await;
        assert_eq!(charge.order.destination, account(&store, tenant, Role::Payable, code).await, "{number}");
        assert_eq!(charge.revision, revision, "{number}");
    }
    drop(store);
    let moved = raw(dir.path()).execute("UPDATE charges SET destination = 9", []);
    assert!(moved.is_err_and(|error| error.to_string().contains("never changes")));
}

#[tokio::test]
async fn charts_are_whole_and_their_numbers_their_own() {
    let dir = several();
    let store = open(dir.path());
    let rows = store.scan(Scan::Accounts { after: None, limit: 1_000 }).await.unwrap();
    assert_eq!(rows.len(), 5 * ROLES.len());
    let key = RowKey::Account(TenantId::from_i64(BETA), account(&store, BETA, Role::Fees, "USD").await);
    let expected = Account {
        id: account(&store, BETA, Role::Fees, "USD").await,
        tenant: TenantId::from_i64(BETA),
        code: Role::Fees.code(asset("USD")).unwrap(),
        asset: asset("USD"),
        normal: Side::Debit,
        guard: Guard::default(),
        shards: 1,
        widest: 1,
        metadata: BTreeMap::new(),
        created_at: Time::from_ms(NOON + 17),
        revision: 1,
    };
    assert_eq!(store.read(vec![key]).await.unwrap(), [Some(expected.into())]);
}

#[tokio::test]
async fn the_feed_tells_of_everything_in_sets_of_the_usual_size() {
    let charges: Vec<_> = (1..=500).map(|number| (number + 5_000, ACME, "EUR", "succeeded")).collect();
    let dir = format_1(&charges);
    let store = open(dir.path());
    let feed = store.feed(Position(500), 1_000).await.unwrap();
    assert!(feed.len() > 5, "{}", feed.len());
    let mut told = Vec::new();
    for (position, commit) in (501..).zip(&feed) {
        assert_eq!(commit.receipt.position, Position(position));
        assert_eq!(commit.receipt.at, Time::from_ms(NOON + 500), "the time of the last commit");
        assert!((1..=CHANGES_PER_SET_MAX).contains(&commit.touched.len()), "{}", commit.touched.len());
        assert_eq!(store.committed(commit.set).await, Ok(Some(commit.receipt)));
        told.extend(commit.touched.iter().map(|key| (key.clone(), commit.receipt)));
    }
    assert_eq!(told.len(), 2 * ROLES.len() + 500);
    assert!(
        store
            .read(told.iter().map(|(key, _)| key.clone()).collect())
            .await
            .unwrap()
            .iter()
            .all(Option::is_some)
    );
    let (acme, main) = (TenantId::from_i64(ACME), AccountId::from_i64(ACME_MAIN));
    let entries = store.entries(acme, main, EntryPage::After(Position(0)), 1_000).await;
    for entry in entries.unwrap() {
        let (_, receipt) = told
            .iter()
            .find(|(key, _)| *key == RowKey::Transaction(acme, entry.transaction))
            .expect("it is told");
        assert_eq!((entry.position, entry.at), (receipt.position, receipt.at));
    }
    let next = store.commit(one_charge(&store, 9_999)).await.unwrap();
    assert_eq!(next.position.0, 500 + u64::try_from(feed.len()).unwrap() + 1);
}

#[tokio::test]
async fn a_file_without_charges_gets_no_accounts_and_no_commit() {
    let dir = format_1(&[]);
    let store = open(dir.path());
    assert_eq!(store.feed(Position(0), 10).await, Ok(Vec::new()));
    assert_eq!(store.scan(Scan::Accounts { after: None, limit: 10 }).await, Ok(Vec::new()));
    let tenants = store.scan(Scan::Tenants).await.unwrap();
    assert!(
        matches!(&tenants[..], [Row::Tenant(acme), Row::Tenant(beta)]
        if acme.id.to_i64() == ACME && beta.created_at == Time::from_ms(6)),
        "{tenants:?}"
    );
    drop(store);
    assert_eq!(version(dir.path()), FORMAT);
}

/// A file that format 2 wrote, as SQL.
const GOLDEN: &str = include_str!("golden/v2.sql");

/// The sets it was written by.
fn golden() -> Vec<ChangeSet> {
    let (at, usd, points) = (Time::from_ms(NOON), asset("USD"), asset("POINTS"));
    let tenant = TenantId::from_i64(1);
    let (rich, poor) = (AccountId::from_i64(501), AccountId::from_i64(502));
    let metadata = BTreeMap::from([("order".to_owned(), Masked::new("1001".to_owned()))]);
    let account = |id, code: &str, guard| Account {
        id,
        tenant,
        code: AccountCode::parse(code).unwrap(),
        asset: usd,
        normal: Side::Credit,
        guard,
        shards: 2,
        widest: 4,
        metadata: metadata.clone(),
        created_at: at,
        revision: 1,
    };
    let guarded = account(rich, "wallet:rich", Guard { floor: Some(-50), cap: Some(1_000_000) });
    let plain = account(poor, "wallet:poor", Guard::default());
    let transaction = |number, kind, legs: Result<Legs, _>| Transaction {
        id: TransactionId::from_i64(number),
        tenant,
        kind,
        legs: legs.unwrap(),
        metadata: metadata.clone(),
        at,
    };
    let transfer = Legs::transfer(poor, rich, 700, usd, Layer::Posted);
    let reserve = |amount| Legs::transfer(rich, poor, amount, usd, Layer::Pending);
    let hold = |number, amount| Hold {
        id: HoldId::from_i64(number),
        tenant,
        from: rich,
        to: poor,
        amount,
        asset: usd,
        expires_at: Time::from_ms(NOON + 60_000),
        state: HoldState::Pending,
        metadata: metadata.clone(),
        created_at: at,
        revision: 1,
    };
    let posting = TransactionId::from_i64(605);
    let leg = |account, side, layer, amount| Leg { account, side, layer, amount, asset: usd };
    let posted = Legs::balanced(vec![
        leg(rich, Side::Debit, Layer::Released, 30),
        leg(poor, Side::Credit, Layer::Released, 30),
        leg(rich, Side::Debit, Layer::Posted, 20),
        leg(poor, Side::Credit, Layer::Posted, 20),
    ]);
    let both = Guarded { floor: true, cap: true };
    let shift = |delta| Move { tenant, account: rich, shard: 0, guarded: both, delta };
    let totals =
        Totals { debits: i128::MAX, credits: i128::MIN, debits_pending: -1, credits_pending: 1, entries: 7 };
    let claim = Claim { makes: Resource::Transfer, ..work(601, at).claim };
    vec![
        ChangeSet::new(SetId::from_i64(1))
            .insert(guarded.clone())
            .insert(AccountName { tenant, code: guarded.code, account: rich })
            .insert(plain.clone())
            .insert(AccountName { tenant, code: plain.code, account: poor })
            .insert(AssetDefinition { tenant, asset: points, exponent: 9, created_at: at })
            .insert(Balance {
                floor: Some(-50),
                cap: Some(1_000_000),
                revision: 1,
                ..Balance::empty(tenant, rich, 0, both)
            }),
        ChangeSet::new(SetId::from_i64(2))
            .insert(claim)
            .insert(transaction(601, TransactionKind::Transfer, transfer.clone()))
            .insert(transaction(
                602,
                TransactionKind::Reversal(TransactionId::from_i64(601)),
                transfer.map(|legs| legs.reversed()),
            ))
            .insert(Reversal {
                tenant,
                original: TransactionId::from_i64(601),
                by: TransactionId::from_i64(602),
            })
            .insert(transaction(603, TransactionKind::Held(HoldId::from_i64(603)), reserve(40)))
            .insert(hold(603, 40))
            .insert(transaction(604, TransactionKind::Held(HoldId::from_i64(604)), reserve(30)))
            .insert(hold(604, 30))
            .shift(shift(Delta { posted: 700, outgoing: 70, incoming: 0, floor: -10, cap: 0 })),
        ChangeSet::new(SetId::from_i64(3))
            .insert(transaction(605, TransactionKind::HoldPosted(HoldId::from_i64(604)), posted))
            .replace(hold(604, 30).ended(HoldState::Posted { amount: 20, by: posting }), 1)
            .shift(shift(Delta { posted: -20, outgoing: -30, ..Delta::default() }))
            .insert(Snapshot { tenant, account: rich, position: Position(2), at, totals })
            .insert(Cursor { reader: FeedReader::Projection, position: Position(2), at, revision: 1 }),
    ]
}

#[tokio::test]
async fn a_file_of_format_2_is_read_as_it_was_written() {
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
    let told = |feed: Vec<Committed>| feed.into_iter().map(|commit| commit.touched).collect::<Vec<_>>();
    let feeds = (old.feed(Position(0), 9).await.unwrap(), new.feed(Position(0), 9).await.unwrap());
    assert_eq!(told(feeds.0), told(feeds.1));
    for account in [501, 502].map(AccountId::from_i64) {
        let (was, is) = (
            old.fold(TenantId::from_i64(1), account, Position(0), Upto::Now).await,
            new.fold(TenantId::from_i64(1), account, Position(0), Upto::Now).await,
        );
        assert_eq!(was.unwrap().totals, is.unwrap().totals);
    }
}

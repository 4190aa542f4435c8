//! The rules against raw SQL, which also hold for the owner: a balanced, append-only journal,
//! claims that only move forward, and row-level security between tenants.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod claims;
mod journal;
mod partitions;
mod rows;
#[path = "../support/mod.rs"]
mod support;

use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::ledger::snapshot::{Cursor, FeedReader};
use counterfoil_core::outbox::{Flow, History, Outbox, Payment, Saga};
use counterfoil_core::payments::charge::{Charge, ChargeStatus, ChargeSums};
use counterfoil_core::payments::operation::{self, Operation};
use counterfoil_core::payments::payout::{self, Payout};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_store::conformance::fixtures::ledger::{
    BOTH, account, definition, hold, moving, name, opened, posted, reversal, snapshot, transfer,
};
use counterfoil_store::conformance::fixtures::{
    TENANT, api_key, at, charge, claim, opening, operation, outbox, payout, payout_work, set, settled, slot,
    tenant,
};
use counterfoil_store::{CommitError, Position, RowKey, Store};
use counterfoil_testkit::postgres::Database;
use support::{fresh, raw};
use tokio_postgres::Client;

/// A database with rows in every table: a settled charge (1) with an ended refund (6) and a running
/// one (7), and a charge in progress (3).
async fn filled() -> (Client, Database) {
    let (store, database) = fresh().await;
    store.commit(opening(1)).await.unwrap();
    let done = Claim { revision: 2, state: ClaimState::Completed(settled(b"{}", at(9))), ..claim(1) };
    let sums = ChargeSums { captured: 1_250, refunded: 100, refunding: 100 };
    let charged = Charge { status: ChargeStatus::PartiallyRefunded, sums, revision: 2, ..charge(1) };
    let key = RowKey::Outbox(TENANT, charge(1).id.into());
    store.commit(set(2).replace(done, 1).replace(charged, 1).remove(key, 1)).await.unwrap();
    store.commit(opening(3)).await.unwrap();
    let ended = Operation { status: operation::OperationStatus::Succeeded, ..operation(6, 1) };
    let refunding = Outbox {
        id: operation(7, 1).id.into(),
        payment: Payment::Charge(charge(1).id),
        saga: Saga {
            flow: Flow::Refund,
            version: 1,
            progress: SagaProgress { step: 1, way: Direction::Forward },
        },
        history: History { generation: 3, ..History::begun(at(0)) },
        ..outbox(7)
    };
    store.commit(set(6).insert(ended).insert(operation(7, 1)).insert(refunding)).await.unwrap();
    let paid = Payout { status: payout::PayoutStatus::Paid, ..payout(9) };
    store.commit(set(8).insert(paid).insert(payout(10)).insert(payout_work(10))).await.unwrap();
    let ledger = set(4)
        .insert(account(1))
        .insert(name(1))
        .insert(definition("POINTS"))
        .insert(opened(1, Some(0), Some(9)))
        .insert(transfer(1, 1, 2, 50))
        .insert(reversal(1))
        .insert(hold(1))
        .insert(snapshot(1, 4))
        .insert(api_key(1))
        .insert(tenant("acme", 1))
        .insert(Cursor { reader: FeedReader::Projection, position: Position(4), at: at(4), revision: 1 })
        .insert(slot(1));
    store.commit(ledger).await.unwrap();
    store.commit(set(5).shift(moving(1, BOTH, posted(5)))).await.unwrap();
    (raw(&database.url()).await, database)
}

/// Runs a script, which must fail with a message that contains `words`.
async fn refused(db: &Client, script: &str, words: &str) {
    let answer = db.batch_execute(script).await;
    let error = answer.expect_err(script);
    let said = error.as_db_error().expect("the server refused").message().to_owned();
    assert!(said.contains(words), "{script}: {said}");
    db.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test]
async fn history_is_append_only_even_for_its_owner() {
    let (db, _database) = filled().await;
    for replica in [false, true] {
        let role = if replica { "replica" } else { "origin" };
        db.batch_execute(&format!("SET session_replication_role = {role}")).await.unwrap();
        for (table, column) in [
            ("journal_transactions", "at"),
            ("journal_entries", "amount"),
            ("audit_log", "at"),
            ("commit_groups", "at"),
            ("account_names", "account"),
            ("assets", "exponent"),
            ("reversals", "undone_by"),
        ] {
            refused(&db, &format!("UPDATE {table} SET {column} = {column} + 1"), "append-only").await;
            refused(&db, &format!("DELETE FROM {table}"), "append-only").await;
            refused(&db, &format!("TRUNCATE {table} CASCADE"), "append-only").await;
        }
        for table in [
            "charges",
            "operations",
            "payouts",
            "payouts",
            "accounts",
            "balances",
            "holds",
            "tenants",
            "api_keys",
            "slots",
            "head",
            "meta",
        ] {
            refused(&db, &format!("DELETE FROM {table}"), "never removed").await;
            refused(&db, &format!("TRUNCATE {table}"), "never removed").await;
        }
        for table in ["claims", "outbox", "snapshots"] {
            refused(&db, &format!("TRUNCATE {table}"), "never emptied").await;
        }
    }
}

/// Every status with its allowed successors, a copy of the core's table.
const MOVES: [(&str, &[&str]); 8] = [
    (
        "processing",
        &[
            "processing",
            "requires_capture",
            "succeeded",
            "failed",
            "voided",
            "refunded",
            "partially_refunded",
            "parked",
        ],
    ),
    (
        "parked",
        &[
            "processing",
            "requires_capture",
            "succeeded",
            "failed",
            "voided",
            "refunded",
            "partially_refunded",
            "parked",
        ],
    ),
    ("requires_capture", &["requires_capture", "succeeded", "voided", "parked"]),
    ("succeeded", &["succeeded", "partially_refunded", "refunded"]),
    ("partially_refunded", &["partially_refunded", "refunded"]),
    ("failed", &["failed"]),
    ("voided", &["voided"]),
    ("refunded", &["refunded"]),
];

#[tokio::test]
async fn charges_move_as_the_core_says() {
    let (store, database) = fresh().await;
    let db = raw(&database.url()).await;
    for (number, (from, allowed)) in (1..).zip(MOVES) {
        let status = ChargeStatus::parse(from).unwrap();
        store.commit(set(number).insert(Charge { status, ..charge(number) })).await.unwrap();
        for (to, _) in MOVES {
            let sql = format!(
                "BEGIN; UPDATE charges SET status = '{to}', revision = 2 WHERE id = {number}; ROLLBACK"
            );
            assert_eq!(
                allowed.contains(&to),
                status.may_become(ChargeStatus::parse(to).unwrap()),
                "{from} to {to}"
            );
            if allowed.contains(&to) {
                db.batch_execute(&sql).await.unwrap();
            } else {
                refused(&db, &sql, "stays settled").await;
            }
        }
    }
    refused(&db, "UPDATE charges SET status = 'lost', revision = 2 WHERE id = 1", "check constraint").await;
}

#[tokio::test]
async fn captured_and_refunded_amounts_stay_sound() {
    let (db, _database) = filled().await;
    for (sums, words) in [
        ("captured = 1249", "never becomes less"),
        ("refunded = 99", "never becomes less"),
        ("refunded = 1151", "given_back_is_not_more_than_taken"),
        ("refunding = 1151", "given_back_is_not_more_than_taken"),
        ("refunding = -1", "given_back_is_not_more_than_taken"),
        ("refunding = 9223372036854775807", "given_back_is_not_more_than_taken"),
    ] {
        let sql = format!("UPDATE charges SET {sums}, revision = 9 WHERE id = 1");
        refused(&db, &sql, words).await;
    }
    let whole =
        "UPDATE charges SET refunded = 1250, refunding = 0, status = 'refunded', revision = 9 WHERE id = 1";
    assert_eq!(db.execute(whole, &[]).await.unwrap(), 1);
    for wallet in ["9, NULL", "NULL, 5", "9, 0", "9, 50"] {
        let columns = "id, tenant, amount_minor, asset, payment_method, capture, destination, metadata, status, \
             provider, endpoint, captured, refunded, refunding, created_at, revision, wallet_account, wallet_amount";
        let sql = format!(
            "INSERT INTO charges ({columns}) VALUES \
             (50, 1, 50, 'USD', 'pm', true, 9, '{{}}', 'processing', 'p', 'e', 0, 0, 0, 1, 1, {wallet})"
        );
        refused(&db, &sql, "a_wallet_pays_a_part").await;
    }
}

#[tokio::test]
async fn payouts_end_once_and_keep_their_order() {
    let (db, _database) = filled().await;
    for change in [
        "status = 'paid'",
        "id = 11, revision = 9",
        "tenant = 2, revision = 9",
        "amount_minor = 801, revision = 9",
        "asset = 'EUR', revision = 9",
        "account = 8, revision = 9",
        "destination = 'ba_2', revision = 9",
        "description = 'x', revision = 9",
        "metadata = '{\"a\":\"b\"}', revision = 9",
        "provider = 'adyen', revision = 9",
        "endpoint = 'http://elsewhere', revision = 9",
        "created_at = 1, revision = 9",
    ] {
        refused(&db, &format!("UPDATE payouts SET {change} WHERE id = 10"), "ends once").await;
    }
    for change in ["status = 'processing'", "status = 'failed'", "provider_reference = 'po_1'"] {
        let sql = format!("UPDATE payouts SET {change}, revision = 9 WHERE id = 9");
        refused(&db, &sql, "ends once").await;
    }
    refused(&db, "UPDATE payouts SET status = 'voided', revision = 9 WHERE id = 10", "check constraint")
        .await;
    for payments in ["charge = 10, payout = NULL", "charge = 10", "payout = 9"] {
        let sql = format!("UPDATE outbox SET {payments}, revision = 9 WHERE id = 10");
        refused(&db, &sql, "work keeps its payment").await;
    }
    let columns = "claim, tenant, profile, endpoint, due_at, created_at, generation, idle_calls, unknown, \
        server_errors, first_sent_at, last_sent_at, revision, flow, version, step, way";
    for payments in ["NULL::bigint, NULL::bigint", "1, 10"] {
        let sql = format!(
            "INSERT INTO outbox (id, charge, payout, {columns}) SELECT 77, {payments}, {columns} FROM outbox WHERE id = 10"
        );
        refused(&db, &sql, "work_is_for_one_payment").await;
    }
    for sql in [
        "UPDATE payouts SET status = 'parked', revision = 2 WHERE id = 10",
        "UPDATE payouts SET status = 'failed', failure = 'payout_failed', revision = 3 WHERE id = 10",
        "UPDATE outbox SET generation = 2, revision = 2 WHERE id = 10",
    ] {
        assert_eq!(db.execute(sql, &[]).await.unwrap(), 1, "{sql}");
    }
}

#[tokio::test]
async fn operations_end_once_and_work_keeps_its_saga() {
    let (db, _database) = filled().await;
    for (change, id) in [
        ("status = 'failed', revision = 9", 6),
        ("provider_reference = 're_2', revision = 9", 6),
        ("status = 'succeeded'", 7),
        ("tenant = 9, revision = 9", 7),
        ("charge = 9, revision = 9", 7),
        ("kind = 'void', revision = 9", 7),
        ("amount_minor = 9, revision = 9", 7),
        ("asset = 'EUR', revision = 9", 7),
        ("created_at = 9, revision = 9", 7),
        ("id = 9, revision = 9", 7),
    ] {
        refused(&db, &format!("UPDATE operations SET {change} WHERE id = {id}"), "ends once").await;
    }
    refused(&db, "UPDATE operations SET status = 'voided', revision = 9 WHERE id = 7", "check constraint")
        .await;
    for change in [
        "generation = 2, revision = 9",
        "generation = 4",
        "charge = 9, revision = 9",
        "id = 9, revision = 9",
        "flow = 'void', revision = 9",
        "version = 2, revision = 9",
        "endpoint = 'other', revision = 9",
        "profile = 'other', revision = 9",
    ] {
        refused(&db, &format!("UPDATE outbox SET {change} WHERE id = 7"), "keeps its payment").await;
    }
    // Another step or direction begins with a new provider key, so its generation may fall.
    for sql in [
        "UPDATE outbox SET step = 2, generation = 1, revision = 2 WHERE id = 7",
        "UPDATE outbox SET generation = 2, revision = 3 WHERE id = 7",
        "UPDATE outbox SET way = 'back', generation = 1, revision = 4 WHERE id = 7",
        "UPDATE operations SET status = 'parked', revision = 2 WHERE id = 7",
        "UPDATE operations SET status = 'failed', failure = 'card_declined', revision = 3 WHERE id = 7",
    ] {
        assert_eq!(db.execute(sql, &[]).await.unwrap(), 1, "{sql}");
    }
}

#[tokio::test]
async fn a_reader_sees_one_tenant_and_a_writer_cannot_rewrite_history() {
    let (db, _database) = filled().await;
    let counts = async |table: &str| -> i64 {
        db.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0)
    };
    let tables = [
        "charges",
        "operations",
        "payouts",
        "outbox",
        "claims",
        "audit_log",
        "accounts",
        "journal_transactions",
        "balances",
        "journal_entries",
        "holds",
        "snapshots",
        "reversals",
        "account_names",
        "assets",
    ];
    db.batch_execute("SET ROLE counterfoil_reader").await.unwrap();
    for table in tables {
        assert_eq!(counts(table).await, 0, "{table} without a tenant");
    }
    db.batch_execute("SET counterfoil.tenant = '2'").await.unwrap();
    for table in tables {
        assert_eq!(counts(table).await, 0, "{table} of another tenant");
    }
    db.batch_execute("SET counterfoil.tenant = '1'").await.unwrap();
    for table in tables {
        assert!(counts(table).await > 0, "{table} of the tenant");
    }
    for sql in [
        "SELECT value FROM meta",
        "SELECT 1 FROM api_keys",
        "DELETE FROM outbox",
        "UPDATE charges SET revision = 9",
        "UPDATE operations SET revision = 9",
    ] {
        refused(&db, sql, "permission denied").await;
    }
    db.batch_execute("RESET ROLE; SET ROLE counterfoil_writer").await.unwrap();
    assert!(counts("charges").await > 0);
    for sql in [
        "UPDATE journal_entries SET amount = 1",
        "DELETE FROM audit_log",
        "DELETE FROM charges",
        "DELETE FROM operations",
        "DELETE FROM payouts",
        "UPDATE commit_groups SET at = 1",
    ] {
        refused(&db, sql, "permission denied").await;
    }
}

#[tokio::test]
async fn a_server_needs_no_more_than_the_writers_role() {
    let database = support::database().await;
    let db = raw(&database.url()).await;
    let login = format!("login_{}", database.name());
    db.batch_execute(&format!("CREATE ROLE {login} LOGIN IN ROLE counterfoil_writer")).await.unwrap();
    let store = support::open(&database.url().replace("counterfoil@", &format!("{login}@"))).await;
    store.commit(opening(1)).await.unwrap();
    let done = Claim { revision: 2, state: ClaimState::Completed(settled(b"{}", at(9))), ..claim(1) };
    let settling = set(2).replace(done, 1).remove(RowKey::Outbox(TENANT, charge(1).id.into()), 1);
    store.commit(settling.insert(transfer(1, 1, 2, 50)).insert(snapshot(1, 4))).await.unwrap();
    let last = set(3)
        .remove(RowKey::Claim(TENANT, claim(1).id), 2)
        .remove(snapshot_key(), 1)
        .insert(opened(1, Some(0), None))
        .insert(slot(1));
    store.commit(last).await.unwrap();
    store.commit(set(4).shift(moving(1, BOTH, posted(5)))).await.unwrap();
    store.commit(set(6).insert(operation(6, 1))).await.unwrap();
    store.commit(set(7).replace(Operation { revision: 2, ..operation(6, 1) }, 1)).await.unwrap();
    store.commit(set(8).insert(payout(9)).insert(payout_work(9))).await.unwrap();
    store.commit(set(9).replace(Payout { revision: 2, ..payout(9) }, 1)).await.unwrap();
    // The judge refuses the set before a missing right could.
    let removal = set(5).remove(RowKey::Transaction(TENANT, transfer(1, 1, 2, 50).id), 1);
    assert!(matches!(store.commit(removal).await, Err(CommitError::Refused(_))));
    store.close().await;
    db.batch_execute(&format!("DROP ROLE {login}")).await.unwrap();
}

fn snapshot_key() -> RowKey {
    let snapshot = snapshot(1, 4);
    RowKey::Snapshot(snapshot.tenant, snapshot.account, snapshot.position)
}

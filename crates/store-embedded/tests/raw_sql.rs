//! Triggers hold against raw SQL: history is append-only, the journal balances, and states only
//! move forward.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::payments::operation::{Operation, OperationStatus};
use counterfoil_core::payments::payout::{self, Payout};
use counterfoil_store::Store;
use counterfoil_store::conformance::fixtures::ledger::{
    FLOOR, account, cursor, definition, hold, moving, name, posted, reversal, snapshot, transfer,
};
use counterfoil_store::conformance::fixtures::{operation, payout, set};
use rusqlite::Connection;
use support::rows::work;
use support::{open, raw};
use tempfile::TempDir;

const TABLES: [&str; 16] = [
    "claims",
    "charges",
    "operations",
    "payouts",
    "outbox",
    "audit_log",
    "commits",
    "accounts",
    "account_names",
    "assets",
    "balances",
    "journal_transactions",
    "journal_entries",
    "reversals",
    "holds",
    "snapshots",
];

/// A store with a settled charge (1), a charge at work (2), a refund under way (1) and one that is
/// done (2), and one row of every kind of the ledger.
async fn filled() -> (TempDir, Connection) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let (first, second) = (work(1, store.now()), work(2, store.now()));
    store.commit(first.opening(1)).await.unwrap();
    store.commit(first.settling(2, store.now(), bytes::Bytes::from_static(b"{}"))).await.unwrap();
    store.commit(second.opening(3)).await.unwrap();
    let ledger = set(4)
        .insert(account(1))
        .insert(name(1))
        .insert(definition("POINTS"))
        .insert(transfer(1, 2, 1, 500))
        .shift(moving(1, FLOOR, posted(500)))
        .insert(reversal(1))
        .insert(hold(1))
        .insert(snapshot(1, 4))
        .insert(cursor(4));
    store.commit(ledger).await.unwrap();
    let done = Operation { status: OperationStatus::Succeeded, ..operation(2, 1) };
    store.commit(set(5).insert(operation(1, 1)).insert(done)).await.unwrap();
    let paid = Payout { status: payout::PayoutStatus::Paid, ..payout(4) };
    store.commit(set(6).insert(payout(3)).insert(paid)).await.unwrap();
    drop(store);
    let db = raw(dir.path());
    (dir, db)
}

fn refused(db: &Connection, sql: &str, words: &str) {
    let before = dump(db);
    match db.execute(sql, []) {
        Err(error) => assert!(error.to_string().contains(words), "{sql}: {error}"),
        Ok(rows) => panic!("{sql} changed {rows} rows"),
    }
    assert_eq!(dump(db), before, "{sql}");
}

fn dump(db: &Connection) -> Vec<String> {
    let mut lines = Vec::new();
    for table in TABLES {
        let mut statement = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            lines.push(format!("{table}: {:?}", (0..columns).map(|at| row.get_ref(at)).collect::<Vec<_>>()));
        }
    }
    lines
}

#[tokio::test]
async fn the_logs_are_append_only() {
    let (_dir, db) = filled().await;
    for table in ["audit_log", "commits"] {
        for sql in [
            format!("DELETE FROM {table}"),
            format!("UPDATE {table} SET at = at + 1"),
            format!("INSERT OR REPLACE INTO {table} SELECT * FROM {table}"),
            format!("REPLACE INTO {table} SELECT * FROM {table} LIMIT 1"),
        ] {
            refused(&db, &sql, "append-only");
        }
    }
}

#[tokio::test]
async fn charges_stay_what_they_were_ordered_for() {
    let (_dir, db) = filled().await;
    refused(&db, "DELETE FROM charges WHERE id = 1", "never removed");
    for sql in [
        "UPDATE charges SET amount_minor = 1",
        "UPDATE charges SET asset = 'EUR', status = 'succeeded', revision = revision + 1",
        "UPDATE charges SET wallet_account = 9, wallet_amount = 1",
        "UPDATE charges SET provider = 'other'",
        "UPDATE charges SET endpoint = 'http://elsewhere'",
        "UPDATE charges SET tenant = 9",
        "UPDATE charges SET id = 9 WHERE id = 1",
    ] {
        refused(&db, sql, "never changes");
    }
}

#[tokio::test]
async fn charges_only_move_forward() {
    let (_dir, db) = filled().await;
    for sql in [
        "UPDATE charges SET status = 'parked' WHERE id = 2",
        "UPDATE charges SET working = 9, revision = revision - 1 WHERE id = 2",
        "UPDATE charges SET captured = captured - 1, revision = revision + 1 WHERE id = 1",
    ] {
        refused(&db, sql, "only moves forward");
    }
    let statuses = [
        ("processing", STATUSES.as_slice()),
        ("parked", &STATUSES),
        ("requires_capture", &["requires_capture", "succeeded", "voided", "parked"]),
        ("succeeded", &["succeeded", "partially_refunded", "refunded"]),
        ("partially_refunded", &["partially_refunded", "refunded"]),
        ("refunded", &["refunded"]),
        ("failed", &["failed"]),
        ("voided", &["voided"]),
    ];
    for (id, (from, allowed)) in (100_i64..).zip(statuses) {
        for (step, to) in (0_i64..).zip(STATUSES) {
            let id = 10 * id + step;
            let charge = "INSERT INTO charges SELECT ?1, tenant, amount_minor, asset, payment_method, capture, \
                destination, description, metadata, NULL, NULL, ?2, 0, 0, 0, NULL, provider, '', NULL, NULL, NULL, 1, 1 \
                FROM charges WHERE id = 2";
            db.execute(charge, (id, from)).unwrap();
            let sql = format!("UPDATE charges SET status = '{to}', revision = 2 WHERE id = {id}");
            if allowed.contains(&to) {
                assert_eq!(db.execute(&sql, []).unwrap(), 1, "{from} to {to}");
            } else {
                refused(&db, &sql, "only moves forward");
            }
        }
    }
}

const STATUSES: [&str; 8] = [
    "processing",
    "requires_capture",
    "succeeded",
    "failed",
    "voided",
    "refunded",
    "partially_refunded",
    "parked",
];

#[tokio::test]
async fn no_more_is_given_back_than_was_taken() {
    let (_dir, db) = filled().await;
    for sums in [
        "refunded = 1251",
        "refunding = 1251",
        "refunded = 1, refunding = 1250",
        "refunded = 9223372036854775807, refunding = 9223372036854775807",
        "refunding = -1",
    ] {
        let sql = format!("UPDATE charges SET {sums}, revision = revision + 1 WHERE id = 1");
        refused(&db, &sql, "CHECK constraint");
    }
    for sums in ["refunding = 1250", "refunding = 0, refunded = 1000", "refunding = 250"] {
        let sql = format!("UPDATE charges SET {sums}, revision = revision + 1 WHERE id = 1");
        assert_eq!(db.execute(&sql, []).unwrap(), 1, "{sql}");
    }
    let less = "UPDATE charges SET refunded = 999, revision = revision + 1 WHERE id = 1";
    refused(&db, less, "only moves forward");
}

#[tokio::test]
async fn a_wallet_pays_a_part_or_there_is_none() {
    let (_dir, db) = filled().await;
    let charge = |id: i64, wallet: &str| {
        format!(
            "INSERT INTO charges SELECT {id}, tenant, amount_minor, asset, payment_method, capture, destination, \
             description, metadata, {wallet}, status, 0, 0, 0, NULL, provider, '', NULL, NULL, NULL, 1, 1 \
             FROM charges WHERE id = 2"
        )
    };
    for wallet in ["9, NULL", "NULL, 9", "9, 0", "9, -1", "9, 1250"] {
        refused(&db, &charge(50, wallet), "CHECK constraint");
    }
    for (id, wallet) in (50..).zip(["NULL, NULL", "9, 1", "9, 1249"]) {
        assert_eq!(db.execute(&charge(id, wallet), []).unwrap(), 1, "{wallet}");
    }
}

#[tokio::test]
async fn work_keeps_its_saga_and_does_not_take_up_a_key_it_gave_up() {
    let (_dir, db) = filled().await;
    for column in ["id", "charge", "flow", "version", "profile", "endpoint"] {
        let sql = format!("UPDATE outbox SET {column} = {column}, revision = revision + 1");
        refused(&db, &sql, "never change");
    }
    refused(&db, "UPDATE outbox SET due_at = 1", "only moves forward");
    refused(&db, "UPDATE outbox SET way = 'sideways', revision = revision + 1", "CHECK constraint");
    let moves = |sql: &str| {
        assert_eq!(db.execute(sql, []).unwrap(), 1, "{sql}");
    };
    moves("UPDATE outbox SET generation = 3, revision = revision + 1");
    let fall = "UPDATE outbox SET generation = 1, revision = revision + 1";
    refused(&db, fall, "only moves forward");
    moves("UPDATE outbox SET generation = 1, step = 1, revision = revision + 1");
    moves("UPDATE outbox SET generation = 2, revision = revision + 1");
    moves("UPDATE outbox SET generation = 1, way = 'back', revision = revision + 1");
    moves("DELETE FROM outbox");
}

#[tokio::test]
async fn operations_end_once_and_stay_what_was_asked() {
    let (_dir, db) = filled().await;
    for column in ["id", "tenant", "charge", "kind", "amount_minor", "asset", "created_at"] {
        let sql = format!("UPDATE operations SET {column} = {column}, revision = revision + 1");
        refused(&db, &sql, "never changes");
    }
    refused(&db, "DELETE FROM operations", "never removed");
    refused(&db, "REPLACE INTO operations SELECT * FROM operations", "never removed");
    refused(&db, "UPDATE operations SET status = 'succeeded' WHERE id = 1", "ends once");
    let park = "UPDATE operations SET status = 'parked', revision = revision + 1 WHERE id = 1";
    assert_eq!(db.execute(park, []).unwrap(), 1);
    let fail = "UPDATE operations SET status = 'failed', failure = 'card_declined', revision = revision + 1 WHERE id = 1";
    assert_eq!(db.execute(fail, []).unwrap(), 1);
    for id in [1, 2] {
        for change in ["status = 'processing'", "provider_reference = 're_1'", "decline_code = NULL"] {
            let sql = format!("UPDATE operations SET {change}, revision = revision + 1 WHERE id = {id}");
            refused(&db, &sql, "ends once");
        }
    }
}

#[tokio::test]
async fn payouts_end_once_and_stay_what_was_asked() {
    let (_dir, db) = filled().await;
    let fixed =
        "id tenant amount_minor asset account destination description metadata provider endpoint created_at";
    for column in fixed.split(' ') {
        let sql = format!("UPDATE payouts SET {column} = {column}, revision = revision + 1");
        refused(&db, &sql, "never changes");
    }
    refused(&db, "DELETE FROM payouts", "never removed");
    refused(&db, "REPLACE INTO payouts SELECT * FROM payouts", "never removed");
    refused(&db, "UPDATE payouts SET status = 'paid' WHERE id = 3", "ends once");
    let park = "UPDATE payouts SET status = 'parked', revision = revision + 1 WHERE id = 3";
    assert_eq!(db.execute(park, []).unwrap(), 1);
    let fail = "UPDATE payouts SET status = 'failed', failure = 'payout_failed', revision = revision + 1 WHERE id = 3";
    assert_eq!(db.execute(fail, []).unwrap(), 1);
    for id in [3, 4] {
        for change in ["status = 'processing'", "provider_reference = 'po_1'", "decline_code = NULL"] {
            let sql = format!("UPDATE payouts SET {change}, revision = revision + 1 WHERE id = {id}");
            refused(&db, &sql, "ends once");
        }
    }
    let columns = "flow, version, step, way, claim, tenant, profile, endpoint, due_at, created_at, generation, \
        idle_calls, unknown, server_errors, first_sent_at, last_sent_at, revision";
    for payments in ["NULL, NULL", "2, 3"] {
        let sql = format!(
            "INSERT INTO outbox (id, charge, payout, {columns}) SELECT 77, {payments}, {columns} FROM outbox WHERE id = 2"
        );
        refused(&db, &sql, "CHECK");
    }
}

#[tokio::test]
async fn claims_only_move_forward() {
    let (_dir, db) = filled().await;
    for sql in [
        "UPDATE claims SET fence = 0, revision = revision + 1 WHERE subject = 2",
        "UPDATE claims SET revision = 0 WHERE subject = 2",
        "UPDATE claims SET attempts = 9 WHERE subject = 2",
        "UPDATE claims SET subject = 9, revision = revision + 1, fence = 9 WHERE subject = 2",
        "UPDATE claims SET id = zeroblob(32), revision = revision + 1 WHERE subject = 2",
        "UPDATE claims SET state = 'in_flight', revision = revision + 1 WHERE subject = 1",
        "UPDATE claims SET body = NULL, revision = revision + 1 WHERE subject = 1",
        "UPDATE claims SET subject = 9, revision = revision + 1 WHERE subject = 1",
    ] {
        refused(&db, sql, "only moves forward");
    }
    refused(&db, "DELETE FROM claims WHERE subject = 2", "never removed");
    // The engine may expire a claim, and claim the key again under a higher fence.
    let allowed = [
        "UPDATE claims SET state = 'expired', body = NULL, revision = revision + 1 WHERE subject = 1",
        "UPDATE claims SET subject = 9, state = 'in_flight', fence = fence + 1, revision = revision + 1 WHERE subject = 1",
    ];
    for sql in allowed {
        assert_eq!(db.execute(sql, []).unwrap(), 1, "{sql}");
    }
}

#[tokio::test]
async fn the_ledgers_history_is_append_only() {
    let (_dir, db) = filled().await;
    for (table, column, words) in [
        ("journal_transactions", "at", "the journal is append-only"),
        ("journal_entries", "amount", "the journal is append-only"),
        ("reversals", "undone_by", "reversals are append-only"),
        ("account_names", "account", "names of accounts are append-only"),
        ("assets", "exponent", "assets are append-only"),
    ] {
        for sql in [
            format!("DELETE FROM {table}"),
            format!("UPDATE {table} SET {column} = {column} + 1"),
            format!("UPDATE OR REPLACE {table} SET {column} = {column}"),
            format!("INSERT INTO {table} SELECT * FROM {table}"),
            format!("INSERT OR REPLACE INTO {table} SELECT * FROM {table}"),
            format!("INSERT OR IGNORE INTO {table} SELECT * FROM {table}"),
        ] {
            refused(&db, &sql, words);
        }
    }
}

/// Adds an entry to a transaction that does not exist yet.
fn entry(db: &Connection, transaction: i64, leg: i64, side: &str, layer: &str, amount: i64, asset: &str) {
    let sql = "INSERT INTO journal_entries VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, 9, 9)";
    db.execute(sql, (transaction, leg, side, layer, amount, asset)).unwrap();
}

fn header(transaction: &str, legs: usize) -> String {
    format!(
        "INSERT INTO journal_transactions VALUES ({transaction}, 1, 9, 9, 'general', NULL, '{{}}', {legs})"
    )
}

#[tokio::test]
async fn a_transaction_cannot_be_without_entries_or_with_others_than_it_says() {
    let (_dir, db) = filled().await;
    let words = "at least two entries";
    for legs in [0, 1, 2] {
        refused(&db, &header("50", legs), words);
    }
    entry(&db, 50, 0, "debit", "posted", 100, "USD");
    for legs in [0, 1, 2] {
        refused(&db, &header("50", legs), words);
    }
    entry(&db, 50, 1, "credit", "posted", 100, "USD");
    for legs in [1, 3] {
        refused(&db, &header("50", legs), words);
    }
    // SQLite chooses the id after the trigger, which reads -1; entries at -1 must not count.
    entry(&db, -1, 0, "debit", "posted", 100, "USD");
    entry(&db, -1, 1, "credit", "posted", 100, "USD");
    refused(&db, &header("NULL", 2), words);
    assert_eq!(db.execute(&header("50", 2), []).unwrap(), 1);
}

#[tokio::test]
async fn a_transaction_balances_in_every_asset_and_layer_or_is_not_there() {
    let (_dir, db) = filled().await;
    let unbalanced: [&[(&str, &str, i64, &str)]; 6] = [
        &[("debit", "posted", 100, "USD"), ("credit", "posted", 99, "USD")],
        &[("debit", "posted", 100, "USD"), ("debit", "posted", 100, "USD")],
        &[("debit", "posted", 100, "USD"), ("credit", "posted", 100, "EUR")],
        &[("debit", "posted", 100, "USD"), ("credit", "pending", 100, "USD")],
        &[
            ("debit", "posted", 100, "USD"),
            ("credit", "posted", 100, "USD"),
            ("debit", "released", 5, "USD"),
            ("credit", "pending", 5, "USD"),
        ],
        &[
            ("debit", "posted", 100, "USD"),
            ("credit", "posted", 90, "USD"),
            ("debit", "posted", 90, "EUR"),
            ("credit", "posted", 100, "EUR"),
        ],
    ];
    for (transaction, legs) in (100..).zip(unbalanced) {
        for (leg, (side, layer, amount, asset)) in (0..).zip(legs) {
            entry(&db, transaction, leg, side, layer, *amount, asset);
        }
        refused(&db, &header(&transaction.to_string(), legs.len()), "debits and credits");
    }
    for leg in 0..3 {
        entry(&db, 200, leg, "debit", "posted", i64::MAX, "USD");
    }
    refused(&db, &header("200", 3), "integer overflow");
    let balanced = [
        ("debit", "posted", 100, "USD"),
        ("credit", "posted", 60, "USD"),
        ("credit", "posted", 40, "USD"),
        ("debit", "released", 7, "USD"),
        ("credit", "released", 7, "USD"),
        ("credit", "posted", 3, "POINTS"),
        ("debit", "posted", 3, "POINTS"),
    ];
    for (leg, (side, layer, amount, asset)) in (0..).zip(balanced) {
        entry(&db, 300, leg, side, layer, amount, asset);
    }
    assert_eq!(db.execute(&header("300", balanced.len()), []).unwrap(), 1);
}

#[tokio::test]
async fn nothing_is_added_to_a_transaction_that_is_there() {
    let (_dir, db) = filled().await;
    for leg in [0, 1, 2, 99] {
        for verb in ["INSERT", "REPLACE"] {
            let sql = format!(
                "{verb} INTO journal_entries VALUES (1, {leg}, 1, 'debit', 'posted', 1, 'USD', 9, 9)"
            );
            refused(&db, &sql, "append-only");
        }
    }
}

#[tokio::test]
async fn an_entry_has_a_side_a_layer_and_an_amount() {
    let (_dir, db) = filled().await;
    for values in
        ["'debit', 'posted', 0", "'credit', 'posted', -1", "'left', 'posted', 1", "'debit', 'soon', 1"]
    {
        let sql = format!("INSERT INTO journal_entries VALUES (70, 0, 1, {values}, 'USD', 9, 9)");
        refused(&db, &sql, "CHECK constraint");
    }
}

#[tokio::test]
async fn accounts_keep_what_they_were_opened_with() {
    let (_dir, db) = filled().await;
    for column in ["id", "tenant", "code", "asset", "normal", "floor", "cap", "metadata", "created_at"] {
        refused(&db, &format!("UPDATE accounts SET {column} = {column}"), "never changes");
    }
    refused(&db, "DELETE FROM accounts", "never removed");
    refused(&db, "REPLACE INTO accounts SELECT * FROM accounts", "never removed");
    let wider = "UPDATE accounts SET shards = 4, widest = 4, revision = revision + 1";
    assert_eq!(db.execute(wider, []).unwrap(), 1);
}

#[tokio::test]
async fn balances_only_move_forward() {
    let (_dir, db) = filled().await;
    for sql in [
        "UPDATE balances SET posted = 9",
        "UPDATE balances SET posted = 9, revision = revision - 1",
        "UPDATE balances SET account = 9, revision = revision + 1",
        "UPDATE balances SET shard = 9, revision = revision + 1",
    ] {
        refused(&db, sql, "only moves forward");
    }
    refused(&db, "DELETE FROM balances", "never removed");
    refused(&db, "REPLACE INTO balances SELECT * FROM balances", "updated, not inserted");
    refused(&db, "UPDATE balances SET outgoing = -1, revision = revision + 1", "CHECK constraint");
    assert_eq!(db.execute("UPDATE balances SET posted = 9, revision = revision + 1", []).unwrap(), 1);
}

#[tokio::test]
async fn holds_end_once() {
    let (_dir, db) = filled().await;
    for column in [
        "id",
        "tenant",
        "from_account",
        "to_account",
        "amount",
        "asset",
        "expires_at",
        "metadata",
        "created_at",
    ] {
        let sql = format!("UPDATE holds SET {column} = {column}, state = 'voided', revision = revision + 1");
        refused(&db, &sql, "never changes");
    }
    refused(&db, "UPDATE holds SET revision = revision + 1", "ends once");
    refused(&db, "UPDATE holds SET state = 'voided'", "ends once");
    refused(&db, "DELETE FROM holds", "never removed");
    refused(&db, "REPLACE INTO holds SELECT * FROM holds", "never removed");
    let void = "UPDATE holds SET state = 'voided', ended_by = 2, revision = revision + 1";
    assert_eq!(db.execute(void, []).unwrap(), 1);
    let post = "UPDATE holds SET state = 'posted', ended_by = 2, posted_amount = 1, revision = revision + 1";
    refused(&db, post, "ends once");
}

#[tokio::test]
async fn values_of_the_wrong_kind_are_refused() {
    let (_dir, db) = filled().await;
    refused(&db, "UPDATE charges SET revision = 'two'", "cannot store TEXT");
    refused(&db, "UPDATE claims SET state = NULL, revision = 9", "NOT NULL");
}

//! What holds against raw SQL: history is only added to, the journal balances, and what moves only moves forward.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::Store;
use counterfoil_store::conformance::fixtures::ledger::{
    FLOOR, account, cursor, definition, hold, moving, name, posted, reversal, snapshot, transfer,
};
use counterfoil_store::conformance::fixtures::set;
use rusqlite::Connection;
use support::rows::work;
use support::{open, raw};
use tempfile::TempDir;

const TABLES: [&str; 13] = [
    "claims",
    "charges",
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

/// A store with one settled charge (1) and one at work (2); and in the ledger, of each kind one row.
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
        "UPDATE charges SET asset = 'EUR', status = 'succeeded'",
        "UPDATE charges SET tenant = 9",
        "UPDATE charges SET id = 9 WHERE id = 1",
    ] {
        refused(&db, sql, "never changes");
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
    // What the engine itself does is allowed: to expire, and to be claimed anew under a higher fence.
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

/// Adds an entry of 100 to a transaction that is not there yet.
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
    // An id that SQLite would choose has no entries that could be looked at, whatever stands at -1.
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

#[tokio::test]
async fn every_query_of_the_store_runs_on_an_index() {
    let (_dir, db) = filled().await;
    for (query, index) in [
        ("SELECT body FROM claims WHERE id = x'00'", "claims_by_id"),
        (
            "SELECT body FROM claims WHERE sweep_at IS NOT NULL AND sweep_at <= 1 ORDER BY sweep_at LIMIT 1",
            "claims_by_sweep",
        ),
        (
            "SELECT status FROM charges WHERE tenant = 1 AND id < 9 ORDER BY id DESC LIMIT 1",
            "charges_by_tenant",
        ),
        (
            "SELECT claim FROM outbox WHERE parked IS NULL AND due_at <= 1 ORDER BY due_at, charge LIMIT 1",
            "outbox_by_due",
        ),
        ("SELECT count(*) FROM outbox WHERE parked IS NULL AND due_at < 1", "outbox_by_due"),
        ("SELECT count(*) FROM outbox WHERE parked IS NULL", "outbox_by_due"),
        ("SELECT count(*) FROM outbox WHERE parked IS NOT NULL", "outbox_parked"),
        ("SELECT position FROM commits WHERE set_id = 1", "commits_by_set"),
        ("SELECT kind FROM audit_log WHERE subject = 1 AND id > x'' ORDER BY id LIMIT 1", "PRIMARY KEY"),
        (
            "SELECT code FROM accounts WHERE tenant = 1 AND id < 9 ORDER BY id DESC LIMIT 1",
            "accounts_by_tenant",
        ),
        ("SELECT account FROM account_names WHERE tenant = 1 AND code = 'a'", "PRIMARY KEY"),
        ("SELECT exponent FROM assets WHERE tenant = 1 ORDER BY code", "PRIMARY KEY"),
        (
            "SELECT posted FROM balances WHERE (account, shard) > (1, 0) ORDER BY account, shard LIMIT 1",
            "PRIMARY KEY",
        ),
        (
            "SELECT kind FROM journal_transactions WHERE tenant = 1 AND id < 9 ORDER BY id DESC LIMIT 1",
            "journal_transactions_by_tenant",
        ),
        ("SELECT amount FROM journal_entries WHERE transaction_id = 1 ORDER BY leg", "PRIMARY KEY"),
        (
            "SELECT amount FROM journal_entries WHERE account = 1 AND position > 1 AND position <= 9 ORDER BY position",
            "journal_by_account",
        ),
        (
            "SELECT amount FROM journal_entries WHERE account = 1 AND position > 1 \
             ORDER BY position, transaction_id, leg LIMIT 1",
            "journal_by_account",
        ),
        (
            "SELECT amount FROM journal_entries WHERE account = 1 AND (position, transaction_id, leg) < (9, 9, 9) \
             ORDER BY position DESC, transaction_id DESC, leg DESC LIMIT 1",
            "journal_by_account",
        ),
        (
            "SELECT amount FROM holds WHERE state = 'pending' AND expires_at <= 1 ORDER BY expires_at, id LIMIT 1",
            "holds_by_deadline",
        ),
        (
            "SELECT debits FROM snapshots WHERE account = 1 AND position <= 9 AND at <= 9 \
             ORDER BY position DESC LIMIT 1",
            "PRIMARY KEY",
        ),
    ] {
        let plan: Vec<String> = db
            .prepare(&format!("EXPLAIN QUERY PLAN {query}"))
            .unwrap()
            .query_map([], |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert!(plan.len() == 1 && plan[0].contains(index), "{query}: {plan:?}");
    }
}

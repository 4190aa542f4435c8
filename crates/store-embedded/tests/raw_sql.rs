//! What holds against raw SQL: history is only added to, and claims only move forward.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::Store;
use rusqlite::Connection;
use support::rows::work;
use support::{open, raw};
use tempfile::TempDir;

/// A store with one settled charge (1) and one at work (2).
async fn filled() -> (TempDir, Connection) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let (first, second) = (work(1, store.now()), work(2, store.now()));
    store.commit(first.opening(1)).await.unwrap();
    store.commit(first.settling(2, store.now(), bytes::Bytes::from_static(b"{}"))).await.unwrap();
    store.commit(second.opening(3)).await.unwrap();
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
    for table in ["claims", "charges", "audit_log", "commits"] {
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

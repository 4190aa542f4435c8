//! Transactions balance when they commit, and no entry is added later.

use crate::{filled, refused};

const HEADER: &str = "INSERT INTO journal_transactions (id, tenant, kind, legs, metadata, at) VALUES";
const ENTRY: &str = "INSERT INTO journal_entries (tenant, transaction, leg, position, at, account, side, layer, amount, asset) VALUES";

#[tokio::test]
async fn an_unbalanced_transaction_is_refused_at_its_commit() {
    let (db, _database) = filled().await;
    for (legs, entries, words) in [
        (
            2,
            "(1,9,0,9,9,1,'debit','posted',5,'USD'), (1,9,1,9,9,2,'credit','posted',4,'USD')",
            "does not balance",
        ),
        (
            2,
            "(1,9,0,9,9,1,'debit','posted',5,'USD'), (1,9,1,9,9,2,'credit','posted',5,'EUR')",
            "does not balance",
        ),
        (
            2,
            "(1,9,0,9,9,1,'debit','posted',5,'USD'), (1,9,1,9,9,2,'credit','pending',5,'USD')",
            "does not balance",
        ),
        (
            2,
            "(1,9,0,9,9,1,'debit','posted',5,'USD'), (1,9,1,9,9,2,'debit','posted',5,'USD')",
            "does not balance",
        ),
        (
            3,
            "(1,9,0,9,9,1,'debit','posted',5,'USD'), (1,9,1,9,9,2,'credit','posted',5,'USD')",
            "says 3 entries and has 2",
        ),
    ] {
        // Statements before the COMMIT are accepted, because later ones may complete the
        // transaction.
        let open = format!("BEGIN; {HEADER} (9,1,'general',{legs},'{{}}',9); {ENTRY} {entries}");
        db.batch_execute(&open).await.unwrap();
        refused(&db, "COMMIT", words).await;
    }
    refused(&db, &format!("{HEADER} (9,1,'general',2,'{{}}',9)"), "says 2 entries and has 0").await;
    // The check at the COMMIT runs, also if its note was deleted or changed.
    for forget in [
        "DELETE FROM unbalanced_transactions",
        "UPDATE unbalanced_transactions SET transaction = 1",
        "SET session_replication_role = replica",
    ] {
        let open = format!("BEGIN; {HEADER} (9,1,'general',2,'{{}}',9); {forget}");
        db.batch_execute(&open).await.unwrap();
        refused(&db, "COMMIT", "says 2 entries and has 0").await;
        db.batch_execute("SET session_replication_role = origin").await.unwrap();
    }
    refused(
        &db,
        &format!("BEGIN; {HEADER} (9,1,'general',2,'{{}}',9); TRUNCATE unbalanced_transactions"),
        "pending trigger",
    )
    .await;
    let rows = db.query("SELECT 1 FROM journal_transactions WHERE id = 9", &[]).await.unwrap();
    assert!(rows.is_empty());
    let whole = format!(
        "BEGIN; {HEADER} (9,1,'general',2,'{{}}',9); {ENTRY} (1,9,0,9,9,1,'debit','posted',5,'USD'); \
         {ENTRY} (1,9,1,9,9,2,'credit','posted',5,'USD'); COMMIT"
    );
    db.batch_execute(&whole).await.unwrap();
    assert!(db.query("SELECT 1 FROM unbalanced_transactions", &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn transactions_left_unbalanced_by_one_statement_are_refused_at_its_commit() {
    let (db, _database) = filled().await;
    let at_once = |legs: u8, entries: &str| {
        format!("WITH opened AS ({HEADER} (9,1,'general',{legs},'{{}}',9)) {ENTRY} {entries}")
    };
    for (legs, entries, words) in [
        (
            2,
            "(1,9,0,9,9,1,'debit','posted',5,'USD'), (1,9,1,9,9,2,'credit','posted',4,'USD')",
            "does not balance",
        ),
        (
            2,
            "(1,9,0,9,9,1,'debit','posted',5,'USD'), (1,9,1,9,9,2,'credit','posted',5,'EUR')",
            "does not balance",
        ),
        (
            2,
            "(1,9,0,9,9,1,'debit','posted',5,'USD'), (1,9,1,9,9,2,'credit','pending',5,'USD')",
            "does not balance",
        ),
        (
            3,
            "(1,9,0,9,9,1,'debit','posted',5,'USD'), (1,9,1,9,9,2,'credit','posted',5,'USD')",
            "says 3 entries and has 2",
        ),
    ] {
        refused(&db, &at_once(legs, entries), words).await;
    }
    let two_assets = "(1,9,0,9,9,1,'debit','posted',5,'USD'), (1,9,1,9,9,2,'credit','posted',5,'USD'), \
         (1,9,2,9,9,1,'debit','pending',7,'EUR'), (1,9,3,9,9,2,'credit','pending',7,'EUR')";
    db.batch_execute(&at_once(4, two_assets)).await.unwrap();
    assert!(db.query("SELECT 1 FROM unbalanced_transactions", &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn nothing_is_added_to_a_sealed_transaction() {
    let (db, _database) = filled().await;
    for entry in [
        "(1,1,2,9,9,1,'debit','posted',5,'USD'), (1,1,3,9,9,2,'credit','posted',5,'USD')",
        "(1,77,0,9,9,1,'debit','posted',5,'USD')",
    ] {
        refused(&db, &format!("{ENTRY} {entry}"), "no place for an entry").await;
    }
    refused(&db, &format!("{ENTRY} (1,1,1,9,9,1,'debit','posted',5,'USD')"), "duplicate key").await;
    refused(&db, &format!("{ENTRY} (1,1,2,9,9,1,'left','posted',5,'USD')"), "side_check").await;
    refused(&db, &format!("{ENTRY} (1,1,2,9,9,1,'debit','later',5,'USD')"), "layer_check").await;
    refused(&db, &format!("{ENTRY} (1,1,-1,9,9,1,'debit','posted',5,'USD')"), "check constraint").await;
    refused(&db, &format!("{ENTRY} (1,1,2,9,9,1,'debit','posted',-5,'USD')"), "check constraint").await;
    // An entry without a header has no place either.
    let early = format!("BEGIN; {ENTRY} (1,9,0,9,9,1,'debit','posted',5,'USD')");
    refused(&db, &early, "no place for an entry").await;
}

#[tokio::test]
async fn upserts_merges_views_and_copies_cannot_rewrite_history() {
    let (db, _database) = filled().await;
    for (table, key, column) in [
        ("journal_entries", "tenant, transaction, leg", "amount"),
        ("journal_transactions", "tenant, id", "at"),
        ("audit_log", "tenant, subject, id", "at"),
        ("commit_groups", "position", "at"),
    ] {
        let upsert = format!(
            "INSERT INTO {table} SELECT * FROM {table} ON CONFLICT ({key}) DO UPDATE SET {column} = 9"
        );
        refused(&db, &upsert, "append-only").await;
        for then in [format!("UPDATE SET {column} = 9"), "DELETE".to_owned()] {
            let on = key.split(", ").map(|name| format!("t.{name} = s.{name}")).collect::<Vec<_>>();
            let merge = format!(
                "MERGE INTO {table} AS t USING (SELECT * FROM {table}) AS s ON {} WHEN MATCHED THEN {then}",
                on.join(" AND ")
            );
            refused(&db, &merge, "append-only").await;
        }
        let through = format!("CREATE VIEW seen AS SELECT * FROM {table}; UPDATE seen SET {column} = 9");
        refused(&db, &through, "append-only").await;
    }
    // COPY is subject to the same rules.
    let (tenant, id) = {
        let row = db.query_one("SELECT tenant, id FROM journal_transactions LIMIT 1", &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    let copy = format!(
        "COPY journal_entries (tenant, transaction, leg, position, at, account, side, layer, amount, asset) \
         FROM PROGRAM 'echo {tenant},{id},7,4,1,1,debit,posted,5,USD' (FORMAT csv)"
    );
    refused(&db, &copy, "no place for an entry").await;
}

//! Identity columns never change, revisions grow, and money is whole numbers.

use crate::{filled, refused};

#[tokio::test]
async fn other_rows_only_move_forward() {
    let (db, _database) = filled().await;
    for (sql, words) in [
        ("UPDATE charges SET amount_minor = 1, revision = 9", "ordered for"),
        ("UPDATE charges SET tenant = 9, revision = 9", "ordered for"),
        ("UPDATE charges SET metadata = '{\"a\":\"b\"}', revision = 9", "ordered for"),
        ("UPDATE charges SET wallet_account = 1, wallet_amount = 1, revision = 9", "ordered for"),
        ("UPDATE charges SET provider = 'other', revision = 9", "ordered for"),
        ("UPDATE charges SET endpoint = 'other', revision = 9", "ordered for"),
        ("UPDATE charges SET status = 'processing'", "revision grows"),
        ("UPDATE holds SET amount = 1, revision = 9", "ends once"),
        ("UPDATE balances SET posted = posted + 1", "revision grows"),
        ("UPDATE balances SET outgoing = -1, revision = 9", "check constraint"),
        ("UPDATE slots SET epoch = 0, revision = 9", "never falls"),
        ("UPDATE head SET position = position - 1", "never go back"),
        ("UPDATE head SET at = at - 1", "never go back"),
        ("INSERT INTO head (position, at) VALUES (9, 9)", "duplicate key"),
        ("UPDATE tenants SET key_policy = 'optional'", "revision grows"),
        ("UPDATE accounts SET shards = 9", "revision grows"),
        ("UPDATE cursors SET position = 9", "revision grows"),
    ] {
        refused(&db, sql, words).await;
    }
    assert_eq!(db.execute("UPDATE api_keys SET revoked_at = 5, revision = 2", &[]).await.unwrap(), 1);
    refused(&db, "UPDATE api_keys SET revoked_at = NULL, revision = 3", "stays revoked").await;
}

/// Identity columns by table. Claims, charges, operations, payouts and work have separate tests.
#[tokio::test]
async fn identity_columns_never_change() {
    let (db, _database) = filled().await;
    for (table, changes, words) in [
        ("tenants", "name = 'x'; id = 77; created_at = 7", "stays who it is"),
        ("api_keys", "digest = sha256('x'); id = 'x'; created_at = 7", "stays the key it is"),
        ("api_keys", "tenant = 'x'", "keeps its tenant"),
        (
            "accounts",
            "tenant = 9; id = 9; code = 'x'; asset = 'X'; normal = 'debit'; floor = 7; cap = 7; \
             metadata = '{\"a\":\"b\"}'; created_at = 7",
            "as it was opened",
        ),
        ("holds", "tenant = 9; from_account = 9; expires_at = 9; metadata = '{\"a\":\"b\"}'", "ends once"),
        ("snapshots", "tenant = 9; account = 9; position = 9", "stays its account's"),
        ("balances", "tenant = 9; account = 9; shard = 9", "stays its account's"),
        ("cursors", "reader = 'x'", "stays its reader's"),
        ("slots", "number = 9", "never falls"),
    ] {
        for change in changes.split("; ") {
            let grows = if table == "snapshots" { "" } else { ", revision = revision + 1" };
            refused(&db, &format!("UPDATE {table} SET {change}{grows}"), words).await;
        }
    }
    for change in ["value = 'x' WHERE name = 'secret'", "name = 'x'"] {
        refused(&db, &format!("UPDATE meta SET {change}"), "stay as they are").await;
    }
    // The rules above are only tested on tables with rows.
    for table in ["tenants", "api_keys", "accounts", "holds", "snapshots", "balances", "cursors", "slots"] {
        let rows = db.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap();
        assert!(rows.get::<_, i64>(0) > 0, "{table} is empty");
    }
    db.batch_execute("UPDATE meta SET value = value WHERE name = 'barrier'").await.unwrap();
}

#[tokio::test]
async fn money_is_whole_numbers_of_64_bits() {
    let (db, _database) = filled().await;
    let found = db
        .query(
            "SELECT table_name || '.' || column_name, data_type FROM information_schema.columns \
             WHERE table_schema = 'counterfoil' AND (column_name ~ 'amount|captured|refund|floor|^cap$' \
             OR (table_name, column_name) IN (('balances', 'posted'), ('balances', 'outgoing'), ('balances', 'incoming')))",
            &[],
        )
        .await
        .unwrap();
    assert!(found.len() >= 15, "{found:?}");
    for row in found {
        assert_eq!(row.get::<_, &str>(1), "bigint", "{}", row.get::<_, &str>(0));
    }
    let floats = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'counterfoil' \
        AND data_type IN ('real', 'double precision', 'money')";
    assert_eq!(db.query_one(floats, &[]).await.unwrap().get::<_, i64>(0), 0);
}

//! The tenant is the first column of every key of tenant-owned rows.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::types::id::TenantId;
use counterfoil_store::conformance::fixtures::ledger::{account, account_id, opened, reversal, snapshot};
use counterfoil_store::conformance::fixtures::{TENANT, set, tenant};
use counterfoil_store::{Row, RowKey, Store};
use support::{database, open, raw};
use tokio_postgres::Client;

/// Tables that belong to no tenant or are read before the tenant is known. All other keys begin
/// with the tenant.
const SHARED: [(&str, &str); 9] = [
    ("schema_steps", "the steps of the database itself"),
    ("meta", "the instance secret"),
    ("head", "one row: the last position"),
    ("commit_groups", "one order over all tenants; the touched keys name them"),
    ("slots", "held by processes, not by tenants"),
    ("cursors", "readers of the whole feed"),
    ("tenants", "the tenants themselves, by name"),
    ("api_keys", "found by the digest of their secret"),
    ("unbalanced_transactions", "has no key, and no rows between commits"),
];

/// Table, first column, and whether it is the primary key, of every unique index.
async fn keys(db: &Client) -> Vec<(String, String, bool)> {
    let sql = "SELECT c.relname::text, a.attname::text, i.indisprimary FROM pg_class AS c \
        JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisunique \
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] \
        WHERE c.relnamespace = 'counterfoil'::regnamespace AND c.relkind IN ('r', 'p')";
    let rows = db.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

#[tokio::test]
async fn every_key_of_a_tenant_owned_table_begins_with_the_tenant() {
    let database = database().await;
    let db = raw(&database.url()).await;
    let keys = keys(&db).await;
    let names = db
        .query("SELECT relname::text FROM pg_class WHERE relnamespace = 'counterfoil'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition", &[])
        .await
        .unwrap();
    let tables: Vec<String> = names.iter().map(|row| row.get(0)).collect();
    for (known, why) in SHARED {
        assert!(tables.iter().any(|table| table == known), "{known} ({why}) is gone: take it off the list");
    }
    let owned: Vec<&String> =
        tables.iter().filter(|table| SHARED.iter().all(|(known, _)| known != table)).collect();
    assert_eq!(owned.len(), 15, "{owned:?}");
    for table in owned {
        let own = keys.iter().filter(|(name, ..)| name == table);
        assert_eq!(own.clone().filter(|(_, _, primary)| *primary).count(), 1, "{table} has no primary key");
        for (_, first, _) in own {
            assert_eq!(first, "tenant", "a key of {table} begins with another column");
        }
    }
}

#[tokio::test]
async fn no_index_repeats_another() {
    let database = database().await;
    let db = raw(&database.url()).await;
    let twice = "SELECT a.indexrelid::regclass::text, b.indexrelid::regclass::text FROM pg_index AS a JOIN pg_index AS b \
        ON a.indrelid = b.indrelid AND a.indexrelid <> b.indexrelid AND b.indpred IS NULL AND a.indpred IS NULL \
        AND (b.indkey::text || ' ') LIKE (a.indkey::text || ' %') \
        WHERE a.indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'counterfoil'::regnamespace)";
    let rows = db.query(twice, &[]).await.unwrap();
    let found: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(found, [], "the first index is a prefix of the second");
}

#[tokio::test]
async fn equal_ids_of_two_tenants_are_two_rows() {
    let database = database().await;
    let store = open(&database.url()).await;
    let other = TenantId::from_i64(2);
    let theirs = counterfoil_core::ledger::account::Account { tenant: other, ..account(1) };
    let rows: [Row; 5] = [
        tenant("t2", 2).into(),
        account(1).into(),
        opened(1, Some(0), None).into(),
        reversal(1).into(),
        snapshot(1, 1).into(),
    ];
    let all =
        rows.into_iter().chain([theirs.clone().into()]).fold(set(1), counterfoil_store::ChangeSet::insert);
    store.commit(all).await.unwrap();
    let keys = vec![RowKey::Account(TENANT, account_id(1)), RowKey::Account(other, account_id(1))];
    assert_eq!(store.read(keys).await.unwrap(), [Some(account(1).into()), Some(theirs.into())]);
}

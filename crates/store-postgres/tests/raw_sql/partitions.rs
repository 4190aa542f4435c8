//! The partitions of the journal and of the audit log: rules hold on every partition, rows go to
//! the partition of their time, and old partitions can be dropped.

use crate::support::{fresh, raw};
use crate::{filled, refused};
use counterfoil_core::audit::AuditRecord;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::types::id::{EPOCH, TransactionId};
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::conformance::fixtures::ledger::transfer;
use counterfoil_store::conformance::fixtures::{audit, set};
use counterfoil_store::{Row, Store};
use tokio_postgres::Client;

const TABLES: [&str; 3] = ["journal_transactions", "journal_entries", "audit_log"];

async fn count(db: &Client, what: &str) -> i64 {
    db.query_one(&format!("SELECT count(*) FROM {what}"), &[]).await.unwrap().get(0)
}

/// Triggers with their state, and whether row-level security is on, of a table.
async fn rules(db: &Client, table: &str) -> (Vec<(String, i8)>, bool) {
    let triggers = db
        .query(
            "SELECT replace(pg_get_triggerdef(oid), tgrelid::regclass::text, 'it'), tgenabled FROM pg_trigger \
             WHERE tgrelid = $1::text::regclass AND NOT tgisinternal ORDER BY 1",
            &[&table],
        )
        .await
        .unwrap();
    let secured = db
        .query_one("SELECT relrowsecurity FROM pg_class WHERE oid = $1::text::regclass", &[&table])
        .await
        .unwrap();
    (triggers.iter().map(|row| (row.get(0), row.get(1))).collect(), secured.get(0))
}

async fn partitions(db: &Client, table: &str) -> Vec<String> {
    let sql =
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = $1::text::regclass ORDER BY 1";
    db.query(sql, &[&table]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// A day after today and after the fixtures' time, as text, and the time of the following midnight.
async fn future(db: &Client) -> (String, Time) {
    let sql = "SELECT d::text, extract(epoch FROM d + 1)::bigint * 1000 \
        FROM (SELECT greatest((now() AT TIME ZONE 'UTC')::date, '2026-10-01') + 40 AS d) AS day";
    let row = db.query_one(sql, &[]).await.unwrap();
    (row.get(0), Time::from_ms(row.get(1)))
}

#[tokio::test]
async fn every_partition_has_the_rules_of_its_table() {
    let (db, _database) = filled().await;
    let (day, _) = future(&db).await;
    db.batch_execute(&format!("SELECT start_partition('{day}')")).await.unwrap();
    for table in TABLES {
        let (own, secured) = rules(&db, table).await;
        assert!(secured && own.iter().all(|(_, enabled)| *enabled == b'A'.cast_signed()), "{own:?}");
        let parts = partitions(&db, table).await;
        assert_eq!(parts.len(), 2, "{parts:?}");
        for part in parts {
            assert_eq!(rules(&db, &part).await, (own.clone(), true), "{part}");
        }
    }
}

#[tokio::test]
async fn raw_sql_on_a_partition_is_held_to_the_rules_of_its_table() {
    let (db, _database) = filled().await;
    for role in ["origin", "replica"] {
        db.batch_execute(&format!("SET session_replication_role = {role}")).await.unwrap();
        for (table, column) in
            [("journal_transactions", "at"), ("journal_entries", "amount"), ("audit_log", "at")]
        {
            let part = format!("{table}_initial");
            assert!(count(&db, &part).await > 0, "{part} is empty");
            refused(&db, &format!("UPDATE {part} SET {column} = {column} + 1"), "append-only").await;
            refused(&db, &format!("DELETE FROM {part}"), "append-only").await;
            refused(&db, &format!("TRUNCATE {part}"), "append-only").await;
            refused(&db, &format!("TRUNCATE ONLY {part}"), "append-only").await;
        }
    }
    let header = "INSERT INTO journal_transactions_initial (id, tenant, kind, legs, metadata, at) VALUES";
    let entry = "INSERT INTO journal_entries_initial (tenant, transaction, leg, position, at, account, side, layer, amount, asset) VALUES";
    refused(&db, &format!("{header} (9,1,'general',2,'{{}}',9)"), "says 2 entries and has 0").await;
    refused(
        &db,
        &format!(
            "BEGIN; {header} (9,1,'general',2,'{{}}',9); {entry} (1,9,0,9,9,1,'debit','posted',5,'USD'), \
             (1,9,1,9,9,2,'credit','posted',4,'USD'); COMMIT"
        ),
        "does not balance",
    )
    .await;
    for stray in ["(1,1,2,9,9,1,'debit','posted',5,'USD')", "(1,77,0,9,9,1,'debit','posted',5,'USD')"] {
        refused(&db, &format!("{entry} {stray}"), "no place for an entry").await;
    }
    for role in ["counterfoil_reader", "counterfoil_writer"] {
        db.batch_execute(&format!("RESET ROLE; SET ROLE {role}; SET counterfoil.tenant = '1'"))
            .await
            .unwrap();
        for table in TABLES {
            refused(&db, &format!("SELECT 1 FROM {table}_initial"), "permission denied").await;
        }
        refused(&db, &format!("{header} (9,1,'general',2,'{{}}',9)"), "permission denied").await;
    }
}

#[tokio::test]
async fn rows_go_to_the_partition_of_their_time_and_old_ranges_can_be_dropped() {
    let (store, database) = fresh().await;
    let db = raw(&database.url()).await;
    let old = transfer(1, 1, 2, 50);
    let record: AuditRecord = audit(1, 0);
    store.commit(set(1).insert(old.clone()).insert(record.clone())).await.unwrap();
    let (day, later) = future(&db).await;
    // The store keeps running: its prepared statements follow the new partitions.
    db.batch_execute(&format!("SELECT start_partition('{day}')")).await.unwrap();
    let ms = later.ms() - EPOCH.ms();
    let first = Transaction { id: TransactionId::from_i64(ms << 22), ..transfer(2, 1, 2, 50) };
    let newer = AuditRecord { id: Ulid::new(later, 1), ..record };
    let again = transfer(3, 1, 2, 50);
    store.commit(set(2).insert(first.clone()).insert(newer.clone()).insert(again.clone())).await.unwrap();
    for (table, before, after) in
        [("journal_transactions", 2, 1), ("journal_entries", 4, 2), ("audit_log", 1, 1)]
    {
        let next = format!("{table}_from_{}", day.replace('-', ""));
        assert_eq!(count(&db, &format!("{table}_initial")).await, before, "{table}");
        assert_eq!(count(&db, &next).await, after, "{table}");
    }
    let keys = [Row::from(old), first.into(), again.into(), newer.into()].map(|row| row.key());
    let found = store.read(keys.to_vec()).await.unwrap();
    assert!(found.iter().all(Option::is_some), "{found:?}");
    for table in TABLES {
        db.batch_execute(&format!(
            "ALTER TABLE {table} DETACH PARTITION {table}_initial; DROP TABLE {table}_initial"
        ))
        .await
        .unwrap();
    }
    let found = store.read(keys.to_vec()).await.unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false, true]);
}

#[tokio::test]
async fn a_partition_starts_in_the_future_and_never_in_the_middle_of_rows() {
    let (store, database) = fresh().await;
    let db = raw(&database.url()).await;
    refused(&db, "SELECT start_partition((now() AT TIME ZONE 'UTC')::date)", "a day in the future").await;
    let (day, later) = future(&db).await;
    let record = AuditRecord { id: Ulid::new(later, 1), ..audit(1, 0) };
    store.commit(set(1).insert(record)).await.unwrap();
    refused(&db, &format!("SELECT start_partition('{day}')"), "is violated by some row").await;
    assert_eq!(partitions(&db, "journal_entries").await, ["journal_entries_initial"]);
    // A second partition follows the first.
    db.batch_execute(&format!("SELECT start_partition('{day}'::date + 30)")).await.unwrap();
    db.batch_execute(&format!("SELECT start_partition('{day}'::date + 60)")).await.unwrap();
    assert_eq!(partitions(&db, "audit_log").await.len(), 3);
    refused(&db, &format!("SELECT start_partition('{day}'::date + 45)"), "empty range bound").await;
    assert_eq!(partitions(&db, "audit_log").await.len(), 3);
}

//! From schema 5 to this one, with live rows and while a server of schema 5 goes on: what it wrote reads as what it is,
//! what it goes on writing is whole, and work it does not know is not done by it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::outbox::Outbox;
use counterfoil_core::types::digest::Digest;
use counterfoil_store::conformance::fixtures::{
    NOW, TENANT, charge, claim_id, outbox, payout, payout_work, set,
};
use counterfoil_store::{Due, RowKey, Scan, Store};
use counterfoil_store_postgres::{Migrated, NEEDED, Reach, migrate};
use counterfoil_testkit::postgres::{Database, shared};
use support::{open, raw};
use tokio_postgres::{Client, Statement};

/// A database as a release of schema 5 made it.
async fn schema_5() -> Database {
    let steps = [
        ("tables", include_str!("../src/schema/1_tables.sql")),
        ("rules", include_str!("../src/schema/2_rules.sql")),
        ("walls", include_str!("../src/schema/3_walls.sql")),
        ("operations", include_str!("../src/schema/4_operations.sql")),
        ("captured", include_str!("../src/schema/5_captured.sql")),
    ];
    let make = async |url: String| {
        let db = raw(&url).await;
        let marks = "CREATE SCHEMA counterfoil; CREATE TABLE schema_steps (version BIGINT PRIMARY KEY, \
            name TEXT NOT NULL, serves BIGINT NOT NULL, digest TEXT NOT NULL, \
            applied_at TIMESTAMPTZ NOT NULL DEFAULT now())";
        db.batch_execute(marks).await.map_err(|error| error.to_string())?;
        for (version, (name, sql)) in (1..).zip(steps) {
            let digest = Digest::of("counterfoil/schema-step/1", &[sql.as_bytes()]).hex();
            let mark = format!("INSERT INTO schema_steps VALUES ({version}, '{name}', 3, '{digest}')");
            let step = format!("BEGIN; {sql}; {mark}; COMMIT");
            db.batch_execute(&step).await.map_err(|error| error.to_string())?;
        }
        let secret = "INSERT INTO meta (name, value) VALUES ('secret', sha256('s')), ('barrier', '')";
        db.batch_execute(secret).await.map_err(|error| error.to_string())
    };
    Database::copy_of(&shared().unwrap(), "counterfoil_schema_5", make).await.unwrap()
}

/// A server of schema 5: the columns of its statements, prepared on a connection that outlives the migration.
struct Older {
    db: Client,
    charge: Statement,
    work: Statement,
    take_over: Statement,
    remove: Statement,
}

impl Older {
    async fn of(database: &Database) -> Older {
        let db = raw(&database.url()).await;
        let charge = "INSERT INTO charges (id, tenant, amount_minor, asset, payment_method, capture, destination, \
            wallet_account, wallet_amount, description, metadata, status, captured, refunded, refunding, working, \
            provider, endpoint, provider_reference, failure, decline_code, created_at, revision) \
            VALUES ($1, 1, 1250, 'USD', 'pm_card_visa', true, 9, NULL, NULL, NULL, '{}', 'processing', 0, 0, 0, NULL, \
            'stripe', 'http://127.0.0.1:8090', NULL, NULL, NULL, 1790000000000, 1)";
        let work = "INSERT INTO outbox (id, charge, flow, version, step, way, hold, claim, tenant, profile, endpoint, \
            due_at, created_at, generation, idle_calls, unknown, server_errors, first_sent_at, last_sent_at, parked, \
            revision) VALUES ($1, $1, 'charge', 1, 0, 'forward', NULL, $2, 1, 'stripe', 'http://127.0.0.1:8090', \
            1790000030000, 1790000000000, 1, 0, false, 0, 1790000000000, 1790000000000, NULL, 1)";
        let take_over = "UPDATE outbox AS t SET step = t.step, way = t.way, hold = t.hold, claim = t.claim, \
            tenant = t.tenant, due_at = t.due_at + 1, generation = t.generation, unknown = true, \
            revision = t.revision + 1 WHERE t.id = $1";
        Older {
            charge: db.prepare(charge).await.unwrap(),
            work: db.prepare(work).await.unwrap(),
            take_over: db.prepare(take_over).await.unwrap(),
            remove: db.prepare("DELETE FROM outbox AS t WHERE t.id = $1").await.unwrap(),
            db,
        }
    }

    async fn open(&self, number: i64) {
        self.db.batch_execute("BEGIN").await.unwrap();
        self.db.execute(&self.charge, &[&number]).await.unwrap();
        let claim = claim_id(number).digest().as_bytes().to_vec();
        self.db.execute(&self.work, &[&number, &claim]).await.unwrap();
        self.db.batch_execute("COMMIT").await.unwrap();
    }
}

#[tokio::test]
async fn live_rows_read_as_what_they_are_and_an_older_server_goes_on() {
    let database = schema_5().await;
    let older = Older::of(&database).await;
    older.open(1).await;
    let migrated = migrate(&database.url(), Reach::Needed).await.unwrap();
    assert_eq!(
        migrated,
        Migrated {
            from: 5,
            to: NEEDED,
            steps: vec!["payouts", "balanced", "lighter", "owners", "by tenant"],
            left: vec!["tenants lead", "shorter rules", "look ahead", "groups", "kept"]
        }
    );

    let store = open(&database.url()).await;
    older.open(2).await;
    for number in [1, 2] {
        let keys =
            vec![RowKey::Charge(TENANT, charge(number).id), RowKey::Outbox(TENANT, charge(number).id.into())];
        let rows = store.read(keys).await.unwrap();
        assert_eq!(rows, [Some(charge(number).into()), Some(outbox(number).into())]);
    }
    for number in [1_i64, 2] {
        assert_eq!(older.db.execute(&older.take_over, &[&number]).await.unwrap(), 1);
    }
    assert_eq!(older.db.execute(&older.remove, &[&1_i64]).await.unwrap(), 1);
    assert_eq!(store.tally(NOW).await.unwrap().pending, 1);
}

#[tokio::test]
async fn a_payout_is_done_by_newer_servers_only() {
    let database = schema_5().await;
    let older = Older::of(&database).await;
    migrate(&database.url(), Reach::Needed).await.unwrap();
    let store = open(&database.url()).await;
    store.commit(set(1).insert(payout(7)).insert(payout_work(7))).await.unwrap();
    let due = store.due(Due::Outbox, payout_work(7).due_at, 9).await.unwrap();
    assert_eq!(due, [payout_work(7).into()]);
    // A server of schema 5 reads a number where a charge's should be, and finds none: the row is none it knows.
    let row = older.db.query_one("SELECT charge, flow FROM outbox WHERE id = 7", &[]).await.unwrap();
    assert_eq!((row.get::<_, Option<i64>>(0), row.get::<_, &str>(1)), (None, "payout"));
    let moved = Outbox { revision: 2, ..payout_work(7) };
    store.commit(set(2).replace(moved.clone(), 1)).await.unwrap();
    let of = Scan::PayoutsOf { tenant: TENANT, before: None, limit: 9 };
    assert_eq!(store.scan(of).await.unwrap(), [payout(7).into()]);
    assert_eq!(
        store.read(vec![RowKey::Outbox(TENANT, payout(7).id.into())]).await.unwrap(),
        [Some(moved.into())]
    );
}

#[tokio::test]
async fn an_older_server_at_work_does_not_notice_the_migration() {
    let database = schema_5().await;
    let older = Older::of(&database).await;
    let url = database.url();
    let busy = async {
        for number in 1..300_i64 {
            older.open(number).await;
            if number % 3 == 0 {
                assert_eq!(older.db.execute(&older.remove, &[&number]).await.unwrap(), 1);
            }
        }
    };
    let (migrated, ()) = tokio::join!(migrate(&url, Reach::Needed), busy);
    assert_eq!(migrated.unwrap().steps, ["payouts", "balanced", "lighter", "owners", "by tenant"]);
    let db = raw(&url).await;
    let odd = "SELECT (SELECT count(*) FROM outbox WHERE charge IS NULL OR payout IS NOT NULL), \
        (SELECT count(*) FROM outbox), (SELECT count(*) FROM charges)";
    let counts = db.query_one(odd, &[]).await.unwrap();
    assert_eq!((counts.get::<_, i64>(0), counts.get::<_, i64>(1), counts.get::<_, i64>(2)), (0, 200, 299));
}

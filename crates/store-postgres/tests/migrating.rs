//! From schema 3 to this one, with live rows and while servers of schema 3 go on: what they wrote reads as what it is,
//! what they go on writing is whole, and what they do not know stops them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::outbox::{Flow, Outbox, ParkReason, Payment, ProviderBinding, Saga};
use counterfoil_core::payments::charge::{Charge, ChargeOrder, ChargeStatus, ChargeSums, Wallet};
use counterfoil_core::saga::progress::SagaProgress;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{AccountId, OperationId};
use counterfoil_store::conformance::fixtures::{
    NOW, TENANT, charge, charge_id, claim_id, opening, operation, outbox, set,
};
use counterfoil_store::{Due, Row, RowKey, Scan, Store};
use counterfoil_store_postgres::{Migrated, NEEDED, PostgresStore, Reach, migrate};
use counterfoil_testkit::postgres::{Database, shared};
use std::sync::Arc;
use support::{open, raw};
use tokio_postgres::{Client, Statement};

/// A database as a release of schema 3 made it.
async fn schema_3() -> Database {
    let steps = [
        ("tables", include_str!("../src/schema/1_tables.sql")),
        ("rules", include_str!("../src/schema/2_rules.sql")),
        ("walls", include_str!("../src/schema/3_walls.sql")),
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
    Database::copy_of(&shared().unwrap(), "counterfoil_schema_3", make).await.unwrap()
}

/// A server of schema 3: the columns of its statements, prepared on a connection that outlives the migration.
struct Older {
    db: Client,
    charge: Statement,
    work: Statement,
    settle: Statement,
    take_over: Statement,
    remove: Statement,
    due: Statement,
}

const DUE: &str = "SELECT t.charge, t.claim, t.tenant, t.profile, t.endpoint, t.due_at, t.created_at, t.generation, \
    t.idle_calls, t.unknown, t.server_errors, t.first_sent_at, t.last_sent_at, t.parked, t.revision \
    FROM outbox AS t WHERE t.parked IS NULL AND t.due_at <= $1 ORDER BY t.due_at, t.charge LIMIT $2";

impl Older {
    async fn of(database: &Database) -> Older {
        let db = raw(&database.url()).await;
        let charge = "INSERT INTO charges (id, tenant, amount_minor, asset, payment_method, capture, destination, \
            description, metadata, status, provider, provider_reference, failure, decline_code, created_at, revision) \
            VALUES ($1, 1, 1250, 'USD', 'pm_card_visa', $2, 9, NULL, '{}', 'processing', 'stripe', NULL, NULL, NULL, \
            1790000000000, 1)";
        let work = "INSERT INTO outbox (charge, claim, tenant, profile, endpoint, due_at, created_at, generation, \
            idle_calls, unknown, server_errors, first_sent_at, last_sent_at, parked, revision) \
            VALUES ($1, $2, 1, 'stripe', 'http://127.0.0.1:8090', 1790000030000, 1790000000000, 1, 0, false, 0, \
            1790000000000, 1790000000000, $3, 1)";
        let settle = "UPDATE charges AS t SET status = $2, provider = 'stripe', provider_reference = NULL, \
            failure = NULL, decline_code = NULL, created_at = t.created_at, revision = t.revision + 1 WHERE t.id = $1";
        let take_over = "UPDATE outbox AS t SET claim = t.claim, tenant = t.tenant, profile = t.profile, \
            endpoint = t.endpoint, due_at = t.due_at + 1, created_at = t.created_at, generation = t.generation, \
            idle_calls = t.idle_calls, unknown = true, server_errors = t.server_errors, \
            first_sent_at = t.first_sent_at, last_sent_at = t.last_sent_at, parked = t.parked, \
            revision = t.revision + 1 WHERE t.charge = $1";
        let remove = "DELETE FROM outbox AS t WHERE t.charge = $1";
        Older {
            charge: db.prepare(charge).await.unwrap(),
            work: db.prepare(work).await.unwrap(),
            settle: db.prepare(settle).await.unwrap(),
            take_over: db.prepare(take_over).await.unwrap(),
            remove: db.prepare(remove).await.unwrap(),
            due: db.prepare(DUE).await.unwrap(),
            db,
        }
    }

    /// Opens a charge with its work, as one transaction.
    async fn open(&self, number: i64, capture: bool, parked: Option<&str>) {
        self.db.batch_execute("BEGIN").await.unwrap();
        self.db.execute(&self.charge, &[&number, &capture]).await.unwrap();
        let claim = claim_id(number).digest().as_bytes().to_vec();
        self.db.execute(&self.work, &[&number, &claim, &parked]).await.unwrap();
        self.db.batch_execute("COMMIT").await.unwrap();
    }

    async fn settle(&self, number: i64, status: &str) {
        assert_eq!(self.db.execute(&self.settle, &[&number, &status]).await.unwrap(), 1);
        assert_eq!(self.db.execute(&self.remove, &[&number]).await.unwrap(), 1);
    }

    /// A statement about that charge must fail with these words.
    async fn stopped(&self, statement: &Statement, number: i64, status: Option<&str>, words: &str) {
        let answer = match &status {
            Some(status) => self.db.execute(statement, &[&number, status]).await,
            None => self.db.execute(statement, &[&number]).await,
        };
        let error = answer.expect_err("it must be stopped");
        let said = error.as_db_error().expect("the server refused").message();
        assert!(said.contains(words), "{number}: {said}");
    }
}

/// What a release of schema 3 wrote, as it reads now.
fn charge_of_old(number: i64, capture: bool) -> Charge {
    let plain = charge(number);
    Charge {
        order: Arc::new(ChargeOrder { capture, ..ChargeOrder::clone(&plain.order) }),
        provider: ProviderBinding { profile: "stripe".into(), endpoint: "".into() },
        ..plain
    }
}

fn work_of_old(number: i64, flow: Flow) -> Outbox {
    Outbox { saga: Saga { flow, version: 1, progress: SagaProgress::START }, ..outbox(number) }
}

async fn reads(store: &PostgresStore, row: impl Into<Row>) {
    let row = row.into();
    assert_eq!(store.read(vec![row.key()]).await.unwrap(), [Some(row)]);
}

#[tokio::test]
async fn live_rows_read_as_what_they_are() {
    let database = schema_3().await;
    let older = Older::of(&database).await;
    for (number, capture, parked) in
        [(1, true, None), (2, true, None), (3, false, None), (4, true, Some("no_evidence")), (5, false, None)]
    {
        older.open(number, capture, parked).await;
    }
    older.settle(1, "succeeded").await;
    older.settle(5, "requires_capture").await;
    let migrated = migrate(&database.url(), Reach::Needed).await.unwrap();
    assert_eq!(
        migrated,
        Migrated {
            from: 3,
            to: NEEDED,
            steps: vec!["operations", "captured", "payouts", "balanced", "lighter", "owners", "by tenant"],
            left: vec!["tenants lead", "shorter rules", "look ahead", "groups", "kept"],
        }
    );

    let store = open(&database.url()).await;
    let captured = ChargeSums { captured: 1_250, ..ChargeSums::default() };
    // Filling in what was captured is one more write of the row.
    let settled =
        Charge { status: ChargeStatus::Succeeded, sums: captured, revision: 3, ..charge_of_old(1, true) };
    reads(&store, settled.clone()).await;
    reads(&store, charge_of_old(2, true)).await;
    reads(&store, work_of_old(2, Flow::Charge)).await;
    reads(&store, charge_of_old(3, false)).await;
    reads(&store, work_of_old(3, Flow::Authorize)).await;
    let parked = Outbox { parked: Some(ParkReason::NoEvidence), ..work_of_old(4, Flow::Charge) };
    reads(&store, parked.clone()).await;
    let held = Charge { status: ChargeStatus::RequiresCapture, revision: 2, ..charge_of_old(5, false) };
    reads(&store, held.clone()).await;
    let due = store.due(Due::Outbox, outbox(1).due_at, 9).await.unwrap();
    assert_eq!(due, [work_of_old(2, Flow::Charge).into(), work_of_old(3, Flow::Authorize).into()]);
    let of = Scan::ParkedOf { tenant: TENANT, before: None, limit: 9 };
    assert_eq!(store.scan(of).await.unwrap(), [parked.into()]);

    // And they go on: the charge at work succeeds, what was held is captured, what was captured is refunded.
    let done =
        Charge { status: ChargeStatus::Succeeded, sums: captured, revision: 2, ..charge_of_old(2, true) };
    let finish = set(1).replace(done.clone(), 1).remove(RowKey::Outbox(TENANT, charge_id(2).into()), 1);
    store.commit(finish).await.unwrap();
    let taken = Charge { working: Some(OperationId::from_i64(8)), revision: 3, ..held };
    store.commit(set(2).replace(taken, 2)).await.unwrap();
    let sums = ChargeSums { refunding: 100, ..captured };
    let refunding = Charge { sums, revision: 4, ..settled };
    store.commit(set(3).replace(refunding, 3).insert(operation(6, 1))).await.unwrap();
    reads(&store, done).await;
}

#[tokio::test]
async fn an_older_server_goes_on_with_what_it_knows() {
    let database = schema_3().await;
    let older = Older::of(&database).await;
    older.open(1, true, None).await;
    migrate(&database.url(), Reach::Needed).await.unwrap();
    let store = open(&database.url()).await;

    // What it opens, a newer server can go on with; the charge says which saga its work is.
    older.open(2, true, None).await;
    older.open(3, false, None).await;
    reads(&store, charge_of_old(2, true)).await;
    reads(&store, work_of_old(2, Flow::Charge)).await;
    reads(&store, work_of_old(3, Flow::Authorize)).await;
    // What a newer one opened, it can go on with.
    store.commit(opening(4)).await.unwrap();
    let due: Vec<i64> = older
        .db
        .query(&older.due, &[&outbox(1).due_at.ms(), &9_i64])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(due, [1, 2, 3, 4]);
    for number in 1..=4_i64 {
        assert_eq!(older.db.execute(&older.take_over, &[&number]).await.unwrap(), 1);
    }
    // What it settles is whole.
    older.settle(1, "succeeded").await;
    older.settle(2, "failed").await;
    older.settle(3, "requires_capture").await;
    older.settle(4, "succeeded").await;
    let captured = ChargeSums { captured: 1_250, ..ChargeSums::default() };
    let succeeded = Charge { status: ChargeStatus::Succeeded, sums: captured, revision: 2, ..charge(4) };
    reads(
        &store,
        Charge { provider: charge_of_old(1, true).provider, id: charge_id(1), ..succeeded.clone() },
    )
    .await;
    reads(&store, Charge { status: ChargeStatus::Failed, revision: 2, ..charge_of_old(2, true) }).await;
    reads(&store, Charge { status: ChargeStatus::RequiresCapture, revision: 2, ..charge_of_old(3, false) })
        .await;
    reads(&store, succeeded).await;
    assert_eq!(store.tally(NOW).await.unwrap().pending, 0);
}

#[tokio::test]
async fn an_older_server_is_stopped_before_work_it_does_not_know() {
    let database = schema_3().await;
    let older = Older::of(&database).await;
    migrate(&database.url(), Reach::Needed).await.unwrap();
    let store = open(&database.url()).await;
    // A charge that a wallet pays in part: it would ask the provider for the whole.
    let wallet = Some(Wallet { account: AccountId::from_i64(5), amount: 250 });
    let split = Charge {
        order: Arc::new(ChargeOrder { wallet, ..ChargeOrder::clone(&charge(1).order) }),
        ..charge(1)
    };
    store.commit(set(1).insert(split).insert(work_of_old(1, Flow::Split))).await.unwrap();
    // Refunds of one charge.
    let captured = ChargeSums { captured: 1_250, refunding: 200, ..ChargeSums::default() };
    store
        .commit(set(2).insert(Charge { status: ChargeStatus::Succeeded, sums: captured, ..charge(2) }))
        .await
        .unwrap();
    for number in [8, 9] {
        let id = OperationId::from_i64(number);
        let work = Outbox {
            id: id.into(),
            payment: Payment::Charge(charge_id(2)),
            ..work_of_old(number, Flow::Refund)
        };
        store.commit(set(number).insert(operation(number, 2)).insert(work)).await.unwrap();
    }
    // A capture under way.
    let working = Some(OperationId::from_i64(10));
    let held = Charge { status: ChargeStatus::RequiresCapture, working, ..charge(3) };
    store.commit(set(3).insert(held)).await.unwrap();

    for number in [1, 2] {
        older.stopped(&older.take_over, number, None, "only a newer server knows this work").await;
    }
    for number in [1, 2, 3] {
        older
            .stopped(&older.settle, number, Some("succeeded"), "only a newer server knows this charge")
            .await;
    }
    // The newer one does what the older may not.
    let moved = Outbox { revision: 2, ..work_of_old(1, Flow::Split) };
    store.commit(set(4).replace(moved.clone(), 1)).await.unwrap();
    reads(&store, moved).await;
}

#[tokio::test]
async fn an_older_server_at_work_does_not_notice_the_migration() {
    let database = schema_3().await;
    let (older, other) = (Older::of(&database).await, Older::of(&database).await);
    let url = database.url();
    let busy = async |server: &Older, numbers: std::ops::Range<i64>| {
        for number in numbers {
            server.open(number, number % 2 == 0, None).await;
            if number % 3 == 0 {
                server.settle(number, if number % 2 == 0 { "succeeded" } else { "requires_capture" }).await;
            }
        }
    };
    let (migrated, (), ()) =
        tokio::join!(migrate(&url, Reach::Needed), busy(&older, 1..300), busy(&other, 1_000..1_300));
    assert_eq!(
        migrated.unwrap().steps,
        ["operations", "captured", "payouts", "balanced", "lighter", "owners", "by tenant"]
    );
    let db = raw(&url).await;
    let odd = "SELECT (SELECT count(*) FROM charges WHERE (status = 'succeeded') <> (captured = amount_minor)), \
        (SELECT count(*) FROM outbox JOIN charges ON charges.id = outbox.charge \
         WHERE outbox.id <> charge OR (flow = 'charge') <> capture), (SELECT count(*) FROM charges)";
    let counts = db.query_one(odd, &[]).await.unwrap();
    assert_eq!((counts.get::<_, i64>(0), counts.get::<_, i64>(1), counts.get::<_, i64>(2)), (0, 0, 599));
}

//! Migrations, with test-only steps. An expand step runs while older servers go on. A contract step
//! runs on request only. Databases with edited steps are refused.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_store::conformance::fixtures::{charge, opening, set};
use counterfoil_store::{CommitError, Position, Store};
use counterfoil_store_postgres::{
    Migrated, MigrationStep, OpenError, Options, PostgresStore, Reach, Schema, VERSION, migrate,
};
use support::{database, open, raw};
use tokio_postgres::Client;

/// Adds a column, fills it without holding locks, and makes it mandatory. The default serves older
/// servers.
const EXPAND: MigrationStep = MigrationStep {
    name: "channels",
    serves: VERSION,
    sql: "ALTER TABLE counterfoil.charges ADD COLUMN IF NOT EXISTS channel TEXT, ALTER COLUMN channel SET DEFAULT 'web'
--;
DO $$
BEGIN
    LOOP
        UPDATE counterfoil.charges AS t SET channel = 'web', revision = t.revision + 1
        WHERE (t.tenant, t.id) IN (SELECT tenant, id FROM counterfoil.charges WHERE channel IS NULL LIMIT 3);
        EXIT WHEN NOT FOUND;
        COMMIT;
    END LOOP;
END $$
--;
ALTER TABLE counterfoil.charges ALTER COLUMN channel SET NOT NULL",
};

/// Takes the default away: servers that do not write the column fail from here on.
const CONTRACT: MigrationStep = MigrationStep {
    name: "channels are written",
    serves: VERSION + 1,
    sql: "ALTER TABLE charges ALTER COLUMN channel DROP DEFAULT",
};

/// The schema of the next release, which needs the expand step only.
fn next_release() -> Schema {
    Schema::current().extended_by(&[EXPAND, CONTRACT], VERSION + 1)
}

async fn error(url: &str, schema: Schema) -> OpenError {
    PostgresStore::open_with_schema(url, Options::default(), schema).await.map(|_| ()).unwrap_err()
}

async fn count(db: &Client, what: &str) -> i64 {
    db.query_one(&format!("SELECT count(*) FROM {what}"), &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn an_expand_step_runs_while_an_older_server_goes_on() {
    let (database, next) = (database().await, next_release());
    let url = database.url();
    let older = open(&url).await;
    for number in 1..=20 {
        older.commit(opening(number)).await.unwrap();
    }
    assert_eq!(
        error(&url, next.clone()).await,
        OpenError::Behind { found: VERSION, known: VERSION + 1 },
        "the next release needs its expand step"
    );
    let busy = async {
        for number in 21..=120 {
            // A commit may lose its row to the migration or wait too long for its table. Then it is
            // sent again.
            while let Err(error) = older.commit(opening(number)).await {
                assert_eq!(error, CommitError::Conflict);
            }
        }
    };
    let (migrated, ()) = tokio::join!(next.migrate(&url, Reach::Needed), busy);
    let expected = Migrated {
        from: VERSION,
        to: VERSION + 1,
        steps: vec!["channels"],
        left: vec!["channels are written"],
    };
    assert_eq!(migrated.unwrap(), expected);
    // Servers of both releases serve the database, old connections and new ones.
    older.commit(opening(121)).await.unwrap();
    open(&url).await.commit(opening(122)).await.unwrap();
    let newer = PostgresStore::open_with_schema(&url, Options::default(), next).await.unwrap();
    newer.commit(opening(123)).await.unwrap();
    let db = raw(&url).await;
    assert_eq!(count(&db, "charges WHERE channel = 'web'").await, 123);
    assert_eq!(newer.feed(Position(0), 1_000).await.unwrap().len(), 123);
}

#[tokio::test]
async fn a_contract_step_waits_until_it_is_asked_for_and_ends_older_servers() {
    let (database, next) = (database().await, next_release());
    let url = database.url();
    next.migrate(&url, Reach::Needed).await.unwrap();
    let again = next.migrate(&url, Reach::Needed).await.unwrap();
    assert_eq!((again.steps, again.left), (vec![], vec!["channels are written"]));
    // An older release knows no step beyond its own and leaves them alone.
    assert_eq!(migrate(&url, Reach::Newest).await.unwrap().steps, Vec::<&str>::new());
    let older = open(&url).await;
    let migrated = next.migrate(&url, Reach::Newest).await.unwrap();
    assert_eq!((migrated.to, migrated.steps), (VERSION + 2, vec!["channels are written"]));
    assert!(older.commit(set(1).insert(charge(1))).await.is_err(), "the column has no default any more");
    assert_eq!(error(&url, Schema::current()).await, OpenError::Ahead { found: VERSION + 2, known: VERSION });
    PostgresStore::open_with_schema(&url, Options::default(), next).await.unwrap();
}

#[tokio::test]
async fn a_new_database_gets_all_steps_at_once() {
    let database = support::empty().await;
    let migrated = next_release().migrate(&database.url(), Reach::Needed).await.unwrap();
    assert_eq!((migrated.from, migrated.to, migrated.left.len()), (0, VERSION + 2, 0));
}

#[tokio::test]
async fn an_interrupted_step_is_run_again_from_its_beginning() {
    let (database, next) = (database().await, next_release());
    let url = database.url();
    let store = open(&url).await;
    store.commit(opening(1)).await.unwrap();
    // A crash after the first statement: the column exists, and the step is not recorded.
    let first = EXPAND.sql.split("\n--;\n").next().unwrap();
    let db = raw(&url).await;
    db.batch_execute(first).await.unwrap();
    assert_eq!(next.migrate(&url, Reach::Needed).await.unwrap().steps, ["channels"]);
    assert_eq!(count(&db, "charges WHERE channel = 'web'").await, 1);
    // A failed transaction leaves nothing behind.
    let broken = MigrationStep { name: "broken", serves: 1, sql: "CREATE TABLE half (); SELECT 1 / 0" };
    let failed = Schema::current().extended_by(&[EXPAND, broken], VERSION + 2);
    let refused = failed.migrate(&url, Reach::Needed).await.unwrap_err();
    assert!(refused.to_string().contains("step 3 (broken) failed: division by zero"), "{refused}");
    assert_eq!(count(&db, "pg_class WHERE relname = 'half'").await, 0);
}

#[tokio::test]
async fn a_database_with_an_edited_step_is_refused_in_one_sentence() {
    let database = database().await;
    let (url, db) = (database.url(), raw(&database.url()).await);
    db.batch_execute("UPDATE schema_steps SET digest = 'of another text' WHERE version = 1").await.unwrap();
    assert_eq!(error(&url, Schema::current()).await, OpenError::EditedStep(1));
    let refused = migrate(&url, Reach::Newest).await.unwrap_err();
    assert_eq!(refused, OpenError::EditedStep(1));
    assert_eq!(
        refused.to_string(),
        "schema step 1 of this database differs from the one in this build, and until the first release such a database \
         is not migrated: make a new database, or run the build that made this one"
    );
}

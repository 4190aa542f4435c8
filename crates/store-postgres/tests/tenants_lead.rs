//! The tenant leads every key of what belongs to one: in the catalogue of a database that is up to date, and on the way there,
//! with live rows and while a server of schema 8 goes on.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::TenantId;
use counterfoil_store::conformance::fixtures::ledger::{
    FLOOR, account, account_id, moving, opened, posted, reversal, snapshot, transaction_id, transfer,
};
use counterfoil_store::conformance::fixtures::{TENANT, charge, charge_id, claim_id, set, tenant};
use counterfoil_store::{EntryPage, Position, Row, RowKey, Scan, Store, Upto};
use counterfoil_store_postgres::{NEEDED, PostgresStore, Reach, VERSION, migrate};
use counterfoil_testkit::postgres::{Database, shared};
use support::{database, open, raw};
use tokio_postgres::Client;

/// Tables that belong to no tenant, or are asked before one is known; everything else must begin with it.
const NOBODYS: [(&str, &str); 10] = [
    ("schema_steps", "the steps of the database itself"),
    ("meta", "the instance's secret"),
    ("head", "one row: the last position of all"),
    ("commits", "one order over all tenants; what a commit touched names theirs"),
    ("commit_groups", "as commits"),
    ("slots", "processes, not tenants, hold them"),
    ("cursors", "readers of the whole feed"),
    ("tenants", "the tenants themselves, by name"),
    ("api_keys", "asked by the secret's digest to learn whose it is"),
    ("unproven", "has no key, and no rows between commits"),
];

/// The first columns of the keys of a table: the primary one's, and those of other unique indexes.
async fn keys(db: &Client) -> Vec<(String, String, bool)> {
    let sql = "SELECT c.relname::text, a.attname::text, i.indisprimary FROM pg_class AS c \
        JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisunique \
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] \
        WHERE c.relnamespace = 'counterfoil'::regnamespace AND c.relkind IN ('r', 'p')";
    let rows = db.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

#[tokio::test]
async fn every_key_of_what_is_a_tenants_begins_with_the_tenant() {
    let database = database().await;
    let db = raw(&database.url()).await;
    let keys = keys(&db).await;
    let names = db
        .query("SELECT relname::text FROM pg_class WHERE relnamespace = 'counterfoil'::regnamespace AND relkind IN ('r', 'p')", &[])
        .await
        .unwrap();
    let tables: Vec<String> = names.iter().map(|row| row.get(0)).collect();
    for (known, why) in NOBODYS {
        assert!(tables.iter().any(|table| table == known), "{known} ({why}) is gone: take it off the list");
    }
    let owned: Vec<&String> =
        tables.iter().filter(|table| NOBODYS.iter().all(|(known, _)| known != table)).collect();
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
async fn no_index_is_there_twice() {
    let database = database().await;
    let db = raw(&database.url()).await;
    let twice = "SELECT a.indexrelid::regclass::text, b.indexrelid::regclass::text FROM pg_index AS a JOIN pg_index AS b \
        ON a.indrelid = b.indrelid AND a.indexrelid <> b.indexrelid AND b.indpred IS NULL AND a.indpred IS NULL \
        AND (b.indkey::text || ' ') LIKE (a.indkey::text || ' %') \
        WHERE a.indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'counterfoil'::regnamespace)";
    let rows = db.query(twice, &[]).await.unwrap();
    let found: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(found, [], "the second serves what the first does");
}

/// A database as a release of schema 8 made it.
async fn schema_8() -> Database {
    let steps = [
        ("tables", include_str!("../src/schema/1_tables.sql")),
        ("rules", include_str!("../src/schema/2_rules.sql")),
        ("walls", include_str!("../src/schema/3_walls.sql")),
        ("operations", include_str!("../src/schema/4_operations.sql")),
        ("captured", include_str!("../src/schema/5_captured.sql")),
        ("payouts", include_str!("../src/schema/6_payouts.sql")),
        ("balanced", include_str!("../src/schema/7_balanced.sql")),
        ("lighter", include_str!("../src/schema/8_lighter.sql")),
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
    Database::copy_of(&shared().unwrap(), "counterfoil_schema_8", make).await.unwrap()
}

/// A server of schema 8: what it wrote of the ledger, none of it with a tenant where there was no column for it.
struct Older(Client);

impl Older {
    async fn of(database: &Database) -> Older {
        Older(raw(&database.url()).await)
    }

    async fn execute(&self, sql: &str) {
        self.0.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Tenants 1 and 2, and a guarded account of each under the tenant's own number.
    async fn found(&self) {
        for number in [1, 2] {
            self.execute(&format!(
                "INSERT INTO tenants VALUES ('t{number}', {number}, NULL, 1, 1); \
                 INSERT INTO accounts VALUES ({number}, {number}, 'wallet:{number}', 'USD', 'credit', 0, NULL, 1, 1, '{{}}', \
                 1790000000000, 1); \
                 INSERT INTO accounts SELECT id + 10, tenant, 'world', asset, normal, NULL, NULL, shards, widest, metadata, created_at, \
                 revision FROM accounts WHERE id = {number}; \
                 INSERT INTO balances VALUES ({number}, 0, 0, 0, 0, 0, NULL, 1)"
            ))
            .await;
        }
    }

    /// One commit as its seal wrote it: header, entries, and what it touched.
    async fn post(&self, position: i64, owner: i64) {
        let number = position + 100;
        self.execute(&format!(
            "WITH moved AS (UPDATE head SET position = {position}, at = {position} WHERE one RETURNING 1), \
             written AS (INSERT INTO commits VALUES ({position}, {position}, {position}, 'transaction {number} balance {owner} 0')), \
             opened AS (INSERT INTO journal_transactions VALUES ({number}, {owner}, 'transfer', NULL, 2, '{{}}', 1790000000000)), \
             entered AS (INSERT INTO journal_entries VALUES ({number}, 0, {position}, {position}, {owner}, 'debit', 'posted', 1, 'USD'), \
                 ({number}, 1, {position}, {position}, {owner} + 10, 'credit', 'posted', 1, 'USD')) SELECT 1 FROM moved; \
             UPDATE balances SET posted = posted + 1, revision = revision + 1 WHERE account = {owner}"
        ))
        .await;
    }
}

async fn legs_of(store: &PostgresStore, owner: i64) -> usize {
    let page = EntryPage::After(Position::START);
    store.entries(TenantId::from_i64(owner), account_id(owner), page, 1_000).await.unwrap().len()
}

#[tokio::test]
async fn live_rows_get_their_owners_while_a_server_of_schema_8_goes_on() {
    let database = schema_8().await;
    let older = Older::of(&database).await;
    older.found().await;
    let url = database.url();
    for position in 1..=20 {
        older.post(position, 1 + position % 2).await;
    }
    older
        .execute(
            "INSERT INTO reversals VALUES (101, 102); INSERT INTO snapshots VALUES (2, 4, 4, 1, 2, 3, 4, 4)",
        )
        .await;
    let busy = async {
        for position in 21..=120 {
            older.post(position, 1 + position % 2).await;
        }
    };
    let (migrated, ()) = tokio::join!(migrate(&url, Reach::Needed), busy);
    let migrated = migrated.unwrap();
    assert_eq!((migrated.from, migrated.to), (8, NEEDED));
    assert_eq!(
        (migrated.steps, migrated.left),
        (vec!["owners", "by tenant"], vec!["tenants lead", "shorter rules", "look ahead", "groups", "kept"])
    );
    // After it, too: both releases serve.
    older.post(121, 1).await;
    let store = open(&url).await;
    store.commit(set(500).insert(transfer(900, 1, 2, 5)).shift(moving(1, FLOOR, posted(5)))).await.unwrap();
    assert_eq!((legs_of(&store, 1).await, legs_of(&store, 2).await), (62, 60));
    older
        .execute(
            "INSERT INTO snapshots VALUES (1, 7, 7, 1, 2, 3, 4, 4); INSERT INTO reversals VALUES (103, 104)",
        )
        .await;

    let newest = migrate(&url, Reach::Newest).await.unwrap();
    assert_eq!(
        (newest.from, newest.to, newest.steps),
        (NEEDED, VERSION, vec!["tenants lead", "shorter rules", "look ahead", "groups", "kept"])
    );
    let db = raw(&url).await;
    let strays = "SELECT (SELECT count(*) FROM journal_entries AS e JOIN journal_transactions AS t ON t.id = e.transaction \
        WHERE e.tenant <> t.tenant), (SELECT count(*) FROM balances WHERE tenant <> account), \
        (SELECT count(*) FROM snapshots WHERE tenant <> account), (SELECT count(*) FROM reversals WHERE tenant <> 1 + original % 2)";
    let row = db.query_one(strays, &[]).await.unwrap();
    assert_eq!([0, 1, 2, 3].map(|at| row.get::<_, i64>(at)), [0; 4]);
    let whose = |tenant: i64, key: fn(TenantId) -> RowKey| key(TenantId::from_i64(tenant));
    let snapshot = |tenant| RowKey::Snapshot(tenant, account_id(2), Position(4));
    let undone = |tenant| RowKey::Reversal(tenant, transaction_id(101));
    for (key, owner) in [(snapshot as fn(TenantId) -> RowKey, 2), (undone, 2)] {
        let rows = store.read(vec![whose(owner, key), whose(3 - owner, key)]).await.unwrap();
        assert!(rows[0].is_some() && rows[1].is_none(), "{rows:?}");
    }
    // The store of before goes on over the change.
    store.commit(set(600).insert(charge(7))).await.unwrap();
    assert_eq!(
        store.read(vec![RowKey::Charge(TENANT, charge_id(7))]).await.unwrap(),
        [Some(charge(7).into())]
    );
}

#[tokio::test]
async fn commits_that_did_not_tell_the_tenant_are_told_with_it() {
    let database = schema_8().await;
    let older = Older::of(&database).await;
    older.found().await;
    older.post(1, 2).await;
    let claim = claim_id(3).digest().hex();
    older
        .execute(&format!(
            "INSERT INTO commits VALUES (2, 2, 2, 'claim {claim} outbox 102 transaction 101 cursor projection'), \
             (3, 3, 3, 'claim {claim}'), (4, 4, 4, 'claim {claim} account 1 snapshot 2 4'); UPDATE head SET position = 4, at = 4"
        ))
        .await;
    migrate(&database.url(), Reach::Newest).await.unwrap();
    let store = open(&database.url()).await;
    let (one, two) = (TenantId::from_i64(1), TenantId::from_i64(2));
    let told: Vec<Vec<RowKey>> =
        store.feed(Position::START, 9).await.unwrap().into_iter().map(|commit| commit.touched).collect();
    let transaction = RowKey::Transaction(two, transaction_id(101));
    assert_eq!(told[0], [transaction.clone(), RowKey::Balance(two, account_id(2), 0)]);
    // What is gone belongs to whom the rest belongs to.
    assert_eq!(told[1].len(), 4);
    assert_eq!(told[1][0], RowKey::Claim(two, claim_id(3)));
    assert_eq!(told[1][2], transaction);
    // Where nothing tells whose it was, or several could be, it is left out.
    assert_eq!(told[2], []);
    assert_eq!(
        told[3],
        [RowKey::Account(one, account_id(1)), RowKey::Snapshot(two, account_id(2), Position(4))]
    );
}

#[tokio::test]
async fn an_interrupted_migration_goes_on_where_it_was() {
    let database = schema_8().await;
    let older = Older::of(&database).await;
    older.found().await;
    for position in 1..=5 {
        older.post(position, 1).await;
    }
    migrate(&database.url(), Reach::Needed).await.unwrap();
    // As a crash leaves it: some entries without an owner, an index half-built, and no mark.
    older
        .execute(
            "DELETE FROM schema_steps WHERE version >= 10; ALTER TABLE journal_entries DISABLE TRIGGER owner_stays; \
             ALTER TABLE journal_entries DROP CONSTRAINT has_an_owner; \
             UPDATE journal_entries SET tenant = NULL WHERE transaction > 103; \
             ALTER TABLE journal_entries ADD CONSTRAINT has_an_owner CHECK (tenant IS NOT NULL) NOT VALID; \
             ALTER TABLE journal_entries ENABLE ALWAYS TRIGGER owner_stays; DROP INDEX charges_of_tenant; \
             UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = 'holds_of_tenant'::regclass",
        )
        .await;
    let again = migrate(&database.url(), Reach::Newest).await.unwrap();
    assert_eq!(again.steps, ["by tenant", "tenants lead", "shorter rules", "look ahead", "groups", "kept"]);
    let store = open(&database.url()).await;
    assert_eq!(legs_of(&store, 1).await, 5);
    let of = Scan::Snapshots { tenant: TENANT, account: account_id(1), upto: Upto::Now, limit: 9 };
    assert_eq!(store.scan(of).await.unwrap(), Vec::<Row>::new());
}

#[tokio::test]
async fn a_number_twice_is_two_rows_of_two_tenants() {
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

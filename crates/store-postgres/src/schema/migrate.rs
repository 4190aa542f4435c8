//! Migrations: bring a database forward step by step while servers keep running.
//!
//! A step and the record of its version are one transaction, so a crash leaves either version
//! intact. A step of several statements is recorded after the last of them and is run again after a
//! crash.

use super::{MigrationStep, Schema};
use crate::error::{OpenError, reason};
use crate::session::{Purpose, Session, Target};
use counterfoil_core::types::digest::Digest;
use std::time::Duration;

/// The advisory lock of migrations.
const LOCK: i64 = 0x436f_666f_0000;
/// Attempts at a step whose tables are in use. An attempt waits for a second, so that servers do
/// not queue for long.
const TRIES_MAX: u32 = 30;
/// Attempts to get the advisory lock: one minute.
const LOCK_TRIES_MAX: u32 = 120;
const PAUSE: Duration = Duration::from_millis(500);

/// Adds the schema to the search path of a database that contains nothing else, for the users of
/// `psql`.
const SET_SEARCH_PATH: &str = r#"DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'public') THEN
        EXECUTE format('ALTER DATABASE %I SET search_path = "$user", public, counterfoil', current_database());
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    NULL;
END
$$"#;

/// How far to migrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To the version that this build needs; older servers keep working. An empty database gets all
    /// steps.
    Needed,
    /// To the newest version, for when no server of an older release runs.
    Newest,
}

/// The result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 for an empty database.
    pub from: u32,
    pub to: u32,
    /// The names of the steps that were run.
    pub steps: Vec<&'static str>,
    /// The names of the steps that wait until no older server runs.
    pub left: Vec<&'static str>,
}

/// Migrates the database at `url`. Servers may keep running, and several processes may migrate at
/// once.
pub async fn migrate(url: &str, reach: Reach) -> Result<Migrated, OpenError> {
    Schema::current().migrate(url, reach).await
}

impl Schema {
    /// Migrates the database at `url` to this schema.
    pub async fn migrate(&self, url: &str, reach: Reach) -> Result<Migrated, OpenError> {
        let session = Session::open(&Target::parse(url)?, Purpose::Migrate).await?;
        lock(&session).await?;
        session.command("CREATE SCHEMA IF NOT EXISTS counterfoil").await?;
        session
            .command(
                "CREATE TABLE IF NOT EXISTS counterfoil.schema_steps (version BIGINT PRIMARY KEY, name TEXT NOT NULL, \
                 serves BIGINT NOT NULL, digest TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())",
            )
            .await?;
        let from = self.find(&session).await?.map_or(0, |found| found.version);
        // No server uses a database without tables.
        let last = if from == 0 || reach == Reach::Newest { self.version() } else { self.needed };
        let (mut steps, mut left) = (Vec::new(), Vec::new());
        for (version, step) in (1_u32..).zip(&self.steps).filter(|(version, _)| *version > from) {
            if version > last {
                left.push(step.name);
                continue;
            }
            let statements = step.statements();
            if let [only] = statements.as_slice() {
                run_transaction(&session, version, step, only).await?;
            } else {
                run_statements(&session, version, step, &statements).await?;
            }
            tracing::info!(version, name = step.name, "migrated the database");
            steps.push(step.name);
        }
        if from == 0 {
            session.command(SET_SEARCH_PATH).await?;
        }
        Ok(Migrated { from, to: from.max(last), steps, left })
    }
}

/// Waits for the advisory lock by polling. A statement that waited for the lock would hold a
/// snapshot, and a concurrent index build of the other process would wait for that snapshot.
async fn lock(session: &Session) -> Result<(), OpenError> {
    for _ in 0..LOCK_TRIES_MAX {
        let rows = session.query_once("SELECT pg_try_advisory_lock($1)", &[&LOCK]).await?;
        if rows.first().is_some_and(|row| row.try_get(0).unwrap_or(false)) {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    let why = "another process migrates this database: run this again when it has finished";
    Err(OpenError::Failed(why.to_owned()))
}

/// Runs a step statement by statement, then records it. The statements have no timeout, because
/// they take as long as the tables are large.
async fn run_statements(
    session: &Session,
    version: u32,
    step: &MigrationStep,
    statements: &[&str],
) -> Result<(), OpenError> {
    session.command("SET statement_timeout = 0; SET lock_timeout = 0").await?;
    for statement in statements {
        run(session, version, step, statement).await?;
    }
    session.command("SET statement_timeout = '60s'; SET lock_timeout = '1s'").await?;
    run(session, version, step, &record(version, step)).await
}

/// Runs a step and its record as one transaction.
async fn run_transaction(
    session: &Session,
    version: u32,
    step: &MigrationStep,
    sql: &str,
) -> Result<(), OpenError> {
    let secret = if version == 1 { insert_secret()? } else { String::new() };
    let record = record(version, step);
    run(session, version, step, &format!("BEGIN; {sql}\n; {secret} {record}; COMMIT")).await
}

/// The statement that records a step.
fn record(version: u32, step: &MigrationStep) -> String {
    format!(
        "INSERT INTO counterfoil.schema_steps (version, name, serves, digest) VALUES ({version}, '{}', {}, '{}')",
        step.name,
        step.serves,
        step.digest(),
    )
}

/// Runs a command, and retries it while its tables are in use (lock timeout or deadlock).
async fn run(session: &Session, version: u32, step: &MigrationStep, sql: &str) -> Result<(), OpenError> {
    for _ in 0..TRIES_MAX {
        let Err(error) = session.command(sql).await else { return Ok(()) };
        // A failed command may leave an open, aborted transaction.
        session.command("ROLLBACK").await?;
        if error.code().is_none_or(|code| !matches!(code.code(), "55P03" | "40P01")) {
            let why = format!("step {version} ({}) failed: {}", step.name, reason(&error));
            return Err(OpenError::Failed(why));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(OpenError::Failed(format!("step {version} ({}) waited too long for tables in use", step.name)))
}

/// The statement that stores the instance secret. The first step generates the secret once.
fn insert_secret() -> Result<String, OpenError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| OpenError::Failed(format!("no random bytes: {error}")))?;
    let hex = Digest::from_bytes(bytes).hex();
    Ok(format!("INSERT INTO counterfoil.meta (name, value) VALUES ('secret', '\\x{hex}'), ('barrier', '');"))
}

//! The tables' versions: how they are brought forward while older servers go on, and what a server insists on.
//!
//! A step is SQL that turns one version into the next. It runs in one transaction with the mark of its version, so a
//! crash leaves the old version or the new one. Released steps are never edited; their digests are kept and compared.
//! A step that only adds (*expand*) leaves older servers working; one that takes away (*contract*) names the oldest
//! version a server must know to go on, and is released only when every server that may run knows at least that.

use crate::error::{OpenError, reason};
use crate::session::{Purpose, Session, Target};
use counterfoil_core::types::digest::Digest;
use std::time::Duration;

/// The version this build needs.
pub const VERSION: u32 = 9;

/// A step: its name, the oldest version a server must know to work with its result, and its SQL.
struct Step {
    name: &'static str,
    serves: u32,
    sql: &'static str,
}

/// Step `n` (counted from 1) leads from version `n - 1` to version `n`.
const STEPS: [Step; 9] = [
    Step { name: "tables", serves: 3, sql: include_str!("1_tables.sql") },
    Step { name: "rules", serves: 3, sql: include_str!("2_rules.sql") },
    Step { name: "walls", serves: 3, sql: include_str!("3_walls.sql") },
    Step { name: "operations", serves: 3, sql: include_str!("4_operations.sql") },
    Step { name: "captured", serves: 3, sql: include_str!("5_captured.sql") },
    Step { name: "payouts", serves: 3, sql: include_str!("6_payouts.sql") },
    Step { name: "balanced", serves: 3, sql: include_str!("7_balanced.sql") },
    Step { name: "lighter", serves: 3, sql: include_str!("8_lighter.sql") },
    Step { name: "tenants lead", serves: 9, sql: include_str!("9_tenants_lead.sql") },
];
const _: () = assert!(STEPS.len() == VERSION as usize, "a new step makes a new version");

/// Serialises whoever brings a database forward.
const LOCK: i64 = 0x436f_666f_0000;
/// A table in use is waited for a second; then the step is tried again, so that nobody waits behind it for long.
const TRIES_MAX: u32 = 30;
const PAUSE: Duration = Duration::from_millis(500);

/// In a database that holds nothing else, `psql` shows the tables without being told where they are.
const SHOW: &str = r#"DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'public') THEN
        EXECUTE format('ALTER DATABASE %I SET search_path = "$user", public, counterfoil', current_database());
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    NULL;
END
$$"#;

/// What was done to a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version it had; 0 if it had none.
    pub from: u32,
    /// The version it has.
    pub to: u32,
    /// The names of the steps that were taken.
    pub steps: Vec<&'static str>,
}

/// What a database says of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its version.
    pub(crate) version: u32,
    /// The oldest version a server must know.
    pub(crate) serves: u32,
}

/// Brings the database at `url` to [`VERSION`]. Servers may go on meanwhile; several may do this at once.
pub async fn migrate(url: &str) -> Result<Migrated, OpenError> {
    let session = Session::open(&Target::parse(url)?, Purpose::Migrate).await?;
    // Whoever holds the lock finishes its step; waiting for it is not waiting for a table.
    let alone = format!("SET lock_timeout = 0; SELECT pg_advisory_lock({LOCK}); SET lock_timeout = '1s'");
    session.command(&alone).await?;
    session.command("CREATE SCHEMA IF NOT EXISTS counterfoil").await?;
    session
        .command(
        "CREATE TABLE IF NOT EXISTS counterfoil.schema_steps (version BIGINT PRIMARY KEY, name TEXT NOT NULL, \
         serves BIGINT NOT NULL, digest TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())",
        )
        .await?;
    let from = verify(&session).await?.map_or(0, |found| found.version);
    let mut steps = Vec::new();
    for (version, step) in (1_u32..).zip(&STEPS) {
        if version > from {
            apply(&session, version, step).await?;
            steps.push(step.name);
        }
    }
    if from == 0 {
        session.command(SHOW).await?;
    }
    Ok(Migrated { from, to: from.max(VERSION), steps })
}

async fn apply(session: &Session, version: u32, step: &Step) -> Result<(), OpenError> {
    let mark = format!(
        "INSERT INTO counterfoil.schema_steps (version, name, serves, digest) VALUES ({version}, '{}', {}, '{}')",
        step.name,
        step.serves,
        digest(step),
    );
    let secret = if version == 1 { secret()? } else { String::new() };
    let whole = format!("BEGIN; {}\n; {secret} {mark}; COMMIT", step.sql);
    for _ in 0..TRIES_MAX {
        let Err(error) = session.command(&whole).await else {
            tracing::info!(version, name = step.name, "the database was brought forward");
            return Ok(());
        };
        // An error inside leaves the transaction open and failed.
        session.command("ROLLBACK").await?;
        // A table in use, or a server that holds one of them and waits for another.
        if error.code().is_none_or(|code| !matches!(code.code(), "55P03" | "40P01")) {
            let why = format!("step {version} ({}) failed: {}", step.name, reason(&error));
            return Err(OpenError::Failed(why));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(OpenError::Failed(format!("step {version} ({}) waited too long for tables in use", step.name)))
}

/// Refuses a database this build cannot serve.
pub(crate) async fn check(session: &Session) -> Result<(), OpenError> {
    let found = verify(session).await?.ok_or(OpenError::NotMigrated)?;
    if found.version < VERSION {
        return Err(OpenError::Behind { found: found.version, known: VERSION });
    }
    if found.serves > VERSION {
        return Err(OpenError::Ahead { found: found.version, known: VERSION });
    }
    Ok(())
}

/// Reads the marks and compares those of steps this build knows; nothing if there are none.
async fn verify(session: &Session) -> Result<Option<Found>, OpenError> {
    let there = session.ask("SELECT to_regclass('counterfoil.schema_steps') IS NOT NULL", &[]).await?;
    if !there.first().is_some_and(|row| row.try_get(0).unwrap_or(false)) {
        return Ok(None);
    }
    let marks = session
        .ask("SELECT version, serves, digest FROM counterfoil.schema_steps ORDER BY version", &[])
        .await?;
    let mut found = None;
    for mark in &marks {
        let version = u32::try_from(mark.try_get::<_, i64>(0)?).unwrap_or(u32::MAX);
        let serves = u32::try_from(mark.try_get::<_, i64>(1)?).unwrap_or(u32::MAX);
        let known = usize::try_from(version).ok().and_then(|version| STEPS.get(version.checked_sub(1)?));
        if known.is_some_and(|step| mark.try_get::<_, &str>(2).ok() != Some(digest(step).as_str())) {
            return Err(OpenError::Foreign(version));
        }
        found = Some(Found { version, serves });
    }
    Ok(found)
}

fn digest(step: &Step) -> String {
    Digest::of("counterfoil/schema-step/1", &[step.sql.as_bytes()]).hex()
}

/// The statement that keeps the instance secret, made once, with the first step.
fn secret() -> Result<String, OpenError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| OpenError::Failed(format!("no random bytes: {error}")))?;
    let hex = Digest::from_bytes(bytes).hex();
    Ok(format!("INSERT INTO counterfoil.meta (name, value) VALUES ('secret', '\\x{hex}'), ('barrier', '');"))
}

//! The tables' versions: how they are brought forward while older servers go on, and what a server insists on.
//!
//! A step is SQL that turns one version into the next. It runs in one transaction with the mark of its version, so a
//! crash leaves the old version or the new one; or, where it goes through big tables, as statements of their own that hold
//! nobody up and may be run again, with the mark at their end. Released steps are never edited; their digests are kept and
//! compared. A step that only adds (*expand*) leaves older servers working; one that takes away (*contract*) names the
//! oldest version a server must know to go on, and is taken only by who says that no older one runs any more.

use crate::error::{OpenError, reason};
use crate::session::{Purpose, Session, Target};
use counterfoil_core::types::digest::Digest;
use std::time::Duration;

/// The newest version this build knows.
pub const VERSION: u32 = 15;
/// The version this build needs. Steps beyond it only take away what older builds needed.
pub const NEEDED: u32 = 10;
/// From this version on a claim may say when to look at it before it is settled.
const LOOKS_AHEAD: u32 = 13;
/// From this version on commits are kept group by group.
const HAS_GROUPS: u32 = 14;

/// A step: its name, the oldest version a server must know to work with its result, and its SQL.
struct Step {
    name: &'static str,
    serves: u32,
    sql: &'static str,
}

impl Step {
    /// The statements of a step that is no transaction; one, if it is.
    fn parts(&self) -> Vec<&'static str> {
        self.sql.split("\n--;\n").collect()
    }
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To what this build needs; older servers may go on. A database without tables gets all of them.
    Needed,
    /// To the newest version: no server of an older release runs any more.
    Newest,
}

/// Step `n` (counted from 1) leads from version `n - 1` to version `n`.
const STEPS: [Step; 15] = [
    Step { name: "tables", serves: 3, sql: include_str!("1_tables.sql") },
    Step { name: "rules", serves: 3, sql: include_str!("2_rules.sql") },
    Step { name: "walls", serves: 3, sql: include_str!("3_walls.sql") },
    Step { name: "operations", serves: 3, sql: include_str!("4_operations.sql") },
    Step { name: "captured", serves: 3, sql: include_str!("5_captured.sql") },
    Step { name: "payouts", serves: 3, sql: include_str!("6_payouts.sql") },
    Step { name: "balanced", serves: 3, sql: include_str!("7_balanced.sql") },
    Step { name: "lighter", serves: 3, sql: include_str!("8_lighter.sql") },
    Step { name: "owners", serves: 3, sql: include_str!("9_owners.sql") },
    Step { name: "by tenant", serves: 3, sql: include_str!("10_by_tenant.sql") },
    Step { name: "tenants lead", serves: 10, sql: include_str!("11_tenants_lead.sql") },
    Step { name: "shorter rules", serves: 10, sql: include_str!("12_shorter_rules.sql") },
    Step { name: "look ahead", serves: 10, sql: include_str!("13_look_ahead.sql") },
    Step { name: "groups", serves: 14, sql: include_str!("14_groups.sql") },
    Step { name: "kept", serves: 14, sql: include_str!("15_kept.sql") },
];
const _: () = assert!(STEPS.len() == VERSION as usize, "a new step makes a new version");

/// Serialises whoever brings a database forward.
const LOCK: i64 = 0x436f_666f_0000;
/// A table in use is waited for a second; then the step is tried again, so that nobody waits behind it for long.
const TRIES_MAX: u32 = 30;
/// Another process at the same work is waited for a minute.
const ALONE_TRIES_MAX: u32 = 120;
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
    /// The names of those that wait until no older server runs any more.
    pub left: Vec<&'static str>,
}

/// What a database says of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its version.
    pub(crate) version: u32,
    /// The oldest version a server must know.
    pub(crate) serves: u32,
}

impl Found {
    pub(crate) fn looks_ahead(self) -> bool {
        self.version >= LOOKS_AHEAD
    }

    pub(crate) fn has_groups(self) -> bool {
        self.version >= HAS_GROUPS
    }
}

/// Brings the database at `url` forward. Servers may go on meanwhile; several may do this at once.
pub async fn migrate(url: &str, reach: Reach) -> Result<Migrated, OpenError> {
    let session = Session::open(&Target::parse(url)?, Purpose::Migrate).await?;
    alone(&session).await?;
    session.command("CREATE SCHEMA IF NOT EXISTS counterfoil").await?;
    session
        .command(
        "CREATE TABLE IF NOT EXISTS counterfoil.schema_steps (version BIGINT PRIMARY KEY, name TEXT NOT NULL, \
         serves BIGINT NOT NULL, digest TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())",
        )
        .await?;
    let from = verify(&session).await?.map_or(0, |found| found.version);
    // Where there are no tables, there are no servers.
    let last = if from == 0 || reach == Reach::Newest { VERSION } else { NEEDED };
    let (mut steps, mut left) = (Vec::new(), Vec::new());
    for (version, step) in (1_u32..).zip(&STEPS).filter(|(version, _)| *version > from) {
        if version > last {
            left.push(step.name);
            continue;
        }
        let parts = step.parts();
        if let [whole] = parts.as_slice() {
            apply(&session, version, step, whole).await?;
        } else {
            go_through(&session, version, step, &parts).await?;
        }
        tracing::info!(version, name = step.name, "the database was brought forward");
        steps.push(step.name);
    }
    if from == 0 {
        session.command(SHOW).await?;
    }
    Ok(Migrated { from, to: from.max(last), steps, left })
}

/// Waits until nobody else brings the database forward. By asking again and again: who waits within a statement would be
/// waited for by indexes that are built beside it.
async fn alone(session: &Session) -> Result<(), OpenError> {
    for _ in 0..ALONE_TRIES_MAX {
        let got = session.ask("SELECT pg_try_advisory_lock($1)", &[&LOCK]).await?;
        if got.first().is_some_and(|row| row.try_get(0).unwrap_or(false)) {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    let why = "another process brings this database forward: run this again when it is done";
    Err(OpenError::Failed(why.to_owned()))
}

/// A step that is no transaction: statement after statement, then its mark.
async fn go_through(session: &Session, version: u32, step: &Step, parts: &[&str]) -> Result<(), OpenError> {
    // They take as long as the tables are big, and nobody waits behind them.
    session.command("SET statement_timeout = 0; SET lock_timeout = 0").await?;
    for part in parts {
        take(session, version, step, part).await?;
    }
    session.command("SET statement_timeout = '60s'; SET lock_timeout = '1s'").await?;
    take(session, version, step, &mark(version, step)).await
}

/// A step that is one transaction, with its mark.
async fn apply(session: &Session, version: u32, step: &Step, sql: &str) -> Result<(), OpenError> {
    let secret = if version == 1 { secret()? } else { String::new() };
    let mark = mark(version, step);
    take(session, version, step, &format!("BEGIN; {sql}\n; {secret} {mark}; COMMIT")).await
}

fn mark(version: u32, step: &Step) -> String {
    format!(
        "INSERT INTO counterfoil.schema_steps (version, name, serves, digest) VALUES ({version}, '{}', {}, '{}')",
        step.name,
        step.serves,
        digest(step),
    )
}

/// Sends a command, again and again while tables it needs are in use.
async fn take(session: &Session, version: u32, step: &Step, sql: &str) -> Result<(), OpenError> {
    for _ in 0..TRIES_MAX {
        let Err(error) = session.command(sql).await else { return Ok(()) };
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
pub(crate) async fn check(session: &Session) -> Result<Found, OpenError> {
    let found = verify(session).await?.ok_or(OpenError::NotMigrated)?;
    if found.version < NEEDED {
        return Err(OpenError::Behind { found: found.version, known: NEEDED });
    }
    if found.serves > VERSION {
        return Err(OpenError::Ahead { found: found.version, known: VERSION });
    }
    Ok(found)
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

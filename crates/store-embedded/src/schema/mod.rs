//! The format of the database file and how an older one is brought forward.
//!
//! A step turns one version into the next, by SQL and then by code; it runs in one transaction with the mark of its
//! version, so a crash leaves the old format or the new one. Steps are never edited once released: old files pass
//! through all that are younger than they are.

mod backfill;
pub(crate) mod own_rules;

pub(crate) use own_rules::keep_own;

use crate::error::OpenError;
use rusqlite::Connection;

/// Marks the file as Counterfoil's: `Cofo`.
pub(crate) const APPLICATION_ID: i32 = 0x436f_666f;

/// Step `n` (counted from 1) leads from format `n - 1` to format `n`.
const STEPS: [Step; 6] = [
    Step { tables: include_str!("v1.sql"), rows: make_secret },
    Step { tables: include_str!("v2.sql"), rows: backfill::run },
    Step { tables: include_str!("v3.sql"), rows: |_| Ok(()) },
    Step { tables: include_str!("v4.sql"), rows: |_| Ok(()) },
    Step { tables: include_str!("v5.sql"), rows: |_| Ok(()) },
    Step { tables: include_str!("v6.sql"), rows: |_| Ok(()) },
];

/// The format this build writes.
pub const FORMAT: u32 = 6;
const _: () = assert!(STEPS.len() == FORMAT as usize, "a new step makes a new format");

struct Step {
    tables: &'static str,
    rows: fn(&Connection) -> Result<(), OpenError>,
}

/// What a file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing was ever written.
    Fresh,
    /// A store of this format.
    Format(u32),
}

/// Reads the marks of the file and refuses what this build cannot read.
pub(crate) fn identify(db: &Connection) -> Result<Found, OpenError> {
    let id: i32 = db.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: bool = db.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))?;
    if id == 0 && version == 0 && !tables {
        return Ok(Found::Fresh);
    }
    if id != APPLICATION_ID {
        return Err(OpenError::Foreign);
    }
    let found = u32::try_from(version)
        .map_err(|_| OpenError::Corrupt(format!("the format version reads {version}")))?;
    if found > FORMAT {
        return Err(OpenError::NewerFormat { found, known: FORMAT });
    }
    Ok(Found::Format(found))
}

/// Brings the file to [`FORMAT`].
pub(crate) fn migrate(db: &mut Connection, found: Found) -> Result<(), OpenError> {
    let from = match found {
        Found::Fresh => 0,
        Found::Format(version) => version,
    };
    for (version, step) in (1_u32..).zip(STEPS) {
        if version <= from {
            continue;
        }
        let transaction = db.transaction()?;
        transaction.execute_batch(step.tables)?;
        (step.rows)(&transaction)?;
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version};"
        ))?;
        transaction.commit()?;
        // A new file comes from nowhere.
        if from > 0 {
            tracing::info!(version, "the store's format was brought forward");
        }
    }
    Ok(())
}

/// The instance secret is made once, with the store.
fn make_secret(db: &Connection) -> Result<(), OpenError> {
    let mut secret = [0; 32];
    #[expect(clippy::disallowed_methods, reason = "opening happens before there is a world to ask")]
    getrandom::fill(&mut secret).map_err(|error| OpenError::Io(format!("no random bytes: {error}")))?;
    db.execute("INSERT INTO meta (key, value) VALUES ('secret', ?1)", [secret])?;
    Ok(())
}

//! The format of the database file, and how an older file is migrated.
//!
//! A [`Step`] leads from one format to the next: SQL first, then code. Each step runs in one
//! transaction together with the mark of its format, so a crash leaves the old format or the new
//! one. Steps are never edited once they are released; older files pass through every later step.
//!
//! A digest of the schema's text is stored in the file. A file of the same format whose digest
//! differs was made by another build of an unreleased schema, and is refused.

pub(crate) mod own_rules;

pub(crate) use own_rules::copy_rules;

use crate::error::OpenError;
use crate::tables::meta;
use counterfoil_core::types::digest::Digest;
use rusqlite::Connection;

/// Marks the file as Counterfoil's: `Cofo`.
const APPLICATION_ID: i32 = 0x436f_666f;

/// Step `n` (counted from 1) leads from format `n - 1` to format `n`.
pub(crate) const STEPS: &[Step] = &[Step { tables: include_str!("schema.sql"), rows: make_secret }];

/// The format this build writes.
pub const FORMAT: u32 = 1;
const _: () = assert!(STEPS.len() == FORMAT as usize, "a new step makes a new format");

/// A migration from one format to the next.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    tables: &'static str,
    rows: fn(&Connection) -> Result<(), OpenError>,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The file is empty.
    Fresh,
    Format(u32),
}

/// Reads the marks of the file and refuses a file that these steps cannot bring forward.
pub(crate) fn identify(db: &Connection, steps: &[Step]) -> Result<Found, OpenError> {
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
    let known = format_of(steps);
    if found > known {
        return Err(OpenError::NewerFormat { found, known });
    }
    if meta::schema_digest(db)? != Some(digest(steps, found)) {
        return Err(OpenError::OtherSchema);
    }
    Ok(Found::Format(found))
}

/// Brings the file to the format of the last step.
pub(crate) fn migrate(db: &mut Connection, found: Found, steps: &[Step]) -> Result<(), OpenError> {
    let from = match found {
        Found::Fresh => 0,
        Found::Format(version) => version,
    };
    for (version, step) in (1_u32..).zip(steps) {
        if version <= from {
            continue;
        }
        let transaction = db.transaction()?;
        transaction.execute_batch(step.tables)?;
        (step.rows)(&transaction)?;
        meta::put_schema_digest(&transaction, digest(steps, version))?;
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version};"
        ))?;
        transaction.commit()?;
        if from > 0 {
            tracing::info!(version, "the store was migrated to a newer format");
        }
    }
    Ok(())
}

fn format_of(steps: &[Step]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}

/// The digest of the schema text that leads to `format`.
fn digest(steps: &[Step], format: u32) -> Digest {
    let texts = (0..format).zip(steps).map(|(_, step)| step.tables.as_bytes());
    Digest::of("counterfoil embedded schema", &texts.collect::<Vec<_>>())
}

/// Makes the instance secret, once in the life of a store.
fn make_secret(db: &Connection) -> Result<(), OpenError> {
    let mut secret = [0; 32];
    #[expect(clippy::disallowed_methods, reason = "opening happens before there is a world to ask")]
    getrandom::fill(&mut secret).map_err(|error| OpenError::Io(format!("no random bytes: {error}")))?;
    db.execute("INSERT INTO meta (key, value) VALUES ('secret', ?1)", [secret])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A later format: one more column, filled by code.
    const NEXT: Step = Step {
        tables: "ALTER TABLE slots ADD COLUMN note TEXT",
        rows: |db| Ok(db.execute_batch("UPDATE slots SET note = 'migrated'")?),
    };
    /// A step whose code fails after its SQL has run.
    const FAILING: Step = Step { rows: |_| Err(OpenError::DiskFull), ..NEXT };

    fn store() -> Connection {
        let mut db = Connection::open_in_memory().unwrap();
        assert_eq!(identify(&db, STEPS).unwrap(), Found::Fresh);
        migrate(&mut db, Found::Fresh, STEPS).unwrap();
        db.execute_batch("INSERT INTO slots VALUES (1, 1, 1, 1)").unwrap();
        db
    }

    fn columns_of_slots(db: &Connection) -> u32 {
        db.query_row("SELECT count(*) FROM pragma_table_info('slots')", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_older_file_is_migrated_step_by_step_and_keeps_its_rows() {
        let mut db = store();
        let later = [STEPS, &[NEXT]].concat();
        assert_eq!(identify(&db, &later).unwrap(), Found::Format(FORMAT));
        migrate(&mut db, Found::Format(FORMAT), &later).unwrap();
        assert_eq!(identify(&db, &later).unwrap(), Found::Format(FORMAT + 1));
        let note: String = db.query_row("SELECT note FROM slots", [], |row| row.get(0)).unwrap();
        assert_eq!(note, "migrated");
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut db = store();
        let failing = [STEPS, &[FAILING]].concat();
        for _ in 0..2 {
            let error = migrate(&mut db, Found::Format(FORMAT), &failing).unwrap_err();
            assert!(matches!(error, OpenError::DiskFull), "{error:?}");
            assert_eq!(columns_of_slots(&db), 4);
            assert_eq!(identify(&db, STEPS).unwrap(), Found::Format(FORMAT));
        }
    }

    #[test]
    fn a_newer_file_is_refused() {
        let mut db = store();
        migrate(&mut db, Found::Format(FORMAT), &[STEPS, &[NEXT]].concat()).unwrap();
        let error = identify(&db, STEPS).unwrap_err();
        assert!(matches!(error, OpenError::NewerFormat { found: 2, known: FORMAT }), "{error:?}");
    }

    #[test]
    fn a_file_whose_schema_text_differs_is_refused() {
        let db = store();
        let edited = [Step { tables: "CREATE TABLE meta (key, value)", ..STEPS[0] }];
        let error = identify(&db, &edited).unwrap_err();
        assert!(matches!(error, OpenError::OtherSchema), "{error:?}");
        db.execute_batch("DELETE FROM meta WHERE key = 'schema_digest'").unwrap();
        assert!(matches!(identify(&db, STEPS), Err(OpenError::OtherSchema)), "no digest is another schema");
    }
}

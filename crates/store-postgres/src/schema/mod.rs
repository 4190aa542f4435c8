//! The versions of the database schema, and the checks a server makes before it uses a database.
//!
//! A step is SQL that turns one version into the next. A step that only adds (*expand*) leaves
//! older servers working. A step that takes something away (*contract*) names the oldest version
//! that a server must know to continue; it runs only on request, once no older server runs.
//!
//! Nothing has been released yet. Until a release is tagged, version 1 is edited in place: a
//! database made by another text of it is refused and not migrated. After that, released steps
//! never change. The database stores a digest of each step to detect an edited one.

mod migrate;

pub use migrate::{Migrated, Reach, migrate};

use crate::error::OpenError;
use crate::session::Session;
use counterfoil_core::types::digest::Digest;

/// The newest version this build knows.
pub const VERSION: u32 = 1;
/// The version this build needs. Later steps only take away what older builds needed.
pub const NEEDED: u32 = 1;

/// Step `n` (counted from 1) leads from version `n - 1` to version `n`.
const STEPS: [MigrationStep; 1] = [MigrationStep {
    name: "schema",
    serves: 1,
    sql: concat!(include_str!("tables.sql"), include_str!("rules.sql"), include_str!("roles.sql")),
}];
const _: () = assert!(STEPS.len() == VERSION as usize, "a new step makes a new version");

/// One step of the schema.
#[derive(Clone, Copy, Debug)]
pub struct MigrationStep {
    pub name: &'static str,
    /// The oldest version that a server must know to work with the result.
    pub serves: u32,
    /// The SQL. One transaction by default. Steps through large tables separate statements by `--;`
    /// lines; each of them commits by itself, holds no lock for long, and can be run again.
    pub sql: &'static str,
}

impl MigrationStep {
    fn statements(&self) -> Vec<&'static str> {
        self.sql.split("\n--;\n").collect()
    }

    fn digest(&self) -> String {
        Digest::of("counterfoil/schema-step/1", &[self.sql.as_bytes()]).hex()
    }
}

/// A list of steps and the version a build needs of them.
#[derive(Clone, Debug)]
pub struct Schema {
    steps: Vec<MigrationStep>,
    needed: u32,
}

/// The version a database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    version: u32,
    /// The oldest version that a server must know.
    serves: u32,
}

impl Schema {
    /// The schema of this build.
    pub fn current() -> Schema {
        Schema { steps: STEPS.to_vec(), needed: NEEDED }
    }

    /// The schema of a later build: further steps, and the version needed by the build.
    #[must_use]
    pub fn extended_by(mut self, steps: &[MigrationStep], needed: u32) -> Schema {
        self.steps.extend_from_slice(steps);
        self.needed = needed;
        self
    }

    fn version(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    /// Refuses a database that a build of this schema cannot serve.
    pub(crate) async fn check(&self, session: &Session) -> Result<(), OpenError> {
        let found = self.find(session).await?.ok_or(OpenError::NotMigrated)?;
        if found.version < self.needed {
            return Err(OpenError::Behind { found: found.version, known: self.needed });
        }
        if found.serves > self.version() {
            return Err(OpenError::Ahead { found: found.version, known: self.version() });
        }
        Ok(())
    }

    /// Reads the version of a database and verifies the digests of the steps that this build knows.
    /// `None` means that the database has no tables.
    async fn find(&self, session: &Session) -> Result<Option<Found>, OpenError> {
        let exists =
            session.query_once("SELECT to_regclass('counterfoil.schema_steps') IS NOT NULL", &[]).await?;
        if !exists.first().is_some_and(|row| row.try_get(0).unwrap_or(false)) {
            return Ok(None);
        }
        let applied = session
            .query_once("SELECT version, serves, digest FROM counterfoil.schema_steps ORDER BY version", &[])
            .await?;
        let mut found = None;
        for row in &applied {
            let version = u32::try_from(row.try_get::<_, i64>(0)?).unwrap_or(u32::MAX);
            let serves = u32::try_from(row.try_get::<_, i64>(1)?).unwrap_or(u32::MAX);
            let known =
                usize::try_from(version).ok().and_then(|version| self.steps.get(version.checked_sub(1)?));
            if known.is_some_and(|step| row.try_get::<_, &str>(2).ok() != Some(step.digest().as_str())) {
                return Err(OpenError::EditedStep(version));
            }
            found = Some(Found { version, serves });
        }
        Ok(found)
    }
}

//! Why a store cannot be opened, in sentences that say what to do, and how SQLite's errors read.

use rusqlite::ErrorCode;
use std::io;

/// What a full disk is told as.
pub(crate) const NO_SPACE: &str = "there is no space left on the store's disk; it goes on when there is";

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes here.
    #[error(
        "the store is open in another process{}: stop that process first, or give this one a directory of its own",
        .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    Locked {
        /// That process, if its lock file says so.
        pid: Option<u32>,
    },
    /// The directory cannot be written.
    #[error(
        "the store's directory cannot be written: give this user write access to it, or remount it read-write"
    )]
    ReadOnly,
    /// The path names something else.
    #[error("the store's path is not a directory: name a directory, it is created if its parent exists")]
    NotADirectory,
    /// There is no store to read.
    #[error("there is no store in this directory: check the path, or start the server once to create it")]
    Absent,
    /// The file belongs to another program.
    #[error("counterfoil.db is not a Counterfoil database: check the path; the file was left alone")]
    Foreign,
    /// A later release wrote this file.
    #[error(
        "the store has format {found}, this release knows up to {known}: run the newer release again, or restore a backup of the older format"
    )]
    NewerFormat {
        /// The file's format.
        found: u32,
        /// The newest this build reads.
        known: u32,
    },
    /// An older release wrote this file and it cannot be brought forward read-only.
    #[error(
        "the store has format {found}, this release reads {known}: start the server once to bring it forward"
    )]
    OlderFormat {
        /// The file's format.
        found: u32,
        /// The one this build reads.
        known: u32,
    },
    /// The file has this format and another schema.
    #[error(
        "this store was made by another build of Counterfoil whose schema differs, and schemas are not migrated before the first release: make a new store, or open it with the build that made it"
    )]
    OtherSchema,
    /// The file is damaged.
    #[error("the store is damaged ({0}): restore it from a backup; the file was left alone")]
    Corrupt(String),
    /// The tables refuse what was committed.
    #[error(
        "the tables refuse commit {commit} of the redo log ({why}), which is a defect to report: nothing is lost, keep the directory as it is; undo what was changed in the tables by hand, or start a release that mends this"
    )]
    Refused {
        /// The first position of its group.
        commit: u64,
        /// What they say.
        why: String,
    },
    /// There is no room.
    #[error("there is no space left for the store: free some, then start again")]
    DiskFull,
    /// Something else failed.
    #[error("the store cannot be opened: {0}")]
    Io(String),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> OpenError {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                OpenError::Corrupt(error.to_string())
            }
            Some(ErrorCode::DiskFull) => OpenError::DiskFull,
            Some(ErrorCode::ReadOnly) => OpenError::ReadOnly,
            Some(_) => OpenError::Io(error.to_string()),
            // Not SQLite's refusal but a value that does not read as what it must be.
            None => OpenError::Corrupt(error.to_string()),
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::DiskFull,
            io::ErrorKind::NotADirectory => OpenError::NotADirectory,
            _ => OpenError::Io(error.to_string()),
        }
    }
}

/// Whether the tables refuse what was written, now and whenever it is tried: a constraint, a trigger, or a row that is not
/// where the judge saw it.
pub(crate) fn is_refusal(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::StatementChangedRows(_))
        || error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

/// The reason as operators read it.
pub(crate) fn reason(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => NO_SPACE.to_owned(),
        Some(ErrorCode::DatabaseBusy) => "another program holds the database's write lock".to_owned(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            format!("the database is damaged ({error}); restore it from a backup")
        }
        Some(_) | None => error.to_string(),
    }
}

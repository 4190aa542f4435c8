//! Errors of an opening, in sentences that say what to do, and the texts of SQLite's errors.

use rusqlite::ErrorCode;
use std::io;

/// The text for a full disk.
pub(crate) const NO_SPACE: &str = "there is no space left on the store's disk; it goes on when there is";

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the store open for writing.
    #[error(
        "the store is open in another process{}: stop that process first, or give this one a directory of its own",
        .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    Locked {
        /// The process, if the lock file names it.
        pid: Option<u32>,
    },
    /// The directory is not writable.
    #[error(
        "the store's directory cannot be written: give this user write access to it, or remount it read-write"
    )]
    ReadOnly,
    /// The path is not a directory.
    #[error("the store's path is not a directory: name a directory, it is created if its parent exists")]
    NotADirectory,
    /// The directory contains no store.
    #[error("there is no store in this directory: check the path, or start the server once to create it")]
    Absent,
    /// The file belongs to another program.
    #[error("counterfoil.db is not a Counterfoil database: check the path; the file was left alone")]
    Foreign,
    /// A newer release wrote the file.
    #[error(
        "the store has format {found}, this release knows up to {known}: run the newer release again, or restore a backup of the older format"
    )]
    NewerFormat { found: u32, known: u32 },
    /// An older release wrote the file, and a read-only opening cannot migrate it.
    #[error(
        "the store has format {found}, this release reads {known}: start the server once to bring it forward"
    )]
    OlderFormat { found: u32, known: u32 },
    /// The file was made from another schema text of the same format.
    #[error(
        "this store was made by another build of Counterfoil whose schema differs, and schemas are not migrated before the first release: make a new store, or open it with the build that made it"
    )]
    OtherSchema,
    /// The file is damaged.
    #[error("the store is damaged ({0}): restore it from a backup; the file was left alone")]
    Corrupt(String),
    /// The tables refuse a commit of the write-ahead log.
    #[error(
        "the tables refuse commit {commit} of the write-ahead log ({why}), which is a defect to report: nothing is lost, keep the directory as it is; undo what was changed in the tables by hand, or start a release that mends this"
    )]
    Refused {
        /// The first position of the refused group.
        commit: u64,
        why: String,
    },
    /// The disk is full.
    #[error("there is no space left for the store: free some, then start again")]
    DiskFull,
    /// Another failure.
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
            // Not an error of SQLite: a stored value cannot be decoded.
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

/// Whether the tables refuse a write for good: a constraint, a trigger, or a row that is not where
/// the judge saw it. Retrying cannot help.
pub(crate) fn is_refusal(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::StatementChangedRows(_))
        || error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

/// The error in words for operators.
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

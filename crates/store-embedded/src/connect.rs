//! Opens connections, each set up for what it does: the writer, the checkpointer, the readers.

use crate::error::OpenError;
use crate::options::{LogBounds, Options};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Only another program can hold the write lock, and only for a moment, or it is an operator who forgot it.
const BUSY: Duration = Duration::from_secs(2);
/// More statements than there are.
const STATEMENTS: usize = 128;
/// A frame of the log holds one page.
const PAGE_BYTES: u64 = 4_096;
/// Pages the writer keeps in memory, in KiB: the upper levels and the right edges of every tree. More costs more
/// than it saves: SQLite walks its table of cached pages at the end of many transactions.
const WRITER_CACHE_KIB: u32 = 16 << 10;
/// Pages each reader keeps; below it stands the kernel's own cache.
const READER_CACHE_KIB: u32 = 8 << 10;

/// The database's file in `dir`.
pub(crate) fn file(dir: &Path) -> PathBuf {
    dir.join("counterfoil.db")
}

/// The write-ahead log in `dir`.
pub(crate) fn log(dir: &Path) -> PathBuf {
    dir.join("counterfoil.db-wal")
}

/// Makes the directory and an empty database that only its owner can read, both durably.
pub(crate) fn create(dir: &Path) -> Result<(), OpenError> {
    match std::fs::create_dir(dir) {
        Ok(()) => sync_directory(dir.parent().filter(|parent| *parent != Path::new("")))?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if !dir.is_dir() {
                return Err(OpenError::NotADirectory);
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Makes the database's file if it is not there.
pub(crate) fn create_file(dir: &Path) -> Result<(), OpenError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file(dir));
    match made {
        Ok(_) => sync_directory(Some(dir)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn sync_directory(dir: Option<&Path>) -> Result<(), OpenError> {
    File::open(dir.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(())
}

/// The one connection that writes.
pub(crate) fn writer(dir: &Path, options: &Options) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file(dir), flags)?;
    prepare(&db, WRITER_CACHE_KIB)?;
    copy_on_close(&db, false)?;
    if let Some(pages) = options.pages_max {
        db.execute_batch(&format!("PRAGMA max_page_count = {pages}"))?;
    }
    Ok(db)
}

/// Puts the writer's connection into its lasting mode; only to be done on a file that is known to be ours.
pub(crate) fn write_ahead(db: &Connection, bounds: LogBounds) -> Result<(), OpenError> {
    // The first row already says "wal"; whether the disk confirms it is only known when the statement has ended.
    let mut change = db.prepare("PRAGMA journal_mode = WAL")?;
    let mut told = change.query([])?;
    while told.next()?.is_some() {}
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(OpenError::Io(format!(
            "the file system does not support a write-ahead log (journal mode stays {mode}): use a local disk"
        )));
    }
    let kept = u64::from(bounds.kept).saturating_mul(PAGE_BYTES);
    db.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = {kept};"
    ))?;
    Ok(())
}

/// From here on a commit is durable by the redo log: the database's own log is synced by checkpoints.
pub(crate) fn leave_syncs_to_the_redo_log(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("PRAGMA synchronous = NORMAL")
}

/// Every commit is synced again.
pub(crate) fn sync_commits(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("PRAGMA synchronous = FULL")
}

/// The connection checkpoints run on.
pub(crate) fn checkpointer(dir: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file(dir), flags)?;
    prepare(&db, READER_CACHE_KIB)?;
    copy_on_close(&db, false)?;
    db.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")?;
    Ok(db)
}

/// Whether closing the last connection copies the log into the database and removes it, as SQLite does unasked. After a
/// copy that the disk did not confirm it would copy only what it thinks is left, and remove the only whole copy.
pub(crate) fn copy_on_close(db: &Connection, copies: bool) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !copies).map(|_| ())
}

/// A connection that cannot write.
pub(crate) fn reader(dir: &Path) -> Result<Connection, OpenError> {
    let db = Connection::open_with_flags(file(dir), READ_ONLY)?;
    prepare(&db, READER_CACHE_KIB)?;
    db.execute_batch("PRAGMA query_only = ON")?;
    Ok(db)
}

/// A connection to a closed store on a medium where not even a lock file can be made, such as a mounted backup.
pub(crate) fn still_reader(dir: &Path) -> Result<Connection, OpenError> {
    if std::fs::metadata(log(dir)).is_ok_and(|log| log.len() > 0) {
        // The log holds commits that the database does not: without it the answers would be wrong.
        return Err(OpenError::ReadOnly);
    }
    let uri = format!("file:{}?immutable=1", escaped(&file(dir)));
    let db = Connection::open_with_flags(uri, READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?;
    prepare(&db, READER_CACHE_KIB)?;
    Ok(db)
}

const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

fn escaped(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes
        .map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") })
        .collect()
}

fn prepare(db: &Connection, cache_kib: u32) -> Result<(), OpenError> {
    db.busy_timeout(BUSY)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // A plan must not depend on the values bound: SQLite would prepare a kept statement again to look at them.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // The page size counts only when the file is still empty. Cells are checked as pages are read: damage is
    // found where it is, not where it leads.
    db.execute_batch(&format!(
        "PRAGMA page_size = {PAGE_BYTES}; PRAGMA cache_size = -{cache_kib}; PRAGMA temp_store = MEMORY; \
         PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
    ))?;
    Ok(())
}

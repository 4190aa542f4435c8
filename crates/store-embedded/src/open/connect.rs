//! Opens connections with the settings of their role: writer, checkpointer, reader.

use crate::error::OpenError;
use crate::options::{Options, SqliteWalBounds};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The wait for the write lock, which only another program can hold.
pub(crate) const BUSY: Duration = Duration::from_secs(2);
/// Cached statements per connection: more than the store has.
const STATEMENTS: usize = 128;
/// The page size; a frame of the WAL holds one page.
const PAGE_BYTES: u64 = 4_096;
/// The flusher's page cache: the upper levels and right edges of every tree. A larger cache costs
/// more than it saves, because SQLite walks its table of pages at the end of many transactions.
const WRITER_CACHE_KIB: u32 = 16 << 10;
/// The page cache of each reader, on top of the kernel's cache.
const READER_CACHE_KIB: u32 = 8 << 10;

/// The database file.
pub(crate) fn file(dir: &Path) -> PathBuf {
    dir.join("counterfoil.db")
}

/// SQLite's WAL.
pub(crate) fn wal(dir: &Path) -> PathBuf {
    dir.join("counterfoil.db-wal")
}

/// Creates the directory durably, if it does not exist.
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

/// Creates the database file durably, readable by its owner only, if it does not exist.
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

/// The only connection that writes.
pub(crate) fn writer(dir: &Path, options: &Options) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file(dir), flags)?;
    prepare(&db, WRITER_CACHE_KIB)?;
    checkpoint_on_close(&db, false)?;
    if let Some(pages) = options.pages_max {
        db.execute_batch(&format!("PRAGMA max_page_count = {pages}"))?;
    }
    Ok(db)
}

/// Switches the writer's connection to WAL mode. The caller has identified the file as a store.
pub(crate) fn set_wal_mode(db: &Connection, bounds: SqliteWalBounds) -> Result<(), OpenError> {
    // The first row says "wal" already; an error of the disk comes only when the statement ends.
    let mut change = db.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = change.query([])?;
    while rows.next()?.is_some() {}
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

/// Stops syncing SQLite's commits: the write-ahead log makes them durable, checkpoints sync the
/// WAL.
pub(crate) fn stop_syncing_commits(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("PRAGMA synchronous = NORMAL")
}

/// Syncs every SQLite commit again.
pub(crate) fn sync_commits(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("PRAGMA synchronous = FULL")
}

/// The connection of the checkpointer.
pub(crate) fn checkpointer(dir: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file(dir), flags)?;
    prepare(&db, READER_CACHE_KIB)?;
    checkpoint_on_close(&db, false)?;
    db.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")?;
    Ok(db)
}

/// Whether closing the last connection copies the WAL into the database and removes it, as SQLite
/// does by default. After an unconfirmed copy SQLite would copy only the rest, and remove the only
/// whole copy.
pub(crate) fn checkpoint_on_close(db: &Connection, copies: bool) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !copies).map(|_| ())
}

/// A connection that cannot write.
pub(crate) fn reader(dir: &Path) -> Result<Connection, OpenError> {
    let db = Connection::open_with_flags(file(dir), READ_ONLY)?;
    prepare(&db, READER_CACHE_KIB)?;
    db.execute_batch("PRAGMA query_only = ON")?;
    Ok(db)
}

/// A connection to a closed store on a read-only medium, such as a mounted backup.
pub(crate) fn immutable_reader(dir: &Path) -> Result<Connection, OpenError> {
    if std::fs::metadata(wal(dir)).is_ok_and(|wal| wal.len() > 0) {
        // The WAL has commits that the database lacks, and an immutable connection ignores it.
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
    // Keep plans independent of bound values; SQLite would prepare cached statements again.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // The page size takes effect only in an empty file. Cells are checked when a page is read, so
    // damage is reported where it is.
    db.execute_batch(&format!(
        "PRAGMA page_size = {PAGE_BYTES}; PRAGMA cache_size = -{cache_kib}; PRAGMA temp_store = MEMORY; \
         PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
    ))?;
    Ok(())
}

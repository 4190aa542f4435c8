//! Writes the log again that an earlier process of the same boot has left.
//!
//! If a sync of the log failed then, the kernel may show pages that are not on the disk, and that no later sync brings
//! there: it has forgotten that it owes them. What is committed after them would be lost with them at the next power
//! cut, because a log is read up to its first gap. Written once more, they are owed again. After a reboot there is
//! nothing to do: what is read then is what the disk has.

use crate::connect;
use crate::error::OpenError;
use rusqlite::Connection;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are written at a time.
const STEP: usize = 1 << 20;

/// Writes the log of `dir` again and makes it safe. `sync` is asked before the sync and may fail it.
pub(crate) fn renew(db: &Connection, dir: &Path, sync: impl Fn() -> io::Result<()>) -> Result<(), OpenError> {
    // Under the write lock nobody appends to the log or starts it over.
    db.execute_batch("BEGIN IMMEDIATE")?;
    let written = write_again(&connect::log(dir), sync);
    db.execute_batch("ROLLBACK")?;
    Ok(written?)
}

fn write_again(log: &Path, sync: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let file = match OpenOptions::new().read(true).write(true).open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut bytes = vec![0; STEP];
    let mut at = 0;
    while at < length {
        let left = usize::try_from(length.saturating_sub(at)).unwrap_or(STEP);
        let piece = bytes.get_mut(..left.min(STEP)).unwrap_or_default();
        file.read_exact_at(piece, at)?;
        file.write_all_at(piece, at)?;
        at = at.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
    }
    if length > 0 {
        sync()?;
        file.sync_all()?;
    }
    Ok(())
}

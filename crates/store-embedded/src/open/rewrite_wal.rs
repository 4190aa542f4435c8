//! Rewrites the SQLite WAL that an earlier process of the same boot has left.
//!
//! If a sync of the WAL failed then, the kernel's cache may contain pages that the disk does not
//! have, and no later sync writes them. A power cut would lose every commit after such a gap.
//! Rewriting the file makes all of its pages dirty again. After a reboot the cache is as the disk
//! is, and nothing is rewritten.

use super::connect;
use crate::error::OpenError;
use rusqlite::Connection;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes per write.
const STEP: usize = 1 << 20;

/// Rewrites the WAL of `dir` and syncs it. `before_sync` may fail, as tests want.
pub(super) fn rewrite_wal(
    db: &Connection,
    dir: &Path,
    before_sync: impl Fn() -> io::Result<()>,
) -> Result<(), OpenError> {
    // The write lock keeps other connections from appending to the WAL and from restarting it.
    db.execute_batch("BEGIN IMMEDIATE")?;
    let written = rewrite(&connect::wal(dir), before_sync);
    db.execute_batch("ROLLBACK")?;
    Ok(written?)
}

fn rewrite(wal: &Path, before_sync: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let file = match OpenOptions::new().read(true).write(true).open(wal) {
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
        before_sync()?;
        file.sync_all()?;
    }
    Ok(())
}

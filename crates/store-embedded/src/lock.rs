//! One writing process per directory: an advisory lock on the file `LOCK`, which also names its holder. The
//! kernel releases it with the process, however that ends, so there is no stale lock to clean up.

use crate::error::OpenError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Held for as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of `dir`, or says who has it.
    pub(crate) fn take(dir: &Path) -> Result<Lock, OpenError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(dir.join("LOCK"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // Who it is only helps the message: a text that cannot be read names nobody.
                let _ = file.read_to_string(&mut text);
                return Err(OpenError::Locked { pid: text.trim().parse().ok() });
            }
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Lock { _file: file })
    }
}

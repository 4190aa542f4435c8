//! One writing process per directory: an advisory lock on the file `LOCK`, which names its holder.
//! The kernel releases the lock with the process, so there are no stale locks.

use crate::error::OpenError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// A killed process holds its lock until the kernel is done with it: a restart retries this often.
const RETRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(25);

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of `dir`, or names its holder.
    pub(crate) fn take(dir: &Path) -> Result<Lock, OpenError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(dir.join("LOCK"))?;
        let mut retries = RETRIES;
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::WOULDBLOCK {
                return Err(std::io::Error::from(error).into());
            }
            if retries == 0 {
                return Err(OpenError::Locked { pid: holder(&mut file) });
            }
            retries -= 1;
            wait();
        }
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Lock { _file: file })
    }
}

/// The holder's pid, for the message; none if the file cannot be read.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[expect(clippy::disallowed_methods, reason = "opening happens before there is a world to ask")]
fn wait() {
    std::thread::sleep(PAUSE);
}

//! One writing process per directory: an advisory lock on the file `LOCK`, which also names its holder. The
//! kernel releases it with the process, however that ends, so there is no stale lock to clean up.

use crate::error::OpenError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// A killed process gives its lock back only when the kernel is done with it: a restart waits so many pauses.
const PATIENCE: u32 = 20;
const PAUSE: Duration = Duration::from_millis(25);

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
        let mut patience = PATIENCE;
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::WOULDBLOCK {
                return Err(std::io::Error::from(error).into());
            }
            if patience == 0 {
                return Err(OpenError::Locked { pid: holder(&mut file) });
            }
            patience -= 1;
            wait();
        }
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Lock { _file: file })
    }
}

/// Who it is only helps the message: a text that cannot be read names nobody.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[expect(clippy::disallowed_methods, reason = "opening happens before there is a world to ask")]
fn wait() {
    std::thread::sleep(PAUSE);
}

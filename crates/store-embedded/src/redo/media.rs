//! The files of the redo log as the store asks for them. Tests put a recorded disk in their place.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Opens the files of the redo log.
pub trait Media: Debug + Send + Sync {
    /// Opens the file, and makes it if it is not there; its name is then safe.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Tape>>;
}

/// One file of the redo log.
pub trait Tape: Debug + Send {
    /// Its length.
    fn length(&self) -> io::Result<u64>;

    /// Fills `bytes` from there on.
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all of `bytes` there.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Returns when everything written before is safe.
    fn sync(&self) -> io::Result<()>;
}

/// Files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files;

impl Media for Files {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Tape>> {
        let is_new = !path.exists();
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        if let Some(dir) = path.parent().filter(|_| is_new) {
            File::open(dir)?.sync_all()?;
        }
        Ok(Box::new(file))
    }
}

impl Tape for File {
    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(bytes, at)
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

//! The files of the write-ahead log behind a trait, so that tests can record or fail the disk.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Opens the files of the write-ahead log.
pub trait LogStorage: Debug + Send + Sync {
    /// Opens the file, or creates it and makes its name durable.
    fn open(&self, path: &Path) -> io::Result<Box<dyn LogFile>>;
}

/// One file of the write-ahead log.
pub trait LogFile: Debug + Send {
    /// The length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Fills `bytes` from offset `at`.
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all of `bytes` at offset `at`.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Returns when everything written before is durable.
    fn sync(&self) -> io::Result<()>;
}

/// Files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFiles;

impl LogStorage for DiskFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let is_new = !path.exists();
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        if let Some(dir) = path.parent().filter(|_| is_new) {
            File::open(dir)?.sync_all()?;
        }
        Ok(Box::new(file))
    }
}

impl LogFile for File {
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

//! The files of the write-ahead log, recorded.

use crate::plan::FileKind;
use crate::record::{Handle, Recorder};
use counterfoil_store_embedded::{DiskFiles, LogFile, LogStorage};
use rusqlite::ffi;
use std::ffi::c_int;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Opens recorded files.
#[derive(Clone, Debug)]
pub struct Recorded(pub Arc<Recorder>);

#[derive(Debug)]
struct RecordedFile {
    recorder: Arc<Recorder>,
    handle: Handle,
    below: Box<dyn LogFile>,
}

impl LogStorage for Recorded {
    fn open(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let found = self.0.unknown(&name);
        let below = DiskFiles.open(path)?;
        let handle = self.0.opened(name, FileKind::Log, found, true);
        self.0.created(&handle);
        Ok(Box::new(RecordedFile { recorder: Arc::clone(&self.0), handle, below }))
    }
}

impl LogFile for RecordedFile {
    fn length(&self) -> io::Result<u64> {
        self.below.length()
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.below.read(bytes, at)
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let offset = usize::try_from(at).map_err(io::Error::other)?;
        let code = self.recorder.write(&self.handle, offset, bytes, |bytes| {
            self.below.write(bytes, at).map_or(ffi::SQLITE_IOERR_WRITE, |()| ffi::SQLITE_OK)
        });
        to_result(code)
    }

    fn sync(&self) -> io::Result<()> {
        to_result(self.recorder.sync(&self.handle))
    }
}

/// SQLite's code as an I/O error of the kernel.
fn to_result(code: c_int) -> io::Result<()> {
    match code {
        ffi::SQLITE_OK => Ok(()),
        ffi::SQLITE_FULL => Err(io::ErrorKind::StorageFull.into()),
        code => Err(io::Error::other(format!("SQLite's code {code}"))),
    }
}

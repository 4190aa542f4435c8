//! The files of the write-ahead log: a ring of segments that are overwritten in place, because
//! syncing a file that grows costs half as much again.

use super::{Lineage, LogFile, LogStorage, Record};
use crate::options::LogBounds;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One segment is written; the others are kept until the database has their entries safely.
const SEGMENTS: u8 = 4;

/// The log, open for appending.
#[derive(Debug)]
pub(crate) struct WriteAheadLog {
    segments: Vec<Segment>,
    current: usize,
    /// The offset of the next record in the current segment.
    at: u64,
    lineage: Lineage,
    bounds: LogBounds,
    /// The last position that a checkpoint has made durable in the database.
    checkpointed: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Segment {
    file: Box<dyn LogFile>,
    /// Bytes that were allocated; overwriting them changes no metadata.
    length: u64,
    /// The last position written to this segment since the opening.
    last: u64,
}

/// The files of the log in `dir`.
pub(super) fn paths(dir: &Path) -> impl Iterator<Item = PathBuf> {
    (0..SEGMENTS).map(move |number| dir.join(format!("counterfoil.redo-{number}")))
}

impl WriteAheadLog {
    /// Opens the files for overwriting; the old entries must be replayed already.
    pub(crate) fn open(
        dir: &Path,
        storage: &dyn LogStorage,
        lineage: Lineage,
        bounds: LogBounds,
        checkpointed: Arc<AtomicU64>,
    ) -> io::Result<WriteAheadLog> {
        let mut segments = Vec::new();
        for path in paths(dir) {
            let file = storage.open(&path)?;
            segments.push(Segment { length: file.length()?, file, last: 0 });
        }
        Ok(WriteAheadLog { segments, current: 0, at: 0, lineage, bounds, checkpointed })
    }

    /// Moves on to the next segment if the current segment is full. Returns true if it was full:
    /// then a checkpoint is needed. The current segment grows beyond its bound until the entries of
    /// the next segment are checkpointed.
    pub(crate) fn rotate_if_full(&mut self) -> bool {
        if self.at < self.bounds.segment {
            return false;
        }
        let next = self.current.saturating_add(1).checked_rem(self.segments.len()).unwrap_or(0);
        let checkpointed = self.checkpointed.load(Ordering::Acquire);
        if self.segments.get(next).is_none_or(|segment| segment.last > checkpointed) {
            return true;
        }
        self.current = next;
        self.at = 0;
        true
    }

    /// Appends an entry of `sets` sets from position `first` on, and syncs it.
    pub(crate) fn append(&mut self, first: u64, sets: u64, entry: &[u8]) -> Result<(), AppendError> {
        let record = Record::of(self.lineage, first, sets, entry)
            .ok_or_else(|| AppendError::Unwritten(io::ErrorKind::FileTooLarge.into()))?;
        let mut bytes = Vec::with_capacity(entry.len().saturating_add(Record::HEAD));
        bytes.extend_from_slice(&record.encode());
        bytes.extend_from_slice(entry);
        let end = self.at.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let Some(segment) = self.segments.get_mut(self.current) else {
            return Err(AppendError::Unwritten(io::ErrorKind::NotFound.into()));
        };
        segment.grow(end, self.bounds.extent).map_err(AppendError::Unwritten)?;
        if let Err(error) = segment.file.write(&bytes, self.at) {
            // Erase the head, so that no later opening finds parts of this record.
            let undone = segment.file.write(&[0; Record::HEAD], self.at);
            return Err(if undone.is_ok() {
                AppendError::Unwritten(error)
            } else {
                AppendError::Unconfirmed(error)
            });
        }
        segment.file.sync().map_err(AppendError::Unconfirmed)?;
        segment.last = record.last();
        self.at = end;
        Ok(())
    }
}

/// Why an entry was not appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// Nothing was written; the next entry takes its place.
    Unwritten(io::Error),
    /// The disk did not confirm the write; a later opening may find the entry.
    Unconfirmed(io::Error),
}

impl Segment {
    /// Allocates the file up to `end`.
    fn grow(&mut self, end: u64, extent: usize) -> io::Result<()> {
        while self.length < end {
            self.file.write(&vec![0; extent.max(1)], self.length)?;
            self.length = self.length.saturating_add(u64::try_from(extent.max(1)).unwrap_or(u64::MAX));
        }
        Ok(())
    }
}

//! The files of the redo log: a ring of segments that are overwritten in place, because a sync of a file that grows costs
//! half as much again.

use super::{Lineage, Media, Record, Tape};
use crate::options::RedoBounds;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Segments: one is written, the others wait until the database has safely what they hold.
const SEGMENTS: u8 = 4;

/// The log that is written.
#[derive(Debug)]
pub(crate) struct Redo {
    segments: Vec<Segment>,
    current: usize,
    /// Where the next record begins.
    at: u64,
    lineage: Lineage,
    bounds: RedoBounds,
    /// The last position of which the database itself is sure.
    safe: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Segment {
    tape: Box<dyn Tape>,
    /// Bytes that were written once, so that overwriting them changes nothing but them.
    length: u64,
    /// The last position written to it in this opening.
    last: u64,
}

/// The files of the log in `dir`.
pub(super) fn paths(dir: &Path) -> impl Iterator<Item = PathBuf> {
    (0..SEGMENTS).map(move |number| dir.join(format!("counterfoil.redo-{number}")))
}

impl Redo {
    /// Opens the files. What they hold must not be needed any more.
    pub(crate) fn open(
        dir: &Path,
        media: &dyn Media,
        lineage: Lineage,
        bounds: RedoBounds,
        safe: Arc<AtomicU64>,
    ) -> io::Result<Redo> {
        let mut segments = Vec::new();
        for path in paths(dir) {
            let tape = media.open(&path)?;
            segments.push(Segment { length: tape.length()?, tape, last: 0 });
        }
        Ok(Redo { segments, current: 0, at: 0, lineage, bounds, safe })
    }

    /// Goes on with the next segment once this one is full, and tells whether it was: then the database should be made
    /// sure of more. While the next one holds what it is not sure of, this one grows beyond its bound.
    pub(crate) fn turn_if_full(&mut self) -> bool {
        if self.at < self.bounds.segment {
            return false;
        }
        let next = self.current.saturating_add(1).checked_rem(self.segments.len()).unwrap_or(0);
        let safe = self.safe.load(Ordering::Acquire);
        if self.segments.get(next).is_none_or(|segment| segment.last > safe) {
            return true;
        }
        self.current = next;
        self.at = 0;
        true
    }

    /// Appends a script of `sets` sets from position `first` on, and makes it safe.
    pub(crate) fn append(&mut self, first: u64, sets: u64, script: &[u8]) -> Result<(), Failed> {
        let record = Record::of(self.lineage, first, sets, script)
            .ok_or_else(|| Failed::Unwritten(io::ErrorKind::FileTooLarge.into()))?;
        let mut bytes = Vec::with_capacity(script.len().saturating_add(Record::HEAD));
        bytes.extend_from_slice(&record.encode());
        bytes.extend_from_slice(script);
        let end = self.at.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let Some(segment) = self.segments.get_mut(self.current) else {
            return Err(Failed::Unwritten(io::ErrorKind::NotFound.into()));
        };
        segment.grow(end, self.bounds.extent).map_err(Failed::Unwritten)?;
        if let Err(error) = segment.tape.write(&bytes, self.at) {
            // What of it is there must not be found by a later opening, beside the record that takes its place.
            let undone = segment.tape.write(&[0; Record::HEAD], self.at);
            return Err(if undone.is_ok() { Failed::Unwritten(error) } else { Failed::Unconfirmed(error) });
        }
        segment.tape.sync().map_err(Failed::Unconfirmed)?;
        segment.last = record.last();
        self.at = end;
        Ok(())
    }
}

/// Why a record was not appended.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It is not there: the next one takes its place.
    Unwritten(io::Error),
    /// The disk did not confirm it: it may be found later.
    Unconfirmed(io::Error),
}

impl Segment {
    /// Makes the file long enough.
    fn grow(&mut self, end: u64, extent: usize) -> io::Result<()> {
        while self.length < end {
            self.tape.write(&vec![0; extent.max(1)], self.length)?;
            self.length = self.length.saturating_add(u64::try_from(extent.max(1)).unwrap_or(u64::MAX));
        }
        Ok(())
    }
}

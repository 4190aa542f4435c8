//! The state of a disk after some recorded operations: durable and pending bytes.
//!
//! A write is durable once a sync of its file that began later has succeeded. A name is durable
//! once the directory was synced after the change. A write that was pending when a sync failed is
//! lost to all later syncs, because the kernel has marked its pages clean. Only rewriting the same
//! bytes makes them durable.

use crate::record::Op;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of one directory.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub(crate) files: Vec<File>,
    /// Durable names.
    pub(crate) names: BTreeMap<String, usize>,
    /// Pending name changes: the name, and its new inode or none.
    pub(crate) renames: Vec<(String, Option<usize>)>,
}

/// One file; its names are in [`Disk`].
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    pub(crate) durable: Vec<u8>,
    pub(crate) pending: Vec<Pending>,
}

/// A pending change of a file.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// The number of the operation.
    pub(crate) index: usize,
    pub(crate) change: Change,
    /// A sync has failed while the change was pending.
    pub(crate) is_lost: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write { at: usize, bytes: Arc<[u8]> },
    Truncate(usize),
}

impl Disk {
    /// A disk with these files, all durable.
    pub fn holding(image: &BTreeMap<String, Vec<u8>>) -> Disk {
        let files =
            image.values().map(|bytes| File { durable: bytes.clone(), pending: Vec::new() }).collect();
        let names = image.keys().cloned().zip(0..).collect();
        Disk { files, names, renames: Vec::new() }
    }

    /// Applies the operation with number `index`.
    pub fn apply(&mut self, index: usize, op: &Op) {
        match op {
            Op::Found { name, inode, bytes } => {
                self.file(*inode).durable = bytes.to_vec();
                self.names.insert(name.clone(), *inode);
            }
            Op::Link { name, inode } => {
                self.file(*inode);
                self.renames.push((name.clone(), Some(*inode)));
            }
            Op::Unlink { name } => self.renames.push((name.clone(), None)),
            Op::DirectorySynced { changes } => self.settle_names(*changes),
            Op::Write { inode, at, bytes } => {
                let change = Change::Write { at: *at, bytes: Arc::clone(bytes) };
                self.file(*inode).pending.push(Pending { index, change, is_lost: false });
            }
            Op::Truncate { inode, length } => {
                let change = Change::Truncate(*length);
                self.file(*inode).pending.push(Pending { index, change, is_lost: false });
            }
            Op::Synced { inode, upto } => self.file(*inode).settle(*upto),
            Op::SyncFailed { inode } => {
                for pending in &mut self.file(*inode).pending {
                    // A truncation is in the file system's journal, which a failed sync does not
                    // lose.
                    pending.is_lost = matches!(pending.change, Change::Write { .. });
                }
            }
        }
    }

    /// The directory as running programs see it, with all pending changes.
    pub fn visible(&self) -> BTreeMap<String, Vec<u8>> {
        let names = self.visible_names();
        names.into_iter().filter_map(|(name, inode)| Some((name, self.files.get(inode)?.visible()))).collect()
    }

    /// The names as running programs see them.
    pub fn visible_names(&self) -> BTreeMap<String, usize> {
        let mut names = self.names.clone();
        for (name, target) in &self.renames {
            match target {
                Some(inode) => names.insert(name.clone(), *inode),
                None => names.remove(name),
            };
        }
        names
    }

    /// The same disk as the start of another recording.
    pub fn rebased(mut self) -> Disk {
        for pending in self.files.iter_mut().flat_map(|file| &mut file.pending) {
            pending.index = 0;
        }
        self
    }

    fn file(&mut self, inode: usize) -> &mut File {
        if self.files.len() <= inode {
            self.files.resize_with(inode + 1, File::default);
        }
        &mut self.files[inode]
    }

    fn settle_names(&mut self, changes: usize) {
        for (name, target) in self.renames.drain(..changes.min(self.renames.len())) {
            match target {
                Some(inode) => self.names.insert(name, inode),
                None => self.names.remove(&name),
            };
        }
    }
}

impl File {
    /// Makes the changes before operation `upto` durable.
    fn settle(&mut self, upto: usize) {
        let mut left: Vec<Pending> = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            if pending.is_lost || pending.index >= upto {
                left.push(pending);
                continue;
            }
            // This change replaces the lost bytes that it overwrites.
            left = left.into_iter().flat_map(|older| older.without(&pending.change)).collect();
            pending.change.apply(&mut self.durable);
        }
        self.pending = left;
    }

    fn visible(&self) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for pending in &self.pending {
            pending.change.apply(&mut bytes);
        }
        bytes
    }
}

impl Pending {
    /// The parts of this change that `over` does not overwrite.
    fn without(self, over: &Change) -> Vec<Pending> {
        let Change::Write { at, bytes } = &self.change else { return vec![self] };
        let end = at + bytes.len();
        let (from, to) = match over {
            Change::Write { at, bytes } => (*at, at + bytes.len()),
            Change::Truncate(length) => (*length, usize::MAX),
        };
        let part = |low: usize, high: usize| {
            let piece = bytes.get(low.checked_sub(*at)?..high.checked_sub(*at)?)?;
            let change = Change::Write { at: low, bytes: Arc::from(piece) };
            (!piece.is_empty()).then_some(Pending { change, ..self })
        };
        [part(*at, end.min(from)), part(to.max(*at), end)].into_iter().flatten().collect()
    }
}

impl Change {
    /// Applies the change to the bytes of a file.
    pub(crate) fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Change::Write { at, bytes } => overwrite(file, *at, bytes),
            Change::Truncate(length) => file.resize(*length, 0),
        }
    }
}

/// Writes `bytes` at `at`; a gap reads as zeros.
pub(crate) fn overwrite(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[at..end].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(ops: &[Op]) -> Disk {
        let mut disk = Disk::default();
        for (index, op) in ops.iter().enumerate() {
            disk.apply(index, op);
        }
        disk
    }

    fn write(at: usize, text: &str) -> Op {
        Op::Write { inode: 0, at, bytes: Arc::from(text.as_bytes()) }
    }

    #[test]
    fn a_sync_does_not_cover_writes_after_its_beginning() {
        let disk = disk(&[write(0, "ab"), write(2, "cd"), Op::Synced { inode: 0, upto: 1 }]);
        assert_eq!(disk.files[0].durable, b"ab");
        assert_eq!(disk.files[0].visible(), b"abcd");
    }

    #[test]
    fn a_write_lost_by_a_failed_sync_is_safe_only_after_a_rewrite() {
        let synced = Op::Synced { inode: 0, upto: 99 };
        let failed = Op::SyncFailed { inode: 0 };
        let lost = disk(&[write(0, "abcd"), failed.clone(), write(4, "ef"), synced.clone()]);
        assert_eq!(lost.files[0].durable, b"\0\0\0\0ef");
        assert_eq!(lost.files[0].visible(), b"abcdef");
        let again = disk(&[write(0, "abcd"), failed, write(1, "BC"), synced]);
        assert_eq!(again.files[0].durable, b"\0BC");
        assert_eq!(again.files[0].visible(), b"aBCd");
    }

    #[test]
    fn a_truncation_outlives_a_failed_sync_and_earlier_writes_do_not_come_back() {
        let ops = [
            write(0, "abcd"),
            Op::Truncate { inode: 0, length: 2 },
            Op::SyncFailed { inode: 0 },
            write(2, "ef"),
            Op::Synced { inode: 0, upto: 4 },
        ];
        assert_eq!(disk(&ops).files[0].durable, b"\0\0ef");
        assert_eq!(disk(&ops).files[0].visible(), b"abef");
    }

    #[test]
    fn a_name_is_safe_only_after_a_sync_of_the_directory() {
        let link = Op::Link { name: "log".to_owned(), inode: 0 };
        let made = disk(&[link.clone(), write(0, "x"), Op::Synced { inode: 0, upto: 2 }]);
        assert!(made.names.is_empty() && made.visible().contains_key("log"));
        let kept = disk(&[link, Op::DirectorySynced { changes: 1 }, Op::Unlink { name: "log".to_owned() }]);
        assert!(kept.names.contains_key("log") && kept.visible().is_empty());
    }
}

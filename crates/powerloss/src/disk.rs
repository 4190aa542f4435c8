//! A disk as it stands after some of the recorded operations: what is safe, and what is only on its way.
//!
//! A write is safe when a sync of its file that began after it has succeeded. A name is safe when the directory was
//! synced after it was made, moved or removed. A write that was on its way when a sync failed never becomes safe by a
//! later sync: the kernel has forgotten that it is owed. Only writing the same place again makes the place safe.

use crate::record::Op;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of one directory.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub(crate) files: Vec<File>,
    /// Names that are safe.
    pub(crate) names: BTreeMap<String, usize>,
    /// Changes of names that are on their way: the name, and what it leads to then.
    pub(crate) renames: Vec<(String, Option<usize>)>,
}

/// One file, under whatever name or none.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    pub(crate) safe: Vec<u8>,
    pub(crate) pending: Vec<Pending>,
}

/// A change of a file that is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// Which operation it was.
    pub(crate) index: usize,
    pub(crate) what: What,
    /// A sync failed over it.
    pub(crate) forgotten: bool,
}

/// What it changes.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Write { at: usize, bytes: Arc<[u8]> },
    Truncate(usize),
}

impl Disk {
    /// A disk that holds these files safely.
    pub fn holding(image: &BTreeMap<String, Vec<u8>>) -> Disk {
        let files = image.values().map(|bytes| File { safe: bytes.clone(), pending: Vec::new() }).collect();
        let names = image.keys().cloned().zip(0..).collect();
        Disk { files, names, renames: Vec::new() }
    }

    /// The disk after one more operation, the `index`th.
    pub fn apply(&mut self, index: usize, op: &Op) {
        match op {
            Op::Found { name, inode, bytes } => {
                self.file(*inode).safe = bytes.to_vec();
                self.names.insert(name.clone(), *inode);
            }
            Op::Link { name, inode } => {
                self.file(*inode);
                self.renames.push((name.clone(), Some(*inode)));
            }
            Op::Unlink { name } => self.renames.push((name.clone(), None)),
            Op::DirectorySynced { changes } => self.settle_names(*changes),
            Op::Write { inode, at, bytes } => {
                let what = What::Write { at: *at, bytes: Arc::clone(bytes) };
                self.file(*inode).pending.push(Pending { index, what, forgotten: false });
            }
            Op::Truncate { inode, length } => {
                let what = What::Truncate(*length);
                self.file(*inode).pending.push(Pending { index, what, forgotten: false });
            }
            Op::Synced { inode, upto } => self.file(*inode).settle(*upto),
            Op::SyncFailed { inode } => {
                for pending in &mut self.file(*inode).pending {
                    // A length belongs to the file system's own journal, which does not forget.
                    pending.forgotten = matches!(pending.what, What::Write { .. });
                }
            }
        }
    }

    /// The directory as running programs see it: everything on its way has arrived.
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

    /// The same disk as the beginning of another recording.
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
    /// Makes safe what was written before operation `upto`.
    fn settle(&mut self, upto: usize) {
        let mut left: Vec<Pending> = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            if pending.forgotten || pending.index >= upto {
                left.push(pending);
                continue;
            }
            // What was forgotten earlier no longer matters where this is written over it.
            left = left.into_iter().flat_map(|older| older.without(&pending.what)).collect();
            pending.what.apply(&mut self.safe);
        }
        self.pending = left;
    }

    fn visible(&self) -> Vec<u8> {
        let mut bytes = self.safe.clone();
        for pending in &self.pending {
            pending.what.apply(&mut bytes);
        }
        bytes
    }
}

impl Pending {
    /// What is left of this once `over` lies on top of it.
    fn without(self, over: &What) -> Vec<Pending> {
        let What::Write { at, bytes } = &self.what else { return vec![self] };
        let end = at + bytes.len();
        let (from, to) = match over {
            What::Write { at, bytes } => (*at, at + bytes.len()),
            What::Truncate(length) => (*length, usize::MAX),
        };
        let part = |low: usize, high: usize| {
            let piece = bytes.get(low.checked_sub(*at)?..high.checked_sub(*at)?)?;
            let what = What::Write { at: low, bytes: Arc::from(piece) };
            (!piece.is_empty()).then_some(Pending { what, ..self })
        };
        [part(*at, end.min(from)), part(to.max(*at), end)].into_iter().flatten().collect()
    }
}

impl What {
    /// Lays it over the bytes of a file.
    pub(crate) fn apply(&self, file: &mut Vec<u8>) {
        match self {
            What::Write { at, bytes } => lay(file, *at, bytes),
            What::Truncate(length) => file.resize(*length, 0),
        }
    }
}

/// Writes `bytes` at `at`; a gap reads as zeros.
pub(crate) fn lay(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
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
    fn a_write_is_not_safe_by_a_sync_that_began_before_it() {
        let disk = disk(&[write(0, "ab"), write(2, "cd"), Op::Synced { inode: 0, upto: 1 }]);
        assert_eq!(disk.files[0].safe, b"ab");
        assert_eq!(disk.files[0].visible(), b"abcd");
    }

    #[test]
    fn a_write_a_failed_sync_forgot_is_never_safe_unless_written_again() {
        let synced = Op::Synced { inode: 0, upto: 99 };
        let failed = Op::SyncFailed { inode: 0 };
        let lost = disk(&[write(0, "abcd"), failed.clone(), write(4, "ef"), synced.clone()]);
        assert_eq!(lost.files[0].safe, b"\0\0\0\0ef");
        assert_eq!(lost.files[0].visible(), b"abcdef");
        let again = disk(&[write(0, "abcd"), failed, write(1, "BC"), synced]);
        assert_eq!(again.files[0].safe, b"\0BC");
        assert_eq!(again.files[0].visible(), b"aBCd");
    }

    #[test]
    fn a_cut_of_a_file_outlives_a_failed_sync_and_what_was_written_before_it_does_not_come_back() {
        let ops = [
            write(0, "abcd"),
            Op::Truncate { inode: 0, length: 2 },
            Op::SyncFailed { inode: 0 },
            write(2, "ef"),
            Op::Synced { inode: 0, upto: 4 },
        ];
        assert_eq!(disk(&ops).files[0].safe, b"\0\0ef");
        assert_eq!(disk(&ops).files[0].visible(), b"abef");
    }

    #[test]
    fn a_name_is_safe_only_after_the_directory_was_synced() {
        let link = Op::Link { name: "log".to_owned(), inode: 0 };
        let made = disk(&[link.clone(), write(0, "x"), Op::Synced { inode: 0, upto: 2 }]);
        assert!(made.names.is_empty() && made.visible().contains_key("log"));
        let kept = disk(&[link, Op::DirectorySynced { changes: 1 }, Op::Unlink { name: "log".to_owned() }]);
        assert!(kept.names.contains_key("log") && kept.visible().is_empty());
    }
}

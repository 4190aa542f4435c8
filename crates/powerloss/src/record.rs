//! Records every disk operation of the store in one order, and injects the faults of a plan.
//!
//! The files below are real: a running store sees every write at once, as through the kernel's
//! cache. No file is really synced; the recording tells which bytes a sync would have made durable.

use crate::disk::Disk;
use crate::plan::{FileKind, Lie, Nth, Plan};
use rusqlite::ffi;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The duration of a sync: long enough for sets to gather behind it, as on a disk.
const SYNC_TAKES: Duration = Duration::from_micros(60);

/// A large write is recorded in pieces of this size, each of which a cut may lose.
const PIECE: usize = 16 << 10;

/// One disk operation. Files are identified by a number, the inode.
#[derive(Clone, Debug)]
pub enum Op {
    /// A file existed before the recording; its content is durable.
    Found { name: String, inode: usize, bytes: Arc<[u8]> },
    /// A file was created.
    Link { name: String, inode: usize },
    /// A name was removed.
    Unlink { name: String },
    /// The directory was synced.
    DirectorySynced {
        /// The number of pending name changes that are durable now, oldest first.
        changes: usize,
    },
    /// Bytes were written.
    Write { inode: usize, at: usize, bytes: Arc<[u8]> },
    /// A file was truncated or extended.
    Truncate { inode: usize, length: usize },
    /// A sync has succeeded.
    Synced {
        inode: usize,
        /// The sync covers operations before this one.
        upto: usize,
    },
    /// A sync has failed.
    SyncFailed { inode: usize },
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Handle {
    inode: usize,
    kind: FileKind,
    /// The first sync of a new journal or log also syncs the directory, as SQLite does on Unix.
    directory_owed: AtomicBool,
    /// Failed syncs that this handle has reported. The kernel reports each failure once per handle.
    reported: AtomicU32,
}

/// Records one directory.
#[derive(Debug)]
pub struct Recorder {
    dir: PathBuf,
    plan: Plan,
    base: Disk,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ops: Vec<Op>,
    names: BTreeMap<String, usize>,
    /// Name changes so far.
    renames: usize,
    /// Name changes that a sync of the directory has confirmed.
    renames_safe: usize,
    /// Failed syncs per file.
    failures: Vec<u32>,
    syncs: Calls,
    writes: Calls,
    own_syncs: u32,
    /// Failed syncs of SQLite's WAL that the store's own handle has reported.
    own_wal_reported: u32,
    /// The next sync of this kind of file fails.
    armed: Option<FileKind>,
}

/// Calls per kind of file.
#[derive(Debug, Default)]
struct Calls {
    database: u32,
    sqlite_wal: u32,
    log: u32,
    journal: u32,
}

impl Calls {
    /// Counts a call and returns its number.
    fn count(&mut self, kind: FileKind) -> u32 {
        let calls = match kind {
            FileKind::Database => &mut self.database,
            FileKind::SqliteWal => &mut self.sqlite_wal,
            FileKind::Log => &mut self.log,
            FileKind::Journal => &mut self.journal,
        };
        *calls += 1;
        *calls
    }
}

#[derive(Clone, Debug)]
pub struct Recording {
    /// The disk before the first operation.
    pub base: Disk,
    pub ops: Vec<Op>,
}

static RUNNING: Mutex<Vec<Arc<Recorder>>> = Mutex::new(Vec::new());

impl Recorder {
    /// Writes the visible files of `base` to the empty directory `dir`, and starts to record.
    pub fn start(dir: &Path, base: Disk, plan: Plan) -> std::io::Result<Arc<Recorder>> {
        crate::vfs::install().map_err(std::io::Error::other)?;
        let dir = dir.canonicalize()?;
        for (name, bytes) in base.visible() {
            std::fs::write(dir.join(name), bytes)?;
        }
        let base = base.rebased();
        let state = State {
            names: base.visible_names(),
            renames: base.renames.len(),
            failures: vec![0; base.files.len()],
            ..State::default()
        };
        let recorder = Arc::new(Recorder { dir, plan, base, state: Mutex::new(state) });
        running().push(Arc::clone(&recorder));
        Ok(recorder)
    }

    /// The number of recorded operations.
    pub fn len(&self) -> usize {
        self.state().ops.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the recording. The store must be closed.
    pub fn finish(&self) -> Recording {
        running().retain(|other| other.dir != self.dir);
        Recording { base: self.base.clone(), ops: std::mem::take(&mut self.state().ops) }
    }

    /// Makes the next sync of this kind of file fail.
    pub fn fail_next_sync(&self, of: FileKind) {
        self.state().armed = Some(of);
    }

    /// Whether the store's own sync of the database fails, which does not go through SQLite.
    ///
    /// A success is not recorded: the checks must not rely on it.
    pub fn own_sync_fails(&self) -> bool {
        let mut state = self.state();
        state.own_syncs += 1;
        let Some(inode) = state.names.get("counterfoil.db").copied() else { return false };
        let fails = self.plan.own_sync == Some(state.own_syncs);
        if fails {
            state.fail(inode);
        }
        fails
    }

    /// Whether the store's own sync of SQLite's WAL fails.
    pub fn wal_sync_fails(&self) -> bool {
        let handle = {
            let mut state = self.state();
            let Some(inode) = state.names.get("counterfoil.db-wal").copied() else { return false };
            let reported = state.own_wal_reported;
            state.own_wal_reported = state.failures.get(inode).copied().unwrap_or(0);
            Handle {
                inode,
                kind: FileKind::SqliteWal,
                directory_owed: AtomicBool::new(false),
                reported: AtomicU32::new(reported),
            }
        };
        self.sync(&handle) != ffi::SQLITE_OK
    }

    /// The store has rewritten a file in place and syncs it, without SQLite.
    pub fn rewritten(&self, name: &str) {
        let mut state = self.state();
        let (Some(inode), Ok(bytes)) = (state.names.get(name).copied(), std::fs::read(self.dir.join(name)))
        else {
            return;
        };
        for (turn, piece) in bytes.chunks(PIECE).enumerate() {
            state.ops.push(Op::Write { inode, at: turn * PIECE, bytes: Arc::from(piece) });
        }
        let upto = state.ops.len();
        state.ops.push(Op::Synced { inode, upto });
    }

    /// The recorder of the file at `path`, if its directory is recorded, and the file's name.
    pub(crate) fn of(path: &Path) -> Option<(Arc<Recorder>, String)> {
        let dir = path.parent()?;
        let recorder = running().iter().find(|recorder| recorder.dir == dir).cloned()?;
        Some((recorder, path.file_name()?.to_str()?.to_owned()))
    }

    /// The content of a file that the recorder does not know yet.
    pub(crate) fn unknown(&self, name: &str) -> Option<Vec<u8>> {
        if self.state().names.contains_key(name) {
            return None;
        }
        std::fs::read(self.dir.join(name)).ok()
    }

    /// Opens a file; `found` is its content if it existed and was unknown.
    pub(crate) fn opened(
        &self,
        name: String,
        kind: FileKind,
        found: Option<Vec<u8>>,
        may_create: bool,
    ) -> Handle {
        let mut state = self.state();
        let inode = match state.names.get(&name) {
            Some(inode) => *inode,
            None => state.appear(name, found),
        };
        let reported = AtomicU32::new(state.failures.get(inode).copied().unwrap_or(0));
        let directory_owed = AtomicBool::new(may_create && kind != FileKind::Database);
        Handle { inode, kind, directory_owed, reported }
    }

    /// The store has synced the directory after it created a file.
    pub(crate) fn created(&self, handle: &Handle) {
        if handle.directory_owed.swap(false, Ordering::Relaxed) {
            let mut state = self.state();
            let renames = state.renames;
            state.sync_directory(renames, self.plan.lie);
        }
    }

    /// Writes all bytes through `real`, or as many as the plan allows.
    pub(crate) fn write(
        &self,
        handle: &Handle,
        at: usize,
        bytes: &[u8],
        real: impl FnOnce(&[u8]) -> c_int,
    ) -> c_int {
        let mut state = self.state();
        let number = state.writes.count(handle.kind);
        let full = self.plan.full.filter(|full| full.from.of == handle.kind);
        let beyond = full.and_then(|full| Some((number.checked_sub(full.from.nth)?, full.writes)));
        let (bytes, short) = match beyond {
            Some((0, writes)) if writes > 0 => (bytes.get(..bytes.len() / 2).unwrap_or(bytes), true),
            Some((past, writes)) if past < writes => (&[][..], true),
            _ => (bytes, false),
        };
        if !bytes.is_empty() {
            let code = real(bytes);
            if code != ffi::SQLITE_OK {
                return code;
            }
            state.ops.push(Op::Write { inode: handle.inode, at, bytes: Arc::from(bytes) });
        }
        if short { ffi::SQLITE_FULL } else { ffi::SQLITE_OK }
    }

    pub(crate) fn truncate(&self, handle: &Handle, length: usize, real: impl FnOnce() -> c_int) -> c_int {
        let mut state = self.state();
        let code = real();
        if code == ffi::SQLITE_OK {
            state.ops.push(Op::Truncate { inode: handle.inode, length });
        }
        code
    }

    pub(crate) fn sync(&self, handle: &Handle) -> c_int {
        let (upto, renames) = {
            let mut state = self.state();
            let nth = state.syncs.count(handle.kind);
            let armed = state.armed.take_if(|kind| *kind == handle.kind).is_some();
            if armed || self.plan.sync == Some(Nth { of: handle.kind, nth }) {
                state.fail(handle.inode);
            }
            if state.report_failure(handle) {
                return ffi::SQLITE_IOERR_FSYNC;
            }
            (state.ops.len(), state.renames)
        };
        std::thread::sleep(SYNC_TAKES);
        let mut state = self.state();
        // The kernel checks for failures when the writing is done, so a failure during the sync
        // counts.
        if state.report_failure(handle) {
            return ffi::SQLITE_IOERR_FSYNC;
        }
        if !self.plan.lie.is_some_and(|lie| lie.hides_sync_of(handle.kind)) {
            state.ops.push(Op::Synced { inode: handle.inode, upto });
        }
        if handle.directory_owed.swap(false, Ordering::Relaxed) {
            state.sync_directory(renames, self.plan.lie);
        }
        ffi::SQLITE_OK
    }

    pub(crate) fn delete(&self, name: String, sync_directory: bool, real: impl FnOnce() -> c_int) -> c_int {
        let mut state = self.state();
        let code = real();
        if code == ffi::SQLITE_OK {
            state.names.remove(&name);
            state.renames += 1;
            state.ops.push(Op::Unlink { name });
            if sync_directory {
                let renames = state.renames;
                state.sync_directory(renames, self.plan.lie);
            }
        }
        code
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn appear(&mut self, name: String, found: Option<Vec<u8>>) -> usize {
        let inode = self.failures.len();
        self.failures.push(0);
        self.names.insert(name.clone(), inode);
        let op = if let Some(bytes) = found {
            Op::Found { name, inode, bytes: Arc::from(bytes) }
        } else {
            self.renames += 1;
            Op::Link { name, inode }
        };
        self.ops.push(op);
        inode
    }

    /// A sync of the file fails: each open handle reports it once, and pending writes are lost.
    fn fail(&mut self, inode: usize) {
        if let Some(failures) = self.failures.get_mut(inode) {
            *failures += 1;
        }
        self.ops.push(Op::SyncFailed { inode });
    }

    /// Whether a sync of the file has failed since this handle reported one.
    fn report_failure(&mut self, handle: &Handle) -> bool {
        let failures = self.failures.get(handle.inode).copied().unwrap_or(0);
        let is_new = handle.reported.swap(failures, Ordering::Relaxed) < failures;
        if is_new {
            self.ops.push(Op::SyncFailed { inode: handle.inode });
        }
        is_new
    }

    fn sync_directory(&mut self, renames: usize, lie: Option<Lie>) {
        if lie.is_some_and(Lie::hides_sync_of_directory) {
            return;
        }
        let changes = renames.saturating_sub(self.renames_safe);
        self.renames_safe += changes;
        self.ops.push(Op::DirectorySynced { changes });
    }
}

fn running() -> MutexGuard<'static, Vec<Arc<Recorder>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

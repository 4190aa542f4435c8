//! Records what SQLite asks of its disk, in one order, and plays the faults of a plan.
//!
//! The files below are real: a running store sees every write at once, as through the kernel's cache. Nothing is
//! really synced; what a sync would have made safe is worked out from the recording.

use crate::disk::Disk;
use crate::plan::{Kind, Lie, Nth, Plan};
use rusqlite::ffi;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a sync takes: long enough for sets to gather behind it, as on a disk.
const SYNC_TAKES: Duration = Duration::from_micros(60);

/// Bytes of a large write that arrive or not together.
const PIECE: usize = 16 << 10;

/// One thing asked of the disk.
#[derive(Clone, Debug)]
pub enum Op {
    /// A file was there before anybody asked; it is safe.
    Found {
        /// Its name.
        name: String,
        /// Its number.
        inode: usize,
        /// What it held.
        bytes: Arc<[u8]>,
    },
    /// A file was made.
    Link {
        /// Its name.
        name: String,
        /// Its number.
        inode: usize,
    },
    /// A name was removed.
    Unlink {
        /// The name.
        name: String,
    },
    /// The directory was synced.
    DirectorySynced {
        /// How many of the changes of names that were on their way are safe now.
        changes: usize,
    },
    /// Bytes were written.
    Write {
        /// To which file.
        inode: usize,
        /// Where.
        at: usize,
        /// What.
        bytes: Arc<[u8]>,
    },
    /// A file was cut, or made longer.
    Truncate {
        /// Which.
        inode: usize,
        /// Its length since.
        length: usize,
    },
    /// A sync has succeeded.
    Synced {
        /// Of which file.
        inode: usize,
        /// It began before this operation.
        upto: usize,
    },
    /// A sync has failed.
    SyncFailed {
        /// Of which file.
        inode: usize,
    },
}

/// A file as SQLite has it open.
#[derive(Debug)]
pub(crate) struct Handle {
    inode: usize,
    kind: Kind,
    /// The first sync of a new journal or log also syncs the directory, as SQLite does on Unix.
    directory_owed: AtomicBool,
    /// Failures of syncs this handle was told of. The kernel tells every open handle once.
    told: AtomicU32,
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
    /// Changes of names so far.
    renames: usize,
    /// So many of them are safe, as far as SQLite was told.
    renames_safe: usize,
    /// Per file, how many of its syncs have failed.
    failures: Vec<u32>,
    syncs: Calls,
    writes: Calls,
    own_syncs: u32,
    /// Failures of syncs of the write-ahead log the store's own handle was told of.
    own_log_told: u32,
    /// The next sync of such a file fails.
    armed: Option<Kind>,
}

/// How often each kind of file was asked for something.
#[derive(Debug, Default)]
struct Calls {
    database: u32,
    log: u32,
    redo: u32,
    journal: u32,
}

impl Calls {
    /// Counts one more, and tells which it is.
    fn count(&mut self, kind: Kind) -> u32 {
        let calls = match kind {
            Kind::Database => &mut self.database,
            Kind::Log => &mut self.log,
            Kind::Redo => &mut self.redo,
            Kind::Journal => &mut self.journal,
        };
        *calls += 1;
        *calls
    }
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The disk at the beginning.
    pub base: Disk,
    /// What was asked of it since.
    pub ops: Vec<Op>,
}

static RUNNING: Mutex<Vec<Arc<Recorder>>> = Mutex::new(Vec::new());

impl Recorder {
    /// Writes what is visible on `base` to `dir`, which must be empty, and records from there.
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

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.state().ops.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the recording. The store must be closed.
    pub fn finish(&self) -> Recording {
        running().retain(|other| other.dir != self.dir);
        Recording { base: self.base.clone(), ops: std::mem::take(&mut self.state().ops) }
    }

    /// Lets the next sync of such a file fail.
    pub fn fail_next_sync(&self, of: Kind) {
        self.state().armed = Some(of);
    }

    /// The store is about to sync the database past SQLite. Whether that fails.
    ///
    /// A success is not recorded: it could only make more safe than is counted on.
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

    /// The store is about to sync the write-ahead log past SQLite. Whether that fails.
    pub fn log_sync_fails(&self) -> bool {
        let handle = {
            let mut state = self.state();
            let Some(inode) = state.names.get("counterfoil.db-wal").copied() else { return false };
            let told = state.own_log_told;
            state.own_log_told = state.failures.get(inode).copied().unwrap_or(0);
            Handle {
                inode,
                kind: Kind::Log,
                directory_owed: AtomicBool::new(false),
                told: AtomicU32::new(told),
            }
        };
        self.sync(&handle) != ffi::SQLITE_OK
    }

    /// The store has written a file again as it stands, past SQLite, and is about to sync it.
    pub fn written_again(&self, name: &str) {
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

    /// What the file at `path` holds, if it is not known here yet.
    pub(crate) fn unknown(&self, name: &str) -> Option<Vec<u8>> {
        if self.state().names.contains_key(name) {
            return None;
        }
        std::fs::read(self.dir.join(name)).ok()
    }

    /// A file was opened; `found` is what it held if it was there already and unknown.
    pub(crate) fn opened(
        &self,
        name: String,
        kind: Kind,
        found: Option<Vec<u8>>,
        may_create: bool,
    ) -> Handle {
        let mut state = self.state();
        let inode = match state.names.get(&name) {
            Some(inode) => *inode,
            None => state.appear(name, found),
        };
        let told = AtomicU32::new(state.failures.get(inode).copied().unwrap_or(0));
        let directory_owed = AtomicBool::new(may_create && kind != Kind::Database);
        Handle { inode, kind, directory_owed, told }
    }

    /// The directory was synced after a file was made, as the store does with its own.
    pub(crate) fn made(&self, handle: &Handle) {
        if handle.directory_owed.swap(false, Ordering::Relaxed) {
            let mut state = self.state();
            let renames = state.renames;
            state.sync_directory(renames, self.plan.lie);
        }
    }

    /// Writes, by `real`, all of the bytes or as many as the plan lets through.
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
            if state.tell_failure(handle) {
                return ffi::SQLITE_IOERR_FSYNC;
            }
            (state.ops.len(), state.renames)
        };
        std::thread::sleep(SYNC_TAKES);
        let mut state = self.state();
        // The kernel looks for failures when the writing is done, so one that came meanwhile is told, too.
        if state.tell_failure(handle) {
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

    /// A sync of the file fails: every open handle is told once, and what was on its way is forgotten.
    fn fail(&mut self, inode: usize) {
        if let Some(failures) = self.failures.get_mut(inode) {
            *failures += 1;
        }
        self.ops.push(Op::SyncFailed { inode });
    }

    /// Whether a sync of the file has failed since this handle was last told.
    fn tell_failure(&mut self, handle: &Handle) -> bool {
        let failures = self.failures.get(handle.inode).copied().unwrap_or(0);
        let is_news = handle.told.swap(failures, Ordering::Relaxed) < failures;
        if is_news {
            self.ops.push(Op::SyncFailed { inode: handle.inode });
        }
        is_news
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

//! The layer below SQLite.
//!
//! The layer is the default VFS in front of SQLite's own Unix layer, so the store needs no option
//! to use it. It replaces four functions (write, truncate, sync, close) of files in a recorded
//! directory. All other functions and files are SQLite's own.

#![expect(unsafe_code, reason = "SQLite's layer is a table of C functions; there is no safe form of it")]

use crate::plan::FileKind;
use crate::record::{Handle, Recorder};
use rusqlite::ffi::{self, sqlite3_file, sqlite3_filename, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};
use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// SQLite's own Unix layer.
#[derive(Clone, Copy)]
struct Below(*mut sqlite3_vfs);

// SAFETY: the pointer leads to a static structure of SQLite and is only passed to that structure's
// own functions, which SQLite calls from any thread.
unsafe impl Send for Below {}
// SAFETY: as above.
unsafe impl Sync for Below {}

static BELOW: OnceLock<Result<Below, String>> = OnceLock::new();
/// Open recorded files, by the address of SQLite's file object.
static OPEN: Mutex<Option<HashMap<usize, Arc<Opened>>>> = Mutex::new(None);

/// An open recorded file.
struct Opened {
    recorder: Arc<Recorder>,
    handle: Handle,
    /// The functions of SQLite's own layer for this file.
    below: &'static sqlite3_io_methods,
}

/// Installs the layer in front of SQLite's own, once per process.
pub fn install() -> Result<(), String> {
    BELOW.get_or_init(register).as_ref().map(|_| ()).map_err(Clone::clone)
}

fn register() -> Result<Below, String> {
    // SAFETY: a null name asks for the default layer, which lives as long as the process; it is
    // copied, not changed.
    let (below, mut layer) = unsafe {
        let below = ffi::sqlite3_vfs_find(ptr::null());
        (below, *below.as_ref().ok_or("SQLite has no layer for files")?)
    };
    // The other functions stay those of the layer below, which ignore the structure they are called
    // with.
    layer.zName = c"powerloss".as_ptr();
    layer.pNext = ptr::null_mut();
    layer.xOpen = Some(open);
    layer.xDelete = Some(delete);
    // SAFETY: the structure is never freed, as SQLite asks.
    let code = unsafe { ffi::sqlite3_vfs_register(Box::into_raw(Box::new(layer)), 1) };
    if code == ffi::SQLITE_OK {
        Ok(Below(below))
    } else {
        Err(format!("SQLite refuses the layer: code {code}"))
    }
}

fn below() -> Option<Below> {
    BELOW.get()?.as_ref().ok().copied()
}

fn opened() -> MutexGuard<'static, Option<HashMap<usize, Arc<Opened>>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn recorded(file: *mut sqlite3_file) -> Option<Arc<Opened>> {
    opened().as_ref()?.get(&file.addr()).cloned()
}

/// The recorder of a path from SQLite, and the name of the file.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn recorder(name: *const c_char) -> Option<(Arc<Recorder>, String)> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the caller promises a C string; the path is not kept.
    let path = unsafe { CStr::from_ptr(name) };
    Recorder::of(Path::new(OsStr::from_bytes(path.to_bytes())))
}

/// Implements `xOpen`.
///
/// # Safety
/// Called by SQLite by its rules for `xOpen`: `file` has the room the layer below asks for.
unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let Some(below) = below() else { return ffi::SQLITE_CANTOPEN };
    // SAFETY: SQLite gives a C string, or null for a temporary file.
    let place = unsafe { recorder(name) };
    let found = place.as_ref().and_then(|(recorder, name)| recorder.unknown(name));
    // SAFETY: the call is passed on unchanged, to the layer whose file size SQLite has allocated.
    let code = unsafe {
        match (*below.0).xOpen {
            Some(open) => open(below.0, name, file, flags, out),
            None => ffi::SQLITE_CANTOPEN,
        }
    };
    if code != ffi::SQLITE_OK {
        return code;
    }
    let Some((recorder, name)) = place else { return code };
    // SAFETY: a file that was opened has its table of functions, which is static in SQLite.
    let Some(methods) = (unsafe { (*file).pMethods.as_ref() }) else { return ffi::SQLITE_CANTOPEN };
    let kind = match flags {
        flags if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => FileKind::Database,
        flags if flags & ffi::SQLITE_OPEN_WAL != 0 => FileKind::SqliteWal,
        _ => FileKind::Journal,
    };
    let handle = recorder.opened(name, kind, found, flags & ffi::SQLITE_OPEN_CREATE != 0);
    opened()
        .get_or_insert_default()
        .insert(file.addr(), Arc::new(Opened { recorder, handle, below: methods }));
    // SAFETY: the table lives for ever. Four functions differ from the file's own, and each of them
    // calls the file's own.
    unsafe { (*file).pMethods = in_front_of(methods) };
    code
}

/// The table of functions that record and then call `below`; one per table of the layer below,
/// leaked.
fn in_front_of(below: &'static sqlite3_io_methods) -> &'static sqlite3_io_methods {
    static TABLES: Mutex<Vec<(usize, &'static sqlite3_io_methods)>> = Mutex::new(Vec::new());
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let key = ptr::from_ref(below).addr();
    if let Some((_, table)) = tables.iter().find(|(other, _)| *other == key) {
        return table;
    }
    let table: &'static sqlite3_io_methods = Box::leak(Box::new(sqlite3_io_methods {
        xClose: Some(close),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        ..*below
    }));
    tables.push((key, table));
    table
}

/// # Safety
/// Called by SQLite by its rules for `xClose`.
unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // Remove the file before closing it: afterwards its address may be reused.
    let Some(known) = opened().as_mut().and_then(|files| files.remove(&file.addr())) else {
        return ffi::SQLITE_IOERR_CLOSE;
    };
    // SAFETY: the file's own function, with the file it was opened for.
    unsafe { known.below.xClose.map_or(ffi::SQLITE_IOERR_CLOSE, |close| close(file)) }
}

/// # Safety
/// Called by SQLite by its rules for `xWrite`: `bytes` leads to `count` bytes.
unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    count: c_int,
    at: sqlite3_int64,
) -> c_int {
    let (Some(known), Ok(count), Ok(place)) = (recorded(file), usize::try_from(count), usize::try_from(at))
    else {
        return ffi::SQLITE_IOERR_WRITE;
    };
    // SAFETY: SQLite promises that many bytes for the length of the call.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) };
    known.recorder.write(&known.handle, place, bytes, |bytes| {
        let (Some(write), Ok(count)) = (known.below.xWrite, c_int::try_from(bytes.len())) else {
            return ffi::SQLITE_IOERR_WRITE;
        };
        // SAFETY: the file's own function, with a prefix of SQLite's bytes.
        unsafe { write(file, bytes.as_ptr().cast(), count, at) }
    })
}

/// # Safety
/// Called by SQLite by its rules for `xTruncate`.
unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: sqlite3_int64) -> c_int {
    let (Some(known), Ok(place)) = (recorded(file), usize::try_from(length)) else {
        return ffi::SQLITE_IOERR_TRUNCATE;
    };
    known.recorder.truncate(&known.handle, place, || {
        // SAFETY: the file's own function with unchanged arguments.
        unsafe { known.below.xTruncate.map_or(ffi::SQLITE_IOERR_TRUNCATE, |truncate| truncate(file, length)) }
    })
}

/// Syncs nothing: the recording tells which bytes would be durable.
extern "C" fn sync(file: *mut sqlite3_file, _: c_int) -> c_int {
    recorded(file).map_or(ffi::SQLITE_IOERR_FSYNC, |known| known.recorder.sync(&known.handle))
}

/// # Safety
/// Called by SQLite by its rules for `xDelete`: `name` is a C string.
unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    let Some(below) = below() else { return ffi::SQLITE_IOERR_DELETE };
    let real = || {
        // SAFETY: the call is passed on unchanged.
        unsafe {
            match (*below.0).xDelete {
                Some(delete) => delete(below.0, name, sync_directory),
                None => ffi::SQLITE_IOERR_DELETE,
            }
        }
    };
    // SAFETY: SQLite gives a C string.
    match unsafe { recorder(name) } {
        Some((recorder, name)) => recorder.delete(name, sync_directory != 0, real),
        None => real(),
    }
}

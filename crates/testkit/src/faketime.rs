//! `libfaketime`, which gives a program another clock.

use crate::failure::{Failure, Result};
use std::fs;
use std::path::PathBuf;

/// Its Debian package.
pub const PACKAGE: &str = "libfaketime";

/// Finds the library for multi-threaded programs, to be loaded with LD_PRELOAD.
pub fn find() -> Result<PathBuf> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut libraries = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.is_file()).ok_or_else(|| {
        Failure::new(format!(
            "{PACKAGE} is not installed: `cargo xtask test` installs it, or `apt-get install {PACKAGE}`"
        ))
    })
}

//! `libfaketime`, which gives a program another clock.

use crate::failure::{Failure, Result};
use std::fs;
use std::path::PathBuf;

/// The Debian package it comes in.
pub const PACKAGE: &str = "libfaketime";

/// The library for programs with threads, to be loaded before a program's own.
pub fn find() -> Result<PathBuf> {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut libraries = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.is_file()).ok_or_else(|| {
        Failure::new(format!(
            "{PACKAGE} is not installed: `cargo xtask test` installs it, or `apt-get install {PACKAGE}`"
        ))
    })
}

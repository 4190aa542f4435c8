//! The location of PostgreSQL's programs.

use crate::failure::{Failure, Result};
use std::path::{Path, PathBuf};

/// The directory with `initdb`, `postgres` and the others.
#[derive(Clone, Debug)]
pub struct Binaries(PathBuf);

/// Debian keeps the server's programs out of the path, by major version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Looks in Debian's directories, the newest version first, then in the path.
pub fn find() -> Result<Binaries> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = path.file_name()?.to_str()?.parse().ok()?;
            Some((version, path.join("bin")))
        })
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = versions.into_iter().map(|(_, folder)| folder).chain(std::env::split_paths(&path));
    let complete = |folder: &Path| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file());
    candidates.into_iter().find(|folder| complete(folder)).map(Binaries).ok_or_else(|| {
        Failure::new("no PostgreSQL server is installed: install the package `postgresql` (15 or newer)")
    })
}

impl Binaries {
    /// The path of a program.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

//! Disk usage of a directory.

use crate::failure::{Failure, Result};
use rustix::fs::statfs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Linux's number for file systems in memory.
const TMPFS: i64 = 0x0102_1994;

/// Bytes of the blocks that the files of `directory` use.
pub(super) fn used(directory: &Path) -> Result<u64> {
    let failed = || Failure::while_(format!("measuring {}", directory.display()));
    let mut bytes = 0_u64;
    for entry in std::fs::read_dir(directory).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        // A file deleted meanwhile uses nothing.
        let Ok(metadata) = entry.metadata() else { continue };
        let more =
            if metadata.is_dir() { used(&entry.path())? } else { metadata.blocks().saturating_mul(512) };
        bytes = bytes.saturating_add(more);
    }
    Ok(bytes)
}

/// Whether `directory` is on a file system in memory, where fsync costs nothing.
pub(super) fn is_memory(directory: &Path) -> bool {
    statfs(directory).is_ok_and(|found| found.f_type == TMPFS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_subdirectories_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("inner")).unwrap();
        let empty = used(directory.path()).unwrap();
        let mut file = std::fs::File::create(directory.path().join("inner/file")).unwrap();
        std::io::Write::write_all(&mut file, &vec![7; 100_000]).unwrap();
        file.sync_all().unwrap();
        assert!(used(directory.path()).unwrap() >= empty + 100_000);
        assert!(used(&directory.path().join("absent")).is_err());
    }
}

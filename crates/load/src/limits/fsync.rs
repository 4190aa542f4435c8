//! The cost of one durable write: append 4 KiB to a growing file, `fdatasync`, again.
//!
//! Blocks its thread. Removes the file at the end, even after a failure.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::histogram::Histogram;
use crate::report::per_second;

const BLOCK: [u8; 4096] = [0x5A; 4096];
/// Ends a long run on a fast disk before it fills the disk: 1 GiB.
const BLOCKS_MAX: u64 = 1 << 18;

/// The figures of the loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FsyncReport {
    /// Number of durable appends.
    pub operations: u64,
    pub seconds: f64,
    pub per_second: f64,
    /// Median in microseconds.
    pub p50_us: u64,
    /// 99th percentile in microseconds.
    pub p99_us: u64,
    /// Maximum in microseconds.
    pub max_us: u64,
}

/// Measures in `directory` for `duration`, with at least one write.
pub fn run(directory: &Path, duration: Duration) -> Result<FsyncReport, LoadError> {
    let path = directory.join(format!("counterfoil-fsync-{}.tmp", std::process::id()));
    let failed = |source| LoadError::File { path: path.clone(), source };
    let mut file = OpenOptions::new().append(true).create_new(true).open(&path).map_err(failed)?;
    let measured = measure(&mut file, duration);
    let removed = fs::remove_file(&path);
    let (latencies, took) = measured.map_err(failed)?;
    removed.map_err(failed)?;
    Ok(FsyncReport {
        operations: latencies.count(),
        seconds: took.as_secs_f64(),
        per_second: per_second(latencies.count(), took),
        p50_us: latencies.percentile_us(500),
        p99_us: latencies.percentile_us(990),
        max_us: latencies.max_us(),
    })
}

fn measure(file: &mut File, duration: Duration) -> io::Result<(Histogram, Duration)> {
    let mut latencies = Histogram::default();
    let start = Instant::now();
    let mut before = start;
    loop {
        file.write_all(&BLOCK)?;
        file.sync_data()?;
        let after = Instant::now();
        latencies.record(after - before);
        before = after;
        let took = after - start;
        if took >= duration || latencies.count() >= BLOCKS_MAX {
            return Ok((latencies, took));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let report = run(directory.path(), Duration::from_millis(20)).unwrap();
        assert!(report.operations >= 1 && report.seconds >= 0.02);
        assert!(report.p50_us <= report.p99_us && report.p99_us <= report.max_us);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_directory_is_a_clear_error() {
        let directory = tempfile::tempdir().unwrap();
        let message = run(&directory.path().join("absent"), Duration::ZERO).unwrap_err().to_string();
        assert!(message.contains("choose a directory"), "{message}");
    }
}

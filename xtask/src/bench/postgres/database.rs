//! The PostgreSQL server of a run, started with the test kit's settings and removed afterwards.

use crate::bench::disk;
use crate::failure::{Failure, Result};
use crate::process::cpu_of_family;
use crate::servers;
use counterfoil_testkit::postgres::{Server, connect};
use std::time::Duration;

/// Production settings for both sides: memory for the write-ahead log, and a log long enough that
/// no checkpoint falls into one measurement but not the other.
const SETTINGS: [(&str, &str); 3] =
    [("max_wal_size", "16GB"), ("min_wal_size", "8GB"), ("wal_buffers", "64MB")];
/// Limit of shared buffers. PostgreSQL's manual recommends a quarter of the memory; three rounds
/// fill no more than this.
const PAGES_MAX: u64 = 4 << 30;
/// PostgreSQL's page size.
const PAGE: u64 = 8_192;
/// Log written by three rounds, in millions of bytes.
const LOG_MB: u64 = 8_000;

pub(super) struct Database {
    server: Server,
    pid: u32,
}

impl Database {
    /// Starts a server whose log and memory have been used before.
    pub(super) async fn start() -> Result<Database> {
        let pages = memory()?.div_euclid(4).min(PAGES_MAX).div_euclid(PAGE);
        let buffers = pages.to_string();
        let settings: Vec<(&str, &str)> =
            SETTINGS.into_iter().chain([("shared_buffers", &*buffers)]).collect();
        let server = servers::postgres(&settings)?;
        let pid = server.pid().map_err(|failure| Failure::new(failure.to_string()))?;
        if disk::is_memory(&server.data()) {
            eprintln!("xtask: {} is memory: durable writes cost nothing here", server.data().display());
        }
        let database = Database { server, pid };
        for step in warm_up_sql(pages) {
            database.order("using log and memory once", &step).await?;
        }
        Ok(database)
    }

    /// Creates an empty database and returns its URL.
    pub(super) async fn create(&self, name: &str) -> Result<String> {
        self.order("making a database", &format!("CREATE DATABASE {name}")).await?;
        Ok(format!("{}/{name}", self.server.address()))
    }

    async fn order(&self, doing: &str, sql: &str) -> Result<()> {
        let admin = connect(&format!("{}/postgres", self.server.address())).await;
        let admin = admin.map_err(Failure::while_(doing))?;
        admin.batch_execute(sql).await.map_err(Failure::while_(doing))
    }

    /// CPU time of all the server's processes so far.
    pub(super) fn cpu(&self) -> Result<Duration> {
        cpu_of_family(self.pid)
    }
}

/// SQL that fills and frees all shared buffers and writes as much log as a run. A production server
/// has such memory and recycled log files. A new server gets its memory page by page and creates
/// each log file when needed: 16 MB of zeros and a sync, while every commit waits for 40 ms. The
/// faster side would pay more often.
fn warm_up_sql(pages: u64) -> [String; 4] {
    let by_pages = pages.saturating_mul(PAGE).div_euclid(1_000_000);
    let more = LOG_MB.saturating_sub(by_pages);
    [
        "CREATE TABLE age (page TEXT); ALTER TABLE age ALTER COLUMN page SET STORAGE PLAIN".to_owned(),
        format!("INSERT INTO age SELECT repeat('x', 8000) FROM generate_series(1, {pages})"),
        format!(
            "DROP TABLE age; DO $$ BEGIN FOR megabyte IN 1..{more} LOOP \
                PERFORM pg_logical_emit_message(false, 'age', repeat('x', 1000000)); END LOOP; END $$"
        ),
        "CHECKPOINT".to_owned(),
    ]
}

/// The machine's memory, in bytes.
fn memory() -> Result<u64> {
    let doing = "reading /proc/meminfo";
    let meminfo = std::fs::read_to_string("/proc/meminfo").map_err(Failure::while_(doing))?;
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB")?.trim().parse().ok());
    let kib: u64 =
        total.ok_or_else(|| Failure::new(format!("{doing}: it does not say how much there is")))?;
    Ok(kib.saturating_mul(1_024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_as_long_whatever_the_memory() {
        assert!(memory().unwrap() > 0);
        for (pages, by_words) in [(524_288, "1..3706 "), (131_072, "1..6927 "), (2_000_000, "1..0 ")] {
            assert!(warm_up_sql(pages)[2].contains(by_words), "{pages}: {}", warm_up_sql(pages)[2]);
        }
    }
}

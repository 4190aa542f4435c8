//! The PostgreSQL server of a run: its own, with the settings that every server here has, and gone with it.

use crate::bench::disk;
use crate::failure::{Failure, Result};
use crate::process::cpu_of_family;
use crate::servers;
use counterfoil_testkit::postgres::{Server, connect};
use std::time::Duration;

/// What a server in use is given, for both sides alike: memory for the log, and a log so long that no checkpoint falls into a run of
/// three rounds, into one measurement and not into the other.
const SETTINGS: [(&str, &str); 3] =
    [("max_wal_size", "16GB"), ("min_wal_size", "8GB"), ("wal_buffers", "64MB")];
/// Memory for pages: a quarter of the machine's, as PostgreSQL's manual has it, and not more than all rounds fill.
const PAGES_MAX: u64 = 4 << 30;
/// A page of PostgreSQL's.
const PAGE: u64 = 8_192;
/// What three rounds write to the log, in millions of bytes.
const LOG_MB: u64 = 8_000;

/// The server.
pub(super) struct Database {
    server: Server,
    pid: u32,
}

impl Database {
    /// A server whose log and memory have been used before.
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
        for step in aged(pages) {
            database.order("using log and memory once", &step).await?;
        }
        Ok(database)
    }

    /// Makes an empty database and gives its URL.
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

/// Uses all memory for pages once and leaves it free; writes to the log what a run will, and leaves its files to be used again. A server in
/// use has such memory and such files. A new one is given its memory by the machine page by page, and makes each file of the log when it is
/// needed, 16 MB of zeros and a sync, while every commit waits for 40 ms: the more often, the more is committed.
fn aged(pages: u64) -> [String; 4] {
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
    let told = std::fs::read_to_string("/proc/meminfo").map_err(Failure::while_(doing))?;
    let total =
        told.lines().find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB")?.trim().parse().ok());
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
            assert!(aged(pages)[2].contains(by_words), "{pages}: {}", aged(pages)[2]);
        }
    }
}

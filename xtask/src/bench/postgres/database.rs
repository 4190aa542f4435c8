//! The PostgreSQL server of a run: its own, with the settings that every server here has, and gone with it.

use crate::bench::disk;
use crate::failure::{Failure, Result};
use crate::process::cpu_of_family;
use crate::servers;
use counterfoil_testkit::postgres::{Server, connect};
use std::time::Duration;

/// What a server in use is given, for both sides alike: memory for pages and for the log. Checkpoints are far apart enough that
/// none falls into one measurement and not into the other.
const SETTINGS: [(&str, &str); 4] =
    [("max_wal_size", "4GB"), ("min_wal_size", "4GB"), ("shared_buffers", "1GB"), ("wal_buffers", "64MB")];

/// Writes 2 GB to the log and leaves its files to be used again; uses all memory for pages once, and leaves it free. A server in use
/// has such files and such memory. A new one makes each file when it is needed, 16 MB of zeros and a sync, while every commit waits, and
/// is given its memory by the machine page by page: the more often, the more is committed.
const AGE: [&str; 4] = [
    "CREATE TABLE age (page TEXT); ALTER TABLE age ALTER COLUMN page SET STORAGE PLAIN",
    "INSERT INTO age SELECT repeat('x', 8000) FROM generate_series(1, 131072)",
    "DROP TABLE age; DO $$ BEGIN FOR megabyte IN 1..1000 LOOP \
        PERFORM pg_logical_emit_message(false, 'age', repeat('x', 1000000)); END LOOP; END $$",
    "CHECKPOINT",
];

/// The server.
pub(super) struct Database {
    server: Server,
    pid: u32,
}

impl Database {
    /// A server whose log has been written before.
    pub(super) async fn start() -> Result<Database> {
        let server = servers::postgres(&SETTINGS)?;
        let pid = server.pid().map_err(|failure| Failure::new(failure.to_string()))?;
        if disk::is_memory(&server.data()) {
            eprintln!("xtask: {} is memory: durable writes cost nothing here", server.data().display());
        }
        let database = Database { server, pid };
        for step in AGE {
            database.order("using log and memory once", step).await?;
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

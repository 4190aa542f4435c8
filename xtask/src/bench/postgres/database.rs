//! The PostgreSQL server of a run: its own, with the settings that every server here has, and gone with it.

use crate::bench::disk;
use crate::failure::{Failure, Result};
use crate::process::cpu_of_family;
use crate::servers;
use counterfoil_testkit::postgres::{Server, connect};
use std::time::Duration;

/// What a server in use is given, for both sides alike: memory for pages and for the log. Checkpoints are far apart enough that
/// none falls into one measurement and not into the other.
const SETTINGS: [(&str, &str); 3] =
    [("max_wal_size", "4GB"), ("shared_buffers", "1GB"), ("wal_buffers", "64MB")];

/// The server.
pub(super) struct Database {
    server: Server,
    pid: u32,
}

impl Database {
    pub(super) fn start() -> Result<Database> {
        let server = servers::postgres(&SETTINGS)?;
        let pid = server.pid().map_err(|failure| Failure::new(failure.to_string()))?;
        if disk::is_memory(&server.data()) {
            eprintln!("xtask: {} is memory: durable writes cost nothing here", server.data().display());
        }
        Ok(Database { server, pid })
    }

    /// Makes an empty database and gives its URL.
    pub(super) async fn create(&self, name: &str) -> Result<String> {
        let admin = connect(&format!("{}/postgres", self.server.address())).await;
        let admin = admin.map_err(Failure::while_("making a database"))?;
        let made = admin.batch_execute(&format!("CREATE DATABASE {name}")).await;
        made.map_err(Failure::while_("making a database"))?;
        Ok(format!("{}/{name}", self.server.address()))
    }

    /// CPU time of all the server's processes so far.
    pub(super) fn cpu(&self) -> Result<Duration> {
        cpu_of_family(self.pid)
    }
}

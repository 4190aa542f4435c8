//! Kills: `kill -9` at a random instant, an immediate restart, and the time until ready. If servers
//! share a database, any of them is killed, and sometimes the database.

use super::database::Database;
use crate::failure::Result;
use crate::process::{Product, Running};
use counterfoil_prng::Prng;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// One of this many kills is followed by another one during the restart: recovery must survive a
/// crash too.
const TWICE_ONCE_IN: u64 = 8;
/// Longest delay of that second kill after the start.
const DURING_START_MS: u64 = 40;
/// Longest downtime of the database.
const AWAY_MS: u64 = 300;

/// Parameters with which servers are started and restarted.
pub(super) struct ServerLauncher {
    pub(super) product: Product,
    /// A path or a URL.
    pub(super) store: String,
    pub(super) gateway: SocketAddr,
    pub(super) settings: Vec<(&'static str, String)>,
}

/// A server at its address.
pub(super) struct RunningServer {
    pub(super) address: SocketAddr,
    pub(super) server: Running,
}

/// A schedule of kills.
pub(super) struct Plan {
    pub(super) kills: u64,
    /// A kill comes within this time after the server is ready.
    pub(super) within: Duration,
    /// One of this many kills also kills the database.
    pub(super) database_every: u64,
}

/// Counters of the inflicted faults.
#[derive(Default)]
pub(super) struct FaultCounts {
    /// Times from kill to ready.
    pub(super) readiness: Vec<Duration>,
    pub(super) kills: u64,
    pub(super) database_kills: u64,
    /// Number of full disks.
    pub(super) full: u64,
    /// Number of clock moves.
    pub(super) moves: u64,
}

impl ServerLauncher {
    /// Starts a server and waits until it is ready.
    pub(super) async fn start_server(&self, address: SocketAddr) -> Result<RunningServer> {
        let begun = Instant::now();
        let mut server = self.start(address)?;
        server.ready(address, begun).await?;
        Ok(RunningServer { address, server })
    }

    fn start(&self, address: SocketAddr) -> Result<Running> {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.product.server(address, &self.store, self.gateway, &settings)
    }

    /// Kills servers as planned, one at a time, and leaves all of them ready.
    pub(super) async fn kill_repeatedly(
        &self,
        servers: &mut [RunningServer],
        mut database: Option<&mut Database>,
        plan: &Plan,
        prng: &mut Prng,
        progress: impl Fn(u64),
    ) -> Result<FaultCounts> {
        let within_us = u64::try_from(plan.within.as_micros()).unwrap_or(u64::MAX);
        let mut counts = FaultCounts::default();
        let mut done = 0;
        while done < plan.kills {
            sleep(Duration::from_micros(prng.below(within_us))).await;
            let chosen = usize::try_from(prng.below(servers.len() as u64)).unwrap_or(0);
            let RunningServer { address, server } = &mut servers[chosen];
            server.kill().await?;
            done += 1;
            if let Some(database) = &mut database
                && done / plan.database_every.max(1) > counts.database_kills
            {
                // A server cannot start without its database; the running ones must recover once it
                // is back.
                database.crash(Duration::from_millis(prng.below(AWAY_MS))).await?;
                counts.database_kills += 1;
            }
            let mut begun = Instant::now();
            *server = self.start(*address)?;
            while done < plan.kills && prng.once_in(TWICE_ONCE_IN) {
                sleep(Duration::from_micros(prng.below(DURING_START_MS * 1_000))).await;
                server.kill().await?;
                done += 1;
                begun = Instant::now();
                *server = self.start(*address)?;
            }
            counts.kills = done;
            counts.readiness.push(server.ready(*address, begun).await?);
            for RunningServer { address, server } in servers.iter_mut() {
                server.ready(*address, Instant::now()).await?;
            }
            progress(done);
        }
        Ok(counts)
    }
}

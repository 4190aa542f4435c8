//! The killer: `kill -9` at a random instant, restart at once, time until ready; again. Where servers share a database,
//! any of them is killed, and now and then the database under all of them.

use super::database::Database;
use crate::failure::Result;
use crate::process::{Product, Running};
use counterfoil_prng::Prng;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Once in so many kills the server is killed again while it starts: recovery must survive a crash too.
const TWICE_ONCE_IN: u64 = 8;
/// How far into its start, at most.
const DURING_START_MS: u64 = 40;
/// How long the database is away, at most.
const AWAY_MS: u64 = 300;

/// How servers are started, again and again.
pub(super) struct Victim {
    pub(super) product: Product,
    /// A path or a URL.
    pub(super) store: String,
    pub(super) gateway: SocketAddr,
    pub(super) settings: Vec<(&'static str, String)>,
}

/// A server at its address.
pub(super) struct Stand {
    pub(super) address: SocketAddr,
    pub(super) server: Running,
}

/// What is to be done.
pub(super) struct Plan {
    pub(super) kills: u64,
    /// A kill comes within this time after the server is ready.
    pub(super) within: Duration,
    /// After so many kills of servers the database is killed too.
    pub(super) database_every: u64,
}

/// What was done.
#[derive(Default)]
pub(super) struct Toll {
    /// The times until a killed server was ready again.
    pub(super) readiness: Vec<Duration>,
    pub(super) kills: u64,
    pub(super) database_kills: u64,
    /// How often the disk was full.
    pub(super) full: u64,
    /// How often the clock was moved.
    pub(super) moves: u64,
}

impl Victim {
    /// Starts a server and waits until it is ready.
    pub(super) async fn stand(&self, address: SocketAddr) -> Result<Stand> {
        let begun = Instant::now();
        let mut server = self.start(address)?;
        server.ready(address, begun).await?;
        Ok(Stand { address, server })
    }

    fn start(&self, address: SocketAddr) -> Result<Running> {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.product.server(address, &self.store, self.gateway, &settings)
    }

    /// Kills servers as planned, one at a time, and leaves all of them ready.
    pub(super) async fn torment(
        &self,
        stands: &mut [Stand],
        mut database: Option<&mut Database>,
        plan: &Plan,
        prng: &mut Prng,
        told: impl Fn(u64),
    ) -> Result<Toll> {
        let within_us = u64::try_from(plan.within.as_micros()).unwrap_or(u64::MAX);
        let mut toll = Toll::default();
        let mut done = 0;
        while done < plan.kills {
            sleep(Duration::from_micros(prng.below(within_us))).await;
            let chosen = usize::try_from(prng.below(stands.len() as u64)).unwrap_or(0);
            let Stand { address, server } = &mut stands[chosen];
            server.kill().await?;
            done += 1;
            if let Some(database) = &mut database
                && done / plan.database_every.max(1) > toll.database_kills
            {
                // A server does not start without its database; the others must go on when it is back.
                database.crash(Duration::from_millis(prng.below(AWAY_MS))).await?;
                toll.database_kills += 1;
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
            toll.kills = done;
            toll.readiness.push(server.ready(*address, begun).await?);
            for Stand { address, server } in stands.iter_mut() {
                server.ready(*address, Instant::now()).await?;
            }
            told(done);
        }
        Ok(toll)
    }
}

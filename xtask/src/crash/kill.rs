//! The killer: `kill -9` at a random instant, restart at once, time until ready; again.

use crate::dice::Dice;
use crate::failure::Result;
use crate::process::{Product, Running};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Once in so many kills the server is killed again while it starts: recovery must survive a crash too.
const TWICE_ONCE_IN: u64 = 8;
/// How far into its start, at most.
const DURING_START_MS: u64 = 40;

/// A server that can be started again as it was.
pub(super) struct Victim {
    pub(super) product: Product,
    pub(super) address: SocketAddr,
    pub(super) store: PathBuf,
    pub(super) gateway: SocketAddr,
    pub(super) settings: Vec<(&'static str, String)>,
}

impl Victim {
    pub(super) fn start(&self) -> Result<Running> {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.product.server(self.address, &self.store, self.gateway, &settings)
    }

    /// Kills `server` `kills` times and leaves it ready. Gives the times until it was ready again.
    pub(super) async fn torment(
        &self,
        server: &mut Running,
        kills: u64,
        within: Duration,
        dice: &mut Dice,
        told: impl Fn(u64),
    ) -> Result<Vec<Duration>> {
        let within_us = u64::try_from(within.as_micros()).unwrap_or(u64::MAX);
        let mut readiness = Vec::new();
        let mut done = 0;
        while done < kills {
            sleep(Duration::from_micros(dice.below(within_us))).await;
            server.kill().await?;
            done += 1;
            let mut begun = Instant::now();
            *server = self.start()?;
            while done < kills && dice.once_in(TWICE_ONCE_IN) {
                sleep(Duration::from_micros(dice.below(DURING_START_MS * 1_000))).await;
                server.kill().await?;
                done += 1;
                begun = Instant::now();
                *server = self.start()?;
            }
            readiness.push(server.ready(self.address, begun).await?);
            told(done);
        }
        Ok(readiness)
    }
}

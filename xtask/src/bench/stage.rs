//! The processes of a run: the product and its provider, and the servers it is compared with.

use super::child::{self, NO_KEY};
use super::neighbours::{Machine, Neighbours};
use super::sample::Sample;
use super::scrape::Commits;
use super::server::Server;
use crate::failure::{Failure, Result};
use crate::http;
use crate::process::{Product, Running, clean, cpu_of, free_address};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::process::Command;

/// Whom the load goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Echo,
    Proxy,
    Charge,
    Replay,
}

/// One load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) who: Who,
    pub(super) connections: usize,
    pub(super) duration: Duration,
}

/// Everything that runs.
pub(super) struct Stage {
    product: Product,
    xtask: PathBuf,
    directory: PathBuf,
    simulator: (Running, SocketAddr),
    echo: (Running, SocketAddr),
    proxy: (Running, SocketAddr),
    runs: u64,
    pub(super) neighbours: Neighbours,
}

impl Stage {
    /// Starts everything but the product's server. `xtask`: an optimised build of this program.
    pub(super) async fn set(counterfoil: &Path, xtask: &Path, directory: &Path) -> Result<Stage> {
        let product = Product::new(counterfoil, directory);
        let simulator = product.simulator().await?;
        let echo = raw(xtask, "echo", &[]).await?;
        let proxy = raw(xtask, "proxy", &["--provider", &simulator.1.to_string()]).await?;
        let (xtask, directory) = (xtask.to_owned(), directory.to_owned());
        Ok(Stage {
            product,
            xtask,
            directory,
            simulator,
            echo,
            proxy,
            runs: 0,
            neighbours: Neighbours::default(),
        })
    }

    /// Says which processes ended although nobody asked them to.
    pub(super) fn tell_the_dead(&mut self) {
        for (name, (running, _)) in
            [("simulator", &mut self.simulator), ("echo", &mut self.echo), ("proxy", &mut self.proxy)]
        {
            if let Some(status) = running.ended() {
                eprintln!("xtask: the {name} had ended with {status}");
            }
        }
    }

    /// A server on a new store.
    pub(super) async fn server(&mut self) -> Result<Server> {
        self.runs += 1;
        let store = self.directory.join(format!("store-{}", self.runs));
        Server::start(&self.product, self.simulator.1, store).await
    }

    /// Puts load on one of the servers and measures it, CPU time of everybody included.
    pub(super) async fn measure(&mut self, server: &mut Server, run: Run) -> Result<Sample> {
        forget_payments(self.simulator.1).await?;
        let (address, api_key, pids) = match run.who {
            Who::Echo => (self.echo.1, NO_KEY, vec![self.echo.0.pid()]),
            Who::Proxy => (self.proxy.1, NO_KEY, vec![self.proxy.0.pid(), self.simulator.0.pid()]),
            Who::Charge | Who::Replay => {
                (server.address, server.api_key.as_str(), vec![server.pid(), self.simulator.0.pid()])
            }
        };
        self.runs += 1;
        let prefix = format!("bench-{}-{}", std::process::id(), self.runs);
        let (commits, cpu) = (Commits::read(server.address).await?, cpu(&pids)?);
        let before = Machine::look()?;
        let replay_percent = match run.who {
            Who::Replay => "100",
            Who::Echo | Who::Proxy | Who::Charge => "0",
        };
        let order = child::Order {
            address,
            api_key,
            connections: run.connections,
            duration: run.duration,
            prefix: &prefix,
        };
        let driven =
            order.drive(&self.xtask, &["--replay-percent".as_ref(), replay_percent.as_ref()]).await?;
        let own = cpu_since(&pids, cpu)? + Duration::from_micros(driven.cpu_us);
        self.neighbours.add(before, Machine::look()?, own);
        let sets_per_write = match run.who {
            Who::Charge => Commits::read(server.address).await?.per_write_since(commits),
            Who::Echo | Who::Proxy | Who::Replay => 0.0,
        };
        if run.who == Who::Charge {
            server.charges = server.charges.saturating_add(driven.answered);
        }
        if driven.report.differing_replays > 0 {
            return Err(Failure::new(format!("{} replays differed", driven.report.differing_replays)));
        }
        Ok(Sample::of(&driven, own, sets_per_write))
    }
}

/// A provider that has seen a million payments must not be compared with one that has seen none.
pub(super) async fn forget_payments(simulator: SocketAddr) -> Result<()> {
    let reset = http::ask(simulator, "DELETE", "/_sim/effects", "", Duration::from_mins(1)).await;
    reset.map_err(Failure::while_("resetting the provider"))?;
    Ok(())
}

/// One of the servers to compare with, listening.
pub(super) async fn raw(
    xtask: &Path,
    name: &'static str,
    arguments: &[&str],
) -> Result<(Running, SocketAddr)> {
    let address = free_address()?;
    let mut command = Command::new(xtask);
    clean(&mut command);
    command.args([name, "--listen", &address.to_string()]).args(arguments);
    let mut running = Running::start(name, &mut command)?;
    let begun = Instant::now();
    while http::Connection::open(address).await.is_err() {
        if running.ended().is_some() || begun.elapsed() > Duration::from_secs(10) {
            return Err(Failure::new(format!("the {name} does not listen on {address}")));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok((running, address))
}

fn cpu(pids: &[u32]) -> Result<Duration> {
    pids.iter().map(|pid| cpu_of(*pid)).sum()
}

fn cpu_since(pids: &[u32], earlier: Duration) -> Result<Duration> {
    Ok(cpu(pids)?.saturating_sub(earlier))
}

//! The processes of a run: the product, its provider, and the servers to compare with.

use super::Place;
use super::child::{self, NO_KEY};
use super::neighbours::{Machine, Neighbours};
use super::sample::Sample;
use super::scrape::Commits;
use super::server::Server;
use crate::failure::{Failure, Result};
use crate::process::{Product, Running, clean, cpu_of, free_address};
use counterfoil_testkit::http;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::process::Command;

/// The server under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadTarget {
    Echo,
    Proxy,
    Charge,
    Replay,
    /// An ordinary proxy between an ordinary client and an ordinary provider.
    OrdinaryProxy,
    /// The product between the same two.
    OrdinaryCharge,
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) target: LoadTarget,
    pub(super) connections: usize,
    pub(super) duration: Duration,
}

/// All processes.
pub(super) struct Stage {
    product: Product,
    xtask: PathBuf,
    ordinary: PathBuf,
    directory: PathBuf,
    simulator: (Running, SocketAddr),
    echo: (Running, SocketAddr),
    proxy: (Running, SocketAddr),
    ordinary_provider: (Running, SocketAddr),
    ordinary_proxy: (Running, SocketAddr),
    runs: u64,
    pub(super) neighbours: Neighbours,
}

impl Stage {
    /// Starts everything but the product's server.
    pub(super) async fn set(place: &Place<'_>, ordinary: &Path) -> Result<Stage> {
        let Place { counterfoil, xtask, directory } = *place;
        let product = Product::new(counterfoil, directory);
        let simulator = product.simulator().await?;
        let echo = raw(xtask, "echo", &[]).await?;
        let proxy = raw(xtask, "proxy", &["--provider", &simulator.1.to_string()]).await?;
        let ordinary_provider = raw(ordinary, "provider", &[]).await?;
        let to_it = ["--provider", &ordinary_provider.1.to_string()];
        let ordinary_proxy = raw(ordinary, "proxy", &to_it).await?;
        Ok(Stage {
            product,
            xtask: xtask.to_owned(),
            ordinary: ordinary.to_owned(),
            directory: directory.to_owned(),
            simulator,
            echo,
            proxy,
            ordinary_provider,
            ordinary_proxy,
            runs: 0,
            neighbours: Neighbours::default(),
        })
    }

    /// Reports the processes that ended unexpectedly.
    pub(super) fn report_ended_processes(&mut self) {
        for (name, (running, _)) in [
            ("simulator", &mut self.simulator),
            ("echo", &mut self.echo),
            ("proxy", &mut self.proxy),
            ("ordinary provider", &mut self.ordinary_provider),
            ("ordinary proxy", &mut self.ordinary_proxy),
        ] {
            if let Some(status) = running.ended() {
                eprintln!("xtask: the {name} had ended with {status}");
            }
        }
    }

    /// Starts a server on a new store.
    pub(super) async fn server(&mut self) -> Result<Server> {
        self.server_for(self.simulator.1).await
    }

    /// Starts a server on a new store, with the ordinary provider.
    pub(super) async fn ordinary_server(&mut self) -> Result<Server> {
        self.server_for(self.ordinary_provider.1).await
    }

    async fn server_for(&mut self, provider: SocketAddr) -> Result<Server> {
        self.runs += 1;
        let store = self.directory.join(format!("store-{}", self.runs));
        Server::start(&self.product, provider, store).await
    }

    /// Puts load on one of the servers and measures it, with the CPU time of all processes
    /// involved.
    pub(super) async fn measure(&mut self, server: &mut Server, run: Run) -> Result<Sample> {
        forget_payments(self.simulator.1).await?;
        let (address, api_key, pids) = match run.target {
            LoadTarget::Echo => (self.echo.1, NO_KEY, vec![self.echo.0.pid()]),
            LoadTarget::Proxy => (self.proxy.1, NO_KEY, vec![self.proxy.0.pid(), self.simulator.0.pid()]),
            LoadTarget::Charge | LoadTarget::Replay => {
                (server.address, server.api_key.as_str(), vec![server.pid(), self.simulator.0.pid()])
            }
            LoadTarget::OrdinaryProxy => (
                self.ordinary_proxy.1,
                NO_KEY,
                vec![self.ordinary_proxy.0.pid(), self.ordinary_provider.0.pid()],
            ),
            LoadTarget::OrdinaryCharge => {
                (server.address, server.api_key.as_str(), vec![server.pid(), self.ordinary_provider.0.pid()])
            }
        };
        self.runs += 1;
        let prefix = format!("bench-{}-{}", std::process::id(), self.runs);
        let (commits, cpu) = (Commits::read(server.address).await?, cpu(&pids)?);
        let before = Machine::read()?;
        let (program, what): (&Path, &[&str]) = match run.target {
            LoadTarget::Replay => (&self.xtask, &["load", "--replay-percent", "100"]),
            LoadTarget::Echo | LoadTarget::Proxy | LoadTarget::Charge => (&self.xtask, &["load"]),
            LoadTarget::OrdinaryProxy | LoadTarget::OrdinaryCharge => (&self.ordinary, &["load"]),
        };
        let what: Vec<&OsStr> = what.iter().map(OsStr::new).collect();
        let order = child::Order {
            address,
            api_key,
            connections: run.connections,
            duration: run.duration,
            prefix: &prefix,
        };
        let driven = order.drive(program, &what).await?;
        let own = cpu_since(&pids, cpu)? + Duration::from_micros(driven.cpu_us);
        self.neighbours.add(before, Machine::read()?, own);
        let sets_per_write = match run.target {
            LoadTarget::Charge | LoadTarget::OrdinaryCharge => {
                Commits::read(server.address).await?.per_write_since(commits)
            }
            LoadTarget::Echo | LoadTarget::Proxy | LoadTarget::Replay | LoadTarget::OrdinaryProxy => 0.0,
        };
        if run.target == LoadTarget::Charge {
            server.charges = server.charges.saturating_add(driven.answered);
        }
        if driven.report.differing_replays > 0 {
            return Err(Failure::new(format!("{} replays differed", driven.report.differing_replays)));
        }
        Ok(Sample::of(&driven, own, sets_per_write))
    }
}

/// Clears the provider's payments, so that every measurement starts with an empty provider.
pub(super) async fn forget_payments(simulator: SocketAddr) -> Result<()> {
    let reset = http::ask(simulator, "DELETE", "/_sim/effects", "", Duration::from_mins(1)).await;
    reset.map_err(Failure::while_("resetting the provider"))?;
    Ok(())
}

/// Starts a server to compare with and waits until it listens.
pub(super) async fn raw(
    program: &Path,
    name: &'static str,
    arguments: &[&str],
) -> Result<(Running, SocketAddr)> {
    let address = free_address()?;
    let mut command = Command::new(program);
    clean(&mut command);
    command.arg(name).args(arguments).args(["--listen", &address.to_string()]);
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

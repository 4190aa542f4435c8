//! What runs in processes of its own, so that its CPU time is its own: the load, and the servers it is compared with.

use crate::failure::{Failure, Result};
use crate::process::cpu_of_self;
use clap::Args;
use counterfoil_load::limits::{serve_echo, serve_proxy};
use counterfoil_load::{Plan, Report, charge};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;

/// Load that is not measured: connections open, caches fill.
const WARMUP: Duration = Duration::from_millis(500);
/// The API key for servers that ask for none.
pub(super) const NO_KEY: &str = "none";

/// What the load tells its parent.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Driven {
    pub(super) report: Report,
    /// Requests answered as they should be, warm-up included: what the CPU time is divided by.
    pub(super) answered: u64,
    pub(super) cpu_us: u64,
}

/// Load in a process of its own.
#[derive(Args)]
pub(crate) struct Load {
    #[arg(long)]
    address: SocketAddr,
    #[arg(long)]
    api_key: String,
    #[arg(long)]
    connections: usize,
    #[arg(long)]
    milliseconds: u64,
    #[arg(long)]
    replay_percent: u8,
    #[arg(long)]
    prefix: String,
}

impl Load {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let plan = Plan {
            addr: self.address,
            host: self.address.to_string(),
            api_key: self.api_key,
            connections: self.connections,
            duration: Duration::from_millis(self.milliseconds),
            replay_percent: self.replay_percent,
            warmup: WARMUP,
            key_prefix: self.prefix,
        };
        let answered = Cell::new(0);
        let report = charge::run(plan, |progress| answered.set(progress.ok))
            .await
            .map_err(Failure::while_("the load"))?;
        let cpu_us = u64::try_from(cpu_of_self()?.as_micros()).unwrap_or(u64::MAX);
        let driven = Driven { report, answered: answered.get(), cpu_us };
        println!("{}", serde_json::to_string(&driven).map_err(Failure::while_("telling the figures"))?);
        Ok(ExitCode::SUCCESS)
    }
}

/// A server that only echoes.
#[derive(Args)]
pub(crate) struct Echo {
    #[arg(long)]
    listen: SocketAddr,
}

impl Echo {
    pub(crate) fn run(self) -> Result<ExitCode> {
        as_the_server_runs(async move { serve_echo(TcpListener::bind(self.listen).await?).await })
    }
}

/// A server that only calls the provider.
#[derive(Args)]
pub(crate) struct Proxy {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    provider: SocketAddr,
}

impl Proxy {
    pub(crate) fn run(self) -> Result<ExitCode> {
        as_the_server_runs(
            async move { serve_proxy(TcpListener::bind(self.listen).await?, self.provider).await },
        )
    }
}

/// On the same kind of runtime as the server, or the comparison would be one of runtimes.
fn as_the_server_runs(serving: impl Future<Output = std::io::Result<()>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let served = runtime.map_err(Failure::while_("starting the runtime"))?.block_on(serving);
    served.map_err(Failure::while_("serving"))?;
    Ok(ExitCode::SUCCESS)
}

//! Child processes, so that their CPU time can be counted separately: the load, and the servers to
//! compare with.

use super::runtime::runtime_like_the_servers;
use crate::failure::{Failure, Result};
use crate::process::{captured, clean, cpu_of_self};
use clap::Args;
use counterfoil_load::child::{Aim, Driven, WARMUP};
use counterfoil_load::limits::{serve_echo, serve_proxy};
use counterfoil_load::{Plan, Progress, Transfers, charge, transfer};
use serde::Serialize;
use std::cell::Cell;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::process::Command;

/// The API key for servers without authentication.
pub(super) const NO_KEY: &str = "none";

/// A load for a child process to drive.
pub(super) struct Order<'a> {
    pub(super) address: SocketAddr,
    pub(super) api_key: &'a str,
    pub(super) connections: usize,
    pub(super) duration: Duration,
    pub(super) prefix: &'a str,
}

impl Order<'_> {
    /// Runs `program` with the command and arguments of `what`, and reads its report.
    pub(super) async fn drive(&self, program: &Path, what: &[&OsStr]) -> Result<Driven> {
        let mut command = Command::new(program);
        clean(&mut command);
        command.args(what).args(["--api-key", self.api_key, "--prefix", self.prefix]);
        command.args([
            "--address",
            &self.address.to_string(),
            "--connections",
            &self.connections.to_string(),
        ]);
        command.args(["--milliseconds", &self.duration.as_millis().to_string()]);
        let doing = format!("{what:?} with {} connections", self.connections);
        let output = captured(&mut command).await.map_err(Failure::while_(&doing))?;
        if !output.status.success() {
            return Err(Failure::new(format!("{doing} ended with {}; see above", output.status)));
        }
        serde_json::from_slice(&output.stdout).map_err(Failure::while_(&doing))
    }
}

/// Load in a process of its own.
#[derive(Args)]
pub(crate) struct Load {
    #[command(flatten)]
    aim: Aim,
    #[arg(long, default_value_t = 0)]
    replay_percent: u8,
    /// Sends transfers instead of charges; each line of the file names an account to debit and one
    /// to credit.
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// Transfers per request.
    #[arg(long, default_value_t = 1)]
    batch: usize,
}

impl Load {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let plan = Plan {
            addr: self.aim.address,
            host: self.aim.address.to_string(),
            api_key: self.aim.api_key,
            connections: self.aim.connections,
            duration: Duration::from_millis(self.aim.milliseconds),
            replay_percent: self.replay_percent,
            warmup: WARMUP,
            key_prefix: self.aim.prefix,
        };
        let answered = Cell::new(0);
        let progress = |progress: Progress| answered.set(progress.ok);
        let report = match &self.pairs {
            None => charge::run(plan, progress).await,
            Some(file) => {
                let transfers = Transfers { pairs: pairs(file)?, batch: self.batch };
                transfer::run(plan, transfers, progress).await
            }
        };
        let report = report.map_err(Failure::while_("the load"))?;
        let cpu_us = u64::try_from(cpu_of_self()?.as_micros()).unwrap_or(u64::MAX);
        let driven = Driven { report, answered: answered.get(), cpu_us };
        print_report(&driven)
    }
}

/// Prints the figures for the parent process.
pub(super) fn print_report(figures: &impl Serialize) -> Result<ExitCode> {
    println!("{}", serde_json::to_string(figures).map_err(Failure::while_("telling the figures"))?);
    Ok(ExitCode::SUCCESS)
}

fn pairs(file: &Path) -> Result<Vec<(String, String)>> {
    let doing = format!("reading {}", file.display());
    let text = std::fs::read_to_string(file).map_err(Failure::while_(&doing))?;
    let pair = |line: &str| {
        let (debited, credited) = line.split_once(' ')?;
        Some((debited.to_owned(), credited.to_owned()))
    };
    let pairs: Option<Vec<_>> = text.lines().map(pair).collect();
    pairs.ok_or_else(|| Failure::new(format!("{doing}: a line does not name two accounts")))
}

/// A server that only echoes.
#[derive(Args)]
pub(crate) struct Echo {
    #[arg(long)]
    listen: SocketAddr,
}

impl Echo {
    pub(crate) fn run(self) -> Result<ExitCode> {
        serving(async move { serve_echo(TcpListener::bind(self.listen).await?).await })
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
        serving(async move { serve_proxy(TcpListener::bind(self.listen).await?, self.provider).await })
    }
}

/// Serves until it is killed.
pub(super) fn serving(serving: impl Future<Output = std::io::Result<()>>) -> Result<ExitCode> {
    runtime_like_the_servers()?.block_on(serving).map_err(Failure::while_("serving"))?;
    Ok(ExitCode::SUCCESS)
}

//! The command line.

mod bench;
mod config;
mod dead_letters;
mod dev;
mod import;
mod migrate;
mod runtime;
mod serve;
mod simulator;
mod tenant;
mod verify;

pub(crate) use dev::DEMO_KEY;

use crate::config::{Override, Settings, process_environment};
use crate::exit::Exit;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// A payments core: charges at most once, answers every retry with the same bytes, and keeps its
/// ledger straight.
#[derive(Debug, Parser)]
#[command(name = "counterfoil", version, about, propagate_version = true, max_term_width = 110)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs everything in one process for a first look: API, provider simulator, demo tenant.
    /// Loopback only.
    Dev(dev::Dev),
    /// Runs the production server.
    Serve(serve::Serve),
    /// Runs the payment provider simulator alone.
    Simulator(simulator::Simulator),
    /// Manages tenants and their API keys.
    Tenant(tenant::Tenant),
    /// Lists, shows and resolves work that needs a human.
    DeadLetters(dead_letters::DeadLetters),
    /// Upgrades the tables of a database to this release.
    Migrate(migrate::Migrate),
    /// Checks every invariant of a live or stopped store.
    Verify(verify::Verify),
    /// Sends a file of commands without keys, under keys derived from their fields.
    Import(import::Import),
    /// Runs closed-loop load against a running server.
    Bench(bench::Bench),
    /// Explains all settings, or one.
    Config(config::Config),
}

/// The sources of settings besides the environment.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// A TOML file with settings; see docs/configuration.md.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Common {
    fn settings(&self, flags: Vec<Override>) -> Result<Settings, Exit> {
        Settings::load(self.config.as_deref(), process_environment(), flags).map_err(Exit::refused)
    }
}

/// A setting given by a flag.
fn flag(
    section: &'static str,
    name: &'static str,
    source: &'static str,
    value: Option<&String>,
) -> Option<Override> {
    value.map(|value| Override { section, name, source, value: value.clone() })
}

/// Peers given by flags.
fn peers(given: &[String]) -> impl Iterator<Item = Override> {
    given.iter().filter_map(|value| flag("peers", "NAME", "--peer", Some(value)))
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Exit> {
    match arguments.command {
        Command::Dev(dev) => dev.run(),
        Command::Serve(serve) => serve.run(),
        Command::Simulator(simulator) => simulator.run(),
        Command::Tenant(tenant) => tenant.run(),
        Command::DeadLetters(letters) => letters.run(),
        Command::Migrate(migrate) => migrate.run(),
        Command::Verify(verify) => verify.run(),
        Command::Import(import) => import.run(),
        Command::Bench(bench) => bench.run(),
        Command::Config(config) => config.run(),
    }
}

/// Attempts to bind, because the kernel frees the port of a killed process with a delay.
const PATIENCE: u32 = 20;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(25);

async fn listen(address: &str, flag: &str) -> Result<tokio::net::TcpListener, Exit> {
    let mut patience = PATIENCE;
    loop {
        match tokio::net::TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && patience > 0 => {
                patience -= 1;
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => {
                return Err(Exit::refused(format!(
                    "{flag} {address} cannot be listened on ({error}); stop what holds it or choose another address"
                )));
            }
        }
    }
}

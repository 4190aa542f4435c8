//! Development commands: tests, benchmark, crash campaign, hostile input, long proof, packaging.
//! Nothing of this is shipped.
//!
//! Owns starting and killing real processes and judging them from outside. It shares no code with
//! the server it judges, only the load generator with `counterfoil bench`. The benches of engine
//! and store are exceptions: they run inside this process and judge nothing.

#![expect(
    clippy::disallowed_methods,
    reason = "the real clock, real tasks and real processes are the subject of this crate"
)]

mod bench;
mod compile;
mod crash;
mod dist;
mod failure;
mod hostile;
mod mutants;
mod pgo;
mod process;
mod progress;
mod prove;
mod servers;
mod test;

use clap::{Parser, Subcommand};
use failure::{Failure, Result};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// The product's allocator, so that `bench` does not handicap the raw limits.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Development commands of Counterfoil.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Checks everything that must hold before a commit: format, lints, all tests, documentation tests.
    Test(test::Test),
    /// Measures the product against the raw limits of this machine and an ordinary proxy, in one run; with --ledger, its transfers; with
    /// --store postgres, against the usual implementation.
    Bench(bench::Bench),
    /// Kills the server under load, again and again, and judges from outside what clients and provider saw.
    Crash(crash::Crash),
    /// Sends bad input over the whole HTTP surface: the corpus, then requests generated from the served description.
    Hostile(hostile::Hostile),
    /// Changes the core and the store's judge one place at a time and counts the changes that no
    /// test notices.
    ///
    /// A full run takes hours: each change is a build of one crate and its tests. Ends with 1 if
    /// docs/mutants.md does not explain a survivor, or, after a full run, if it explains one that
    /// did not survive. Ends with 2 if nothing could be tested.
    Mutants(mutants::Mutants),
    /// Runs every proof for the given hours and prints one report.
    Prove(prove::Prove),
    /// Builds the server for packaging, with profile-guided optimisation (PGO).
    ///
    /// Builds the server with counters, runs the loads of `crash` and `bench` on it, merges the counters, and builds the
    /// server again with them. Needs `llvm-profdata` and about half an hour on two cores. See
    /// docs/decisions/0017-profile-guided-builds-belong-to-packaging.md.
    Dist(dist::Dist),
    /// Load in a process of its own; `bench` starts it.
    #[command(hide = true)]
    Load(bench::child::Load),
    /// The engine without HTTP; `bench --ledger` starts it.
    #[command(hide = true)]
    Engine(bench::ledger::engine::Engine),
    /// Commits without HTTP; `bench --store postgres` starts it.
    #[command(hide = true)]
    Commits(bench::postgres::producers::Commits),
    /// A server of the usual kind; `bench --store postgres` starts it.
    #[command(hide = true)]
    Usual(bench::postgres::usual::Usual),
    /// A server that only echoes; `bench` starts it.
    #[command(hide = true)]
    Echo(bench::child::Echo),
    /// A server that only calls the provider; `bench` starts it.
    #[command(hide = true)]
    Proxy(bench::child::Proxy),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Test(test) => test.run(),
        Command::Bench(bench) => until_interrupted(bench.run()),
        Command::Crash(crash) => until_interrupted(crash.run()),
        Command::Hostile(hostile) => until_interrupted(hostile.run()),
        Command::Mutants(mutants) => mutants.run(),
        Command::Prove(prove) => until_interrupted(prove.run()),
        Command::Dist(dist) => until_interrupted(dist.run()),
        Command::Load(load) => until_interrupted(load.run()),
        Command::Engine(engine) => engine.run(),
        Command::Commits(commits) => commits.run(),
        Command::Usual(usual) => usual.run(),
        Command::Echo(echo) => echo.run(),
        Command::Proxy(proxy) => proxy.run(),
    };
    outcome.unwrap_or_else(|failure| {
        eprintln!("xtask: {failure}");
        ExitCode::from(2)
    })
}

/// Runs a command until it ends or a signal asks it to. Dropping the command kills every process it
/// started.
fn until_interrupted(command: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::while_("starting the runtime"))?;
    runtime.block_on(async {
        let asked = |kind| signal(kind).map_err(Failure::while_("listening for signals"));
        let (mut terminate, mut interrupt) =
            (asked(SignalKind::terminate())?, asked(SignalKind::interrupt())?);
        tokio::select! {
            outcome = command => outcome,
            _ = terminate.recv() => Err(Failure::new("terminated")),
            _ = interrupt.recv() => Err(Failure::new("interrupted")),
        }
    })
}

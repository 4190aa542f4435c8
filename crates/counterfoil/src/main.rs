//! `counterfoil`: one binary, every role a subcommand. Adapters meet the engine in `wire_up` only.

#![expect(clippy::disallowed_methods, reason = "the outermost ring provides clock, randomness and tasks")]

mod admin;
mod cli;
mod config;
mod exit;
mod logs;
mod shared_services;
mod store_url;
mod wire_up;

use clap::Parser;

/// A charge makes a few dozen small allocations on several threads. The system allocator spends
/// more time on them than SQLite spends on the charge (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let arguments = cli::Arguments::parse();
    match cli::run(arguments) {
        Ok(code) => code,
        Err(exit) => exit.report(),
    }
}

//! The engine without HTTP, in a separate process so that its CPU time can be counted. It has the
//! embedded store with real syncs, a provider that is never called, and tasks as clients. It runs
//! one order after another until its input ends.

mod bank;
mod clients;
mod unused_provider;

use super::cell::Accounts;
use crate::bench::runtime::runtime_like_the_servers;
use crate::failure::{Failure, Result};
use bank::Bank;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Parameters of a measurement.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Order {
    pub(super) accounts: Accounts,
    /// Transfers per call.
    pub(super) batch: usize,
    pub(super) tasks: usize,
    pub(super) milliseconds: u64,
}

/// Results of a measurement.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Done {
    /// Transfers posted by calls that began after the warm-up.
    pub(super) posted: u64,
    /// Transfers of the same calls that were not posted.
    pub(super) failed: u64,
    pub(super) per_second: f64,
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) p999_us: u64,
    /// All posted transfers, warm-up included; the divisor of the other figures.
    pub(super) answered: u64,
    pub(super) cpu_us: u64,
    /// Change sets made durable.
    pub(super) sets: u64,
    /// Durable writes for these change sets.
    pub(super) writes: u64,
}

/// The engine without HTTP; `bench --ledger` starts it.
#[derive(Args)]
pub(crate) struct Engine {
    #[arg(long)]
    store: PathBuf,
}

impl Engine {
    pub(crate) fn run(self) -> Result<ExitCode> {
        runtime_like_the_servers()?.block_on(async {
            let bank = Arc::new(Bank::open(&self.store).await?);
            println!("ready");
            // Reading blocks only this thread; the engine has its own threads.
            for line in std::io::stdin().lock().lines() {
                let line = line.map_err(Failure::while_("reading an order"))?;
                let order: Order =
                    serde_json::from_str(&line).map_err(Failure::while_("reading an order"))?;
                let done = clients::measure(&bank, order).await?;
                println!("{}", serde_json::to_string(&done).map_err(Failure::while_("telling the figures"))?);
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

//! `bench`: closed-loop load against a running server.

use super::runtime::client_runtime;
use crate::exit::Exit;
use clap::Args;
use counterfoil_load::{Plan, Report, Target, charge};
use indicatif::{ProgressBar, ProgressStyle};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Closed-loop load against a running server.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// The server, for example http://127.0.0.1:8080.
    #[arg(long)]
    url: String,
    /// An API key of a tenant on that server.
    #[arg(long, value_name = "KEY")]
    api_key: String,
    /// Connections, with one request at a time on each.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Seconds to measure.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Percentage of requests that repeat earlier requests.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    replay_percent: u8,
    /// Prints one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

impl Bench {
    pub(super) fn run(self) -> Result<ExitCode, Exit> {
        let report = client_runtime()?.block_on(async {
            let target = Target::parse(&self.url).map_err(Exit::refused)?;
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let plan = Plan {
                addr: target.resolve().await.map_err(Exit::refused)?,
                host: target.host().clone(),
                api_key: self.api_key.clone(),
                connections: self.connections,
                duration: Duration::from_secs(self.seconds),
                replay_percent: self.replay_percent,
                warmup: Duration::from_millis(500),
                key_prefix: format!("bench-{}-{}", since_epoch.as_micros(), std::process::id()),
            };
            let bar = if self.json { ProgressBar::hidden() } else { bar(self.seconds) };
            let report = charge::run(plan, |progress| {
                bar.set_position(u64::try_from(progress.elapsed.as_millis()).unwrap_or(u64::MAX));
                bar.set_message(format!("{} ok, {} failed", progress.ok, progress.failed));
            })
            .await
            .map_err(Exit::failed)?;
            bar.finish_and_clear();
            Ok(report)
        })?;
        if self.json {
            let text = serde_json::to_string(&report).map_err(Exit::failed)?;
            println!("{text}");
        } else {
            println!("{}", table(&report));
        }
        let clean = report.differing_replays == 0;
        if !clean {
            eprintln!("counterfoil: {} replays differed from their first answer", report.differing_replays);
        }
        Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn bar(seconds: u64) -> ProgressBar {
    let bar = ProgressBar::new(seconds.saturating_mul(1_000).saturating_add(500));
    if let Ok(style) = ProgressStyle::with_template("{bar:40.cyan/blue} {percent:>3}% {msg}") {
        bar.set_style(style);
    }
    bar
}

fn table(report: &Report) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "connections",
        "charges/s",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "ok",
        "errors",
        "differing replays",
    ]);
    let errors = report.errors_by_status.values().sum::<u64>().saturating_add(report.transport_errors);
    table.add_row([
        report.connections.to_string(),
        format!("{:.0}", report.per_second),
        ms(report.p50_us),
        ms(report.p99_us),
        ms(report.p999_us),
        report.ok.to_string(),
        errors.to_string(),
        report.differing_replays.to_string(),
    ]);
    table
}

fn ms(us: u64) -> String {
    format!("{}.{:02}", us / 1_000, us % 1_000 / 10)
}

//! `import`: sends a file of commands without idempotency keys, under keys derived from their
//! stable fields. Running the same file again replays its commands, at the same time or later.
//! docs/import.md explains the method and its limits.

mod client;
mod command;
mod csv;
mod read;
mod report;
mod send;

use super::runtime::client_runtime;
use crate::exit::Exit;
use clap::Args;
use client::Client;
use command::{Command, Recipe, Route};
use counterfoil_core::idempotency::derive::{Stable, Width};
use counterfoil_core::types::time::{Span, Time};
use indicatif::{ProgressBar, ProgressStyle};
use read::BadLine;
use report::Report;
use send::{Delivered, Sender};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// Largest input file: a million commands and more, all held in memory.
const INPUT_BYTES_MAX: u64 = 512 * 1024 * 1024;
const BUCKET_MAX: Duration = Duration::from_hours(366 * 24);

/// Sends a file of commands without keys, under keys derived from their fields.
#[derive(Args, Debug)]
pub(crate) struct Import {
    /// The file: one JSON object per line, or CSV with a header; - reads standard input.
    file: PathBuf,
    /// The server, for example https://pay.example.com.
    #[arg(long, required_unless_present = "dry_run")]
    url: Option<String>,
    /// An API key of a tenant on that server.
    #[arg(long, value_name = "KEY", required_unless_present = "dry_run")]
    api_key: Option<String>,
    /// The fields that identify a command and stay the same when it is sent again; never the
    /// amount.
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',', required = true)]
    stable: Vec<String>,
    /// Length of a time bucket, such as `24h` or `7d`, if equal fields return later as a new
    /// command; `none` if they never do.
    #[arg(long, value_name = "LENGTH", default_value = "none", value_parser = bucket)]
    bucket: BucketLength,
    /// The field with a command's creation time (RFC 3339); it selects the bucket instead of the
    /// current time.
    #[arg(long, value_name = "FIELD")]
    time_field: Option<String>,
    /// Selects buckets by this time (RFC 3339) instead of now, to repeat an import of an earlier
    /// day.
    #[arg(long, value_name = "TIME", conflicts_with = "time_field", value_parser = instant)]
    as_of: Option<Time>,
    /// The type of object that the commands create.
    #[arg(long, value_enum, default_value_t = Route::Charges)]
    route: Route,
    /// Number of commands sent at a time.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: u16,
    /// Longest time to try one command: `90s`, `10m`.
    #[arg(long, value_name = "LENGTH", default_value = "10m", value_parser = length)]
    deadline: Duration,
    /// Sends the good lines of a file that also has bad ones.
    #[arg(long)]
    skip_bad: bool,
    /// Checks the file and shows the keys without sending anything.
    #[arg(long)]
    dry_run: bool,
    /// Prints one JSON object per line instead of a table.
    #[arg(long)]
    json: bool,
}

/// The length of a time bucket.
#[derive(Clone, Copy, Debug)]
enum BucketLength {
    Forever,
    For(Duration),
}

impl Import {
    pub(super) fn run(self) -> Result<ExitCode, Exit> {
        let recipe = self.recipe()?;
        let (records, mut bad) = read::read(&input(&self.file)?, self.route.layout());
        let commands = recipe.commands(records, &mut bad);
        bad.sort_by_key(|bad| bad.line);
        self.refuse(&commands, &bad)?;
        let mut report = Report::new(self.json);
        for bad in &bad {
            report.bad(bad);
        }
        if self.dry_run {
            let now = self.as_of.unwrap_or_else(send::machine_time);
            for command in &commands {
                report.planned(command, &command.identity.key(recipe.bucket(command, now)));
            }
        } else {
            self.send(recipe, commands, &mut report)?;
        }
        let clean = report.is_clean();
        report.finish(if self.dry_run { "to send" } else { "done" });
        Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn recipe(&self) -> Result<Recipe, Exit> {
        let stable = Stable::declare(self.route.name(), self.stable.iter().map(|field| field.trim()))
            .map_err(|error| Exit::refused(format!("--stable: {error}")))?;
        let width = match self.bucket {
            BucketLength::Forever if self.time_field.is_some() || self.as_of.is_some() => {
                return Err(Exit::refused(
                    "--time-field and --as-of decide between buckets, and there are none; give --bucket too",
                ));
            }
            BucketLength::Forever => None,
            // A command keeps the key of its first attempt for as long as it is retried.
            BucketLength::For(length) if length < self.deadline * 2 => {
                return Err(Exit::refused(
                    "--bucket must be at least twice --deadline; lengthen it, or shorten --deadline",
                ));
            }
            BucketLength::For(length) => {
                Width::new(Span::from_ms(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
            }
        };
        Ok(Recipe { route: self.route, stable, time_field: self.time_field.clone(), width })
    }

    /// Refuses a file with bad lines before anything is sent.
    fn refuse(&self, commands: &[Command], bad: &[BadLine]) -> Result<(), Exit> {
        for BadLine { line, reason } in bad {
            eprintln!("counterfoil: line {line}: {reason}");
        }
        if !bad.is_empty() && !self.skip_bad {
            return Err(Exit::refused(format!(
                "bad lines: {}, and nothing was sent; correct them, or send the others with --skip-bad",
                bad.len()
            )));
        }
        if commands.is_empty() {
            return Err(Exit::refused(format!("{} has no command to send", self.file.display())));
        }
        Ok(())
    }

    fn send(&self, recipe: Recipe, commands: Vec<Command>, report: &mut Report) -> Result<(), Exit> {
        let (url, api_key) =
            (self.url.as_deref().unwrap_or_default(), self.api_key.as_deref().unwrap_or_default());
        let connections = usize::from(self.connections);
        let sender = Sender {
            client: Client::new(url, api_key, connections)?,
            recipe,
            as_of: self.as_of,
            deadline: self.deadline,
            stopped: AtomicBool::new(false),
        };
        let bar = if self.json { ProgressBar::hidden() } else { bar(commands.len()) };
        client_runtime()?.block_on(all(
            Arc::new(sender),
            Arc::new(commands),
            connections,
            |command, delivered| {
                report.delivered(command, delivered);
                bar.inc(1);
            },
        ));
        bar.finish_and_clear();
        Ok(())
    }
}

/// Sends all commands with bounded concurrency; calls `told` with each result.
async fn all(
    sender: Arc<Sender>,
    commands: Arc<Vec<Command>>,
    connections: usize,
    mut told: impl FnMut(&Command, Delivered),
) {
    let next = Arc::new(AtomicUsize::new(0));
    let (results, mut reply) = mpsc::channel(connections);
    for _ in 0..connections.min(commands.len()) {
        let (sender, commands, next, results) =
            (Arc::clone(&sender), Arc::clone(&commands), Arc::clone(&next), results.clone());
        tokio::spawn(async move {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(command) = commands.get(at) else { return };
                if results.send((at, sender.deliver(command).await)).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(results);
    while let Some((at, delivered)) = reply.recv().await {
        if let Some(command) = commands.get(at) {
            told(command, delivered);
        }
    }
}

fn input(file: &Path) -> Result<Vec<u8>, Exit> {
    let refuse = |error: &dyn std::fmt::Display| {
        Exit::refused(format!(
            "{} cannot be read ({error}); name a file, or - for standard input",
            file.display()
        ))
    };
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        let open = std::fs::File::open(file).map_err(|error| refuse(&error))?;
        open.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)
    };
    read.map_err(|error| refuse(&error))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > INPUT_BYTES_MAX {
        return Err(refuse(&"it has more than 512 MiB; split it"));
    }
    Ok(bytes)
}

fn bucket(text: &str) -> Result<BucketLength, String> {
    if text == "none" {
        return Ok(BucketLength::Forever);
    }
    let length = length(text).map_err(|why| format!("{why}, or none"))?;
    if length > BUCKET_MAX { Err("at most 366d, or none".into()) } else { Ok(BucketLength::For(length)) }
}

fn length(text: &str) -> Result<Duration, String> {
    let bad = || "write a whole number and s, m, h or d, like 90s or 24h".to_owned();
    let unit = text.chars().next_back().ok_or_else(bad)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(bad()),
    };
    let digits = text.trim_end_matches(unit);
    let count = digits.parse::<u32>().ok().filter(|count| *count > 0 && digits.len() + 1 == text.len());
    count.map(|count| Duration::from_secs(u64::from(count) * seconds)).ok_or_else(bad)
}

fn instant(text: &str) -> Result<Time, String> {
    counterfoil_wire::time::parse(text)
        .ok_or_else(|| "write an RFC 3339 time, like 2026-01-31T12:00:00Z".to_owned())
}

fn bar(commands: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(commands).unwrap_or(u64::MAX));
    if let Ok(style) = ProgressStyle::with_template("{bar:40.cyan/blue} {pos}/{len} {per_sec} {eta} left") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        for bad in ["", "h", "0h", "-1h", "1.5h", "24", "24x", "1hh", "h1", "99999999999d", "1 h"] {
            assert!(length(bad).is_err(), "{bad}");
        }
        assert!(bucket("367d").is_err() && bucket("None").is_err());
        for (text, seconds) in [("90s", 90), ("10m", 600), ("24h", 86_400), ("7d", 604_800)] {
            assert_eq!(length(text), Ok(Duration::from_secs(seconds)));
        }
    }
}

//! The long run: every target in turn, or one, for the given seconds each.

#![allow(clippy::disallowed_methods, reason = "a timed run needs the clock")]

use clap::Parser;
use counterfoil_fuzz::campaign::{Campaign, Failure};
use counterfoil_fuzz::target::Target;
use counterfoil_fuzz::targets::TARGETS;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Inputs between two reads of the clock.
const BATCH: usize = 16;
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// Mutates inputs of every parser and codec and checks the results.
#[derive(Parser)]
struct Arguments {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only this target.
    #[arg(long)]
    target: Option<String>,
    /// Seed of the mutations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let wanted = |target: &&Target| arguments.target.as_ref().is_none_or(|name| name == target.name);
    let targets: Vec<&Target> = TARGETS.iter().filter(wanted).collect();
    if targets.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("there is no such target; name one of {}", names.join(", "));
        return ExitCode::from(2);
    }
    // The report contains the panic's message.
    std::panic::set_hook(Box::new(|_| {}));
    let mut failed = 0;
    for target in targets {
        if let Err(failure) = run(*target, &arguments) {
            eprintln!("\nFAILED {failure}");
            failed += 1;
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(target: Target, arguments: &Arguments) -> Result<(), Failure> {
    let (begun, whole) = (Instant::now(), Duration::from_secs(arguments.seconds));
    let mut campaign = Campaign::new(target, arguments.seed)?;
    let mut reported = begun;
    while begun.elapsed() < whole {
        for _ in 0..BATCH {
            campaign.step()?;
        }
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            eprint!("\r{}", line(&campaign, target.name, begun.elapsed()));
            let _ = std::io::stderr().flush();
        }
    }
    eprint!("\r");
    println!("{}", line(&campaign, target.name, begun.elapsed()));
    Ok(())
}

fn line(campaign: &Campaign, name: &str, elapsed: Duration) -> String {
    let executions = campaign.executions();
    let rate = executions.checked_div(elapsed.as_secs()).unwrap_or(executions);
    format!(
        "{name:<10} {executions:>11} executions {rate:>8}/s {:>6} s   corpus {:>5}   kinds of answers {:>5}",
        elapsed.as_secs(),
        campaign.corpus_size(),
        campaign.kinds()
    )
}

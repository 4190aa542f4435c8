//! The simulator's command line.

use clap::Parser;
use counterfoil_gateway::Profile;
use counterfoil_gateway::profile::PROFILES;
use counterfoil_sim::bank::{BUGS, Bug};
use counterfoil_sim::draw::draw;
use counterfoil_sim::exhaust::{Depth, exhaust};
use counterfoil_sim::report::Report;
use counterfoil_sim::run::run;
use counterfoil_sim::script::Script;
use counterfoil_sim::shrink::{listed, shrink};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Runs the whole system on one thread from one seed, with faults, and checks what came of it.
#[derive(Parser)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of a command line")]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Run seeds for so many minutes instead.
    #[arg(long)]
    minutes: Option<u64>,
    /// Only this provider profile.
    #[arg(long)]
    profile: Option<String>,
    /// Shrink the first seed that fails to a script.
    #[arg(long)]
    shrink: bool,
    /// Run every seed twice and compare.
    #[arg(long)]
    twice: bool,
    /// Print every option the seed stands for.
    #[arg(long)]
    verbose: bool,
    /// Run a script instead.
    #[arg(long)]
    script: Option<std::path::PathBuf>,
    /// Every fault at every place of one charge, on every profile: `singles`, `call-pairs` or `all-pairs`.
    #[arg(long)]
    exhaust: Option<String>,
    /// How many seeds it takes to see each planted bug.
    #[arg(long)]
    bank: bool,
    /// Plant this bug.
    #[arg(long)]
    bug: Option<String>,
}

fn main() -> ExitCode {
    match go(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

fn go(arguments: &Arguments) -> Result<bool, String> {
    let profile = match &arguments.profile {
        Some(name) => Some(Profile::named(name).ok_or_else(|| format!("there is no profile `{name}`"))?),
        None => None,
    };
    let bug = match &arguments.bug {
        Some(name) => Some(Bug::parse(name).ok_or_else(|| format!("there is no bug `{name}` in the bank"))?),
        None => None,
    };
    if let Some(depth) = &arguments.exhaust {
        return every_place(depth, profile);
    }
    if arguments.bank {
        return Ok(bank(arguments, bug));
    }
    if let Some(path) = &arguments.script {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let script = Script::parse(&text)?;
        return Ok(one(&script, bug, arguments, &mut Report::default()));
    }
    let begun = Instant::now();
    let mut report = Report::default();
    let mut well = true;
    for seed in arguments.seed.. {
        let over = match arguments.minutes {
            Some(minutes) => begun.elapsed() >= Duration::from_secs(minutes * 60),
            None => seed >= arguments.seed.saturating_add(arguments.seeds),
        };
        if over {
            break;
        }
        let script = draw(seed, profile);
        if !one(&script, bug, arguments, &mut report) {
            well = false;
            if arguments.shrink {
                break;
            }
        }
    }
    println!("{report}");
    println!("{} seeds in {} ms", report.runs, begun.elapsed().as_millis());
    Ok(well)
}

/// Runs one script; says whether all is well.
fn one(script: &Script, bug: Option<Bug>, arguments: &Arguments, report: &mut Report) -> bool {
    if arguments.verbose {
        println!("{script}");
    }
    let outcome = run(script, bug);
    report.add(&outcome);
    let name = format!("seed {} ({})", script.setup.seed, script.setup.profile.name);
    if arguments.twice {
        let again = run(script, bug).trace;
        if again != outcome.trace {
            println!("{name}: I22: two runs differ: {:x} {again:x}", outcome.trace);
            return false;
        }
    }
    if arguments.verbose {
        println!("{name}: trace {:x} {:?}", outcome.trace, outcome.seen);
    }
    for violation in outcome.violations.iter().take(6) {
        println!("{name}: {violation}");
    }
    if outcome.violations.is_empty() {
        return true;
    }
    if arguments.shrink {
        let small = shrink(script, bug).unwrap_or_else(|| listed(script, &outcome));
        println!("# smallest script found\n{small}");
        for violation in run(&small, bug).violations.iter().take(6) {
            println!("# {violation}");
        }
    }
    false
}

fn every_place(depth: &str, wanted: Option<&'static Profile>) -> Result<bool, String> {
    let depth = match depth {
        "singles" => Depth::Singles,
        "call-pairs" => Depth::CallPairs,
        "all-pairs" => Depth::AllPairs,
        other => return Err(format!("`{other}` is none of singles, call-pairs and all-pairs")),
    };
    let mut well = true;
    for profile in PROFILES.iter().filter(|profile| wanted.is_none_or(|wanted| wanted.name == profile.name)) {
        for exclusive in [false, true] {
            let begun = Instant::now();
            let tried = exhaust(profile, exclusive, depth);
            println!(
                "{:<18} exclusive={exclusive:<5} {:>6} singles {:>8} pairs {:>4} broken  {} ms",
                profile.name,
                tried.singles,
                tried.pairs,
                tried.broken.len(),
                begun.elapsed().as_millis()
            );
            for (script, violation) in tried.broken.iter().take(3) {
                println!("# {violation}\n{script}");
            }
            well &= tried.broken.is_empty();
        }
    }
    Ok(well)
}

fn bank(arguments: &Arguments, only: Option<Bug>) -> bool {
    let bound = arguments.seeds.max(2);
    let mut missed = 0_u32;
    println!("{:<26} {:>6}  found by", "bug", "seeds");
    for bug in BUGS.iter().filter(|bug| only.is_none_or(|only| only == **bug)) {
        let seeds = arguments.seed..arguments.seed.saturating_add(bound);
        let hit = seeds.into_iter().find_map(|seed| {
            let violation = run(&draw(seed, None), Some(*bug)).violations.into_iter().next()?;
            Some((seed.saturating_sub(arguments.seed).saturating_add(1), violation))
        });
        if let Some((seeds, violation)) = hit {
            let text: String = violation.to_string().chars().take(90).collect();
            println!("{:<26} {seeds:>6}  {text}", bug.name());
        } else {
            missed = missed.saturating_add(1);
            println!("{:<26} {:>6}  not within {bound} seeds ({})", bug.name(), "-", bug.what());
        }
    }
    println!("{} bugs, {missed} not found within {bound} seeds", BUGS.len());
    missed == 0
}

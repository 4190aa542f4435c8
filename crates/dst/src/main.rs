//! The simulation's command line.

use clap::Parser;
use counterfoil_dst::bank::{BUGS, Bug, hunt};
use counterfoil_dst::campaign::{Plan, campaign, in_parallel};
use counterfoil_dst::executor::lock;
use counterfoil_dst::exhaust::{Depth, SCENES, Scene, exhaust};
use counterfoil_dst::run::run;
use counterfoil_dst::script::Script;
use counterfoil_dst::shrink::{shrink, with_listed_faults};
use counterfoil_gateway::ProviderProfile;
use counterfoil_gateway::profile::PROFILES;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Runs the whole system on one thread from a single seed, with faults, and checks the result.
#[derive(Parser)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of a command line")]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Run seeds for this many minutes instead.
    #[arg(long)]
    minutes: Option<u64>,
    /// Run seeds until this many charges were made instead.
    #[arg(long)]
    charges: Option<u64>,
    /// Number of threads; each runs one seed at a time.
    #[arg(long)]
    threads: Option<usize>,
    /// Stop at the first seed with a violation.
    #[arg(long)]
    stop: bool,
    /// Use only this provider profile.
    #[arg(long)]
    profile: Option<String>,
    /// Number of failing seeds to shrink to scripts.
    #[arg(long, default_value_t = 0, default_missing_value = "1", num_args = 0..=1)]
    shrink: usize,
    /// Run every seed twice and compare.
    #[arg(long)]
    twice: bool,
    /// Print all settings and events of the seed.
    #[arg(long)]
    verbose: bool,
    /// Run a script instead.
    #[arg(long)]
    script: Option<std::path::PathBuf>,
    /// Try every fault at every place of every scene and profile: `singles`, `call-pairs` or
    /// `all-pairs`.
    #[arg(long)]
    exhaust: Option<String>,
    /// Use only this scene: `charge`, `capture`, `void`, `refund`, `split` or `payout`.
    #[arg(long)]
    scene: Option<String>,
    /// Count the seeds until each planted bug is found.
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
        Some(name) => {
            Some(ProviderProfile::named(name).ok_or_else(|| format!("there is no profile `{name}`"))?)
        }
        None => None,
    };
    let bug = match &arguments.bug {
        Some(name) => Some(Bug::parse(name).ok_or_else(|| format!("there is no bug `{name}` in the bank"))?),
        None => None,
    };
    if let Some(depth) = &arguments.exhaust {
        let scene = match &arguments.scene {
            Some(name) => Some(Scene::parse(name).ok_or_else(|| format!("there is no scene `{name}`"))?),
            None => None,
        };
        return every_place(depth, profile, scene, threads(arguments));
    }
    if arguments.bank {
        return Ok(bank(arguments, bug));
    }
    if let Some(path) = &arguments.script {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let script = Script::parse(&text)?;
        return Ok(one(&script, bug, arguments));
    }
    let open_ended = arguments.minutes.is_some() || arguments.charges.is_some();
    let plan = Plan {
        first: arguments.seed,
        seeds: (!open_ended).then_some(arguments.seeds),
        time: arguments.minutes.map(|minutes| Duration::from_secs(minutes.saturating_mul(60))),
        charges: arguments.charges,
        threads: threads(arguments),
        profile,
        bug,
        twice: arguments.twice,
        stop: arguments.stop,
        verbose: true,
    };
    if arguments.verbose {
        return Ok(one(&plan.script(arguments.seed), bug, arguments));
    }
    let campaign = campaign(plan);
    println!("{}", campaign.report);
    for (seed, _) in campaign.broken.iter().take(arguments.shrink) {
        smallest(&plan.script(*seed), bug);
    }
    println!("{}", campaign.report.line(campaign.took));
    Ok(campaign.broken.is_empty())
}

fn threads(arguments: &Arguments) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    arguments.threads.unwrap_or_else(cores)
}

/// Shrinks a failing run and prints the script.
fn smallest(script: &Script, bug: Option<Bug>) {
    let small = shrink(script, bug).unwrap_or_else(|| with_listed_faults(script, &run(script, bug)));
    println!("# smallest script found for seed {}\n{small}", script.setup.seed);
    for violation in run(&small, bug).violations.iter().take(6) {
        println!("# {violation}");
    }
}

/// Runs one script and prints the result; returns whether no check failed.
fn one(script: &Script, bug: Option<Bug>, arguments: &Arguments) -> bool {
    if arguments.verbose {
        println!("{script}");
    }
    let outcome = run(script, bug);
    let name = format!("seed {} ({})", script.setup.seed, script.setup.profile.name);
    println!("{name}: trace {:x} {:?}", outcome.trace, outcome.seen);
    for violation in outcome.violations.iter().take(6) {
        println!("{name}: {violation}");
    }
    let well = outcome.violations.is_empty();
    if !well && arguments.shrink > 0 {
        smallest(script, bug);
    }
    well
}

fn every_place(
    depth: &str,
    wanted: Option<&'static ProviderProfile>,
    scene: Option<Scene>,
    threads: usize,
) -> Result<bool, String> {
    let depth = match depth {
        "singles" => Depth::Singles,
        "call-pairs" => Depth::CallPairs,
        "all-pairs" => Depth::AllPairs,
        other => return Err(format!("`{other}` is none of singles, call-pairs and all-pairs")),
    };
    let (mut singles, mut pairs, mut broken) = (0_u64, 0_u64, 0_usize);
    for scene in SCENES.into_iter().filter(|one| scene.is_none_or(|scene| scene == *one)) {
        for profile in PROFILES.iter().filter(|it| wanted.is_none_or(|wanted| wanted.name == it.name)) {
            for exclusive in [false, true] {
                let begun = Instant::now();
                let tried = exhaust(&scene.script(profile, exclusive), depth, threads);
                println!(
                    "{:<8} {:<18} exclusive={exclusive:<5} {:>6} singles {:>8} pairs {:>4} broken  {} ms",
                    scene.name(),
                    profile.name,
                    tried.singles,
                    tried.pairs,
                    tried.broken.len(),
                    begun.elapsed().as_millis()
                );
                for (script, violation) in tried.broken.iter().take(3) {
                    println!("# {violation}\n{script}");
                }
                singles = singles.saturating_add(tried.singles);
                pairs = pairs.saturating_add(tried.pairs);
                broken = broken.saturating_add(tried.broken.len());
            }
        }
    }
    println!("{singles} singles, {pairs} pairs, {broken} broken");
    Ok(broken == 0)
}

/// Prints the bank as a table: the seeds until each bug is found.
fn bank(arguments: &Arguments, only: Option<Bug>) -> bool {
    let bound = arguments.seeds.max(2);
    let bugs: Vec<Bug> = BUGS.iter().copied().filter(|bug| only.is_none_or(|only| only == *bug)).collect();
    let hits = Mutex::new(BTreeMap::new());
    in_parallel(threads(arguments), &bugs, |bug| {
        let hit = hunt(*bug, arguments.seed, bound);
        eprintln!("{}: {:?}", bug.name(), hit.as_ref().map(|hit| hit.seeds));
        lock(&hits).insert(bug.name(), hit);
    });
    println!("| bug | what is wrong | seeds | seconds | found by |\n|---|---|---|---|---|");
    let hits = lock(&hits);
    for bug in &bugs {
        let cells = match hits.get(bug.name()).and_then(Option::as_ref) {
            Some(hit) => {
                let (check, invariant) = (hit.violation.check, hit.violation.invariant);
                let tenths = hit.took.as_millis() / 100;
                format!("{} | {}.{} | {check} {invariant}", hit.seeds, tenths / 10, tenths % 10)
            }
            None => format!("not within {bound} | | "),
        };
        println!("| `{}` | {} | {cells} |", bug.name(), bug.what());
    }
    let missed = hits.values().filter(|hit| hit.is_none()).count();
    println!("{} bugs, {missed} not found within {bound} seeds", bugs.len());
    missed == 0
}

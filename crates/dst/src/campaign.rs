//! Campaigns: many seeds on several threads. Each seed runs on one thread and gives the same run on
//! any thread.
//!
//! Memory is bounded for any length: only the sums of all runs and the first failing seeds are
//! kept.

use crate::bank::Bug;
use crate::check::Violation;
use crate::draw::draw;
use crate::executor::lock;
use crate::report::Report;
use crate::run::{Outcome, run};
use crate::script::Script;
use counterfoil_gateway::ProviderProfile;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Failing seeds that are kept.
const KEPT: usize = 100;
/// Interval of progress lines.
const PROGRESS_EVERY: Duration = Duration::from_secs(15);

/// The plan of a campaign. A bound that is `None` does not end the campaign.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub first: u64,
    /// Number of seeds.
    pub seeds: Option<u64>,
    pub time: Option<Duration>,
    /// Number of charges.
    pub charges: Option<u64>,
    pub threads: usize,
    pub profile: Option<&'static ProviderProfile>,
    /// The planted bug, if any.
    pub bug: Option<Bug>,
    /// Run every seed twice and compare.
    pub twice: bool,
    /// Stop at the first failing seed.
    pub stop: bool,
    /// Print progress and violations.
    pub verbose: bool,
}

impl Plan {
    /// `seeds` seeds on one thread.
    pub fn seeds(first: u64, count: u64) -> Plan {
        Plan {
            first,
            seeds: Some(count),
            time: None,
            charges: None,
            threads: 1,
            profile: None,
            bug: None,
            twice: false,
            stop: false,
            verbose: false,
        }
    }
}

impl Plan {
    /// The run of a seed.
    pub fn script(&self, seed: u64) -> Script {
        draw(seed, self.profile)
    }
}

/// Result of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Campaign {
    pub report: Report,
    /// The first failing seeds, with the first violation.
    pub broken: Vec<(u64, Violation)>,
    pub took: Duration,
}

struct Shared {
    plan: Plan,
    begun: Instant,
    next: AtomicU64,
    charges: AtomicU64,
    stopped: AtomicBool,
    progress: Mutex<(Campaign, Instant)>,
}

/// Runs a plan to the end.
pub fn campaign(plan: Plan) -> Campaign {
    let begun = Instant::now();
    let shared = Shared {
        plan,
        begun,
        next: AtomicU64::new(plan.first),
        charges: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
        progress: Mutex::new((Campaign::default(), begun)),
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            scope.spawn(|| while shared.one() {});
        }
    });
    let (mut campaign, _) = shared.progress.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    campaign.took = begun.elapsed();
    campaign.broken.sort_by_key(|(seed, _)| *seed);
    campaign
}

impl Shared {
    /// Runs the next seed; returns whether there may be another.
    fn one(&self) -> bool {
        let plan = &self.plan;
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        let over = self.stopped.load(Ordering::Relaxed)
            || plan.seeds.is_some_and(|count| seed >= plan.first.saturating_add(count))
            || plan.time.is_some_and(|time| self.begun.elapsed() >= time)
            || plan.charges.is_some_and(|count| self.charges.load(Ordering::Relaxed) >= count);
        if over {
            return false;
        }
        let script = plan.script(seed);
        let outcome = catch_panic(|| run(&script, plan.bug)).unwrap_or_else(Outcome::panicked);
        let again = plan.twice.then(|| catch_panic(|| run(&script, plan.bug)).map(|again| again.trace));
        let differs = again.is_some_and(|again| again != Ok(outcome.trace));
        self.charges.fetch_add(outcome.seen.charges, Ordering::Relaxed);
        self.note(seed, script.setup.profile.name, &outcome, differs);
        true
    }

    fn note(&self, seed: u64, profile: &str, outcome: &Outcome, differs: bool) {
        let mut progress = lock(&self.progress);
        let (campaign, last) = &mut *progress;
        campaign.report.add(outcome);
        campaign.report.differing = campaign.report.differing.saturating_add(u64::from(differs));
        let two = "two runs of the seed differ".to_owned();
        let differs = differs.then(|| Violation::new("trace", "I22", two));
        if let Some(first) = outcome.violations.first().cloned().or(differs) {
            if self.plan.stop {
                self.stopped.store(true, Ordering::Relaxed);
            }
            if campaign.broken.len() < KEPT {
                if self.plan.verbose {
                    println!("seed {seed} ({profile}): {first}");
                }
                campaign.broken.push((seed, first));
            }
        }
        if self.plan.verbose && last.elapsed() >= PROGRESS_EVERY {
            *last = Instant::now();
            println!("{}", campaign.report.line(self.begun.elapsed()));
        }
    }
}

/// Calls `act` for each thing, on several threads.
pub fn in_parallel<T: Sync>(threads: usize, things: &[T], act: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(thing) = things.get(next.fetch_add(1, Ordering::Relaxed)) {
                    act(thing);
                }
            });
        }
    });
}

/// Runs the closure; returns the message if it panics.
fn catch_panic<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    })
}

//! Many seeds, on several threads: each seed is run by one thread alone and is the same run wherever it is run.
//!
//! Memory is bounded whatever the length: of each run only its sums are kept, and of broken ones the first few.

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

/// Broken seeds that are remembered by number.
const REMEMBERED: usize = 100;
/// How often progress is told.
const TOLD_EVERY: Duration = Duration::from_secs(15);

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The first seed.
    pub first: u64,
    /// How many seeds, if that is the end.
    pub seeds: Option<u64>,
    /// How long, if that is the end.
    pub time: Option<Duration>,
    /// How many charges, if that is the end.
    pub charges: Option<u64>,
    /// How many threads.
    pub threads: usize,
    /// Only this profile.
    pub profile: Option<&'static ProviderProfile>,
    /// What is broken on purpose.
    pub bug: Option<Bug>,
    /// Run every seed twice and compare.
    pub twice: bool,
    /// Stop at the first broken seed.
    pub stop: bool,
    /// Tell of progress and of what breaks.
    pub aloud: bool,
}

impl Plan {
    /// So many seeds, on one thread.
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
            aloud: false,
        }
    }
}

impl Plan {
    /// The run of a seed.
    pub fn script(&self, seed: u64) -> Script {
        draw(seed, self.profile)
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Campaign {
    /// Sums.
    pub report: Report,
    /// The first seeds that broke something, each with the first thing it broke.
    pub broken: Vec<(u64, Violation)>,
    /// Time it took.
    pub took: Duration,
}

struct Shared {
    plan: Plan,
    begun: Instant,
    next: AtomicU64,
    charges: AtomicU64,
    stopped: AtomicBool,
    told: Mutex<(Campaign, Instant)>,
}

/// Runs a plan to its end.
pub fn campaign(plan: Plan) -> Campaign {
    let begun = Instant::now();
    let shared = Shared {
        plan,
        begun,
        next: AtomicU64::new(plan.first),
        charges: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
        told: Mutex::new((Campaign::default(), begun)),
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            scope.spawn(|| while shared.one() {});
        }
    });
    let (mut campaign, _) = shared.told.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    campaign.took = begun.elapsed();
    campaign.broken.sort_by_key(|(seed, _)| *seed);
    campaign
}

impl Shared {
    /// Runs the next seed; says whether there may be another.
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
        let outcome = caught(|| run(&script, plan.bug)).unwrap_or_else(Outcome::panicked);
        let again = plan.twice.then(|| caught(|| run(&script, plan.bug)).map(|again| again.trace));
        let differs = again.is_some_and(|again| again != Ok(outcome.trace));
        self.charges.fetch_add(outcome.seen.charges, Ordering::Relaxed);
        self.note(seed, script.setup.profile.name, &outcome, differs);
        true
    }

    fn note(&self, seed: u64, profile: &str, outcome: &Outcome, differs: bool) {
        let mut told = lock(&self.told);
        let (campaign, last) = &mut *told;
        campaign.report.add(outcome);
        campaign.report.differing = campaign.report.differing.saturating_add(u64::from(differs));
        let two = "two runs of the seed differ".to_owned();
        let differs = differs.then(|| Violation::new("trace", "I22", two));
        if let Some(first) = outcome.violations.first().cloned().or(differs) {
            if self.plan.stop {
                self.stopped.store(true, Ordering::Relaxed);
            }
            if campaign.broken.len() < REMEMBERED {
                if self.plan.aloud {
                    println!("seed {seed} ({profile}): {first}");
                }
                campaign.broken.push((seed, first));
            }
        }
        if self.plan.aloud && last.elapsed() >= TOLD_EVERY {
            *last = Instant::now();
            println!("{}", campaign.report.line(self.begun.elapsed()));
        }
    }
}

/// Does something with each of many things, on several threads.
pub fn side_by_side<T: Sync>(threads: usize, things: &[T], act: impl Fn(&T) + Sync) {
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

/// What a run comes to, or what it said when it panicked.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    })
}

//! Exhaustive fault injection: every fault at every place of a short scene, alone and in pairs.

use crate::campaign::in_parallel;
use crate::check::Violation;
use crate::client::{LIVES, OPERATIONS};
use crate::executor::lock;
use crate::faults::{FAULTS, Fault, Point, SITES, Site};
use crate::run::run;
use crate::script::{Action, Ask, Event, FaultSource, Script, Setup};
use counterfoil_gateway::ProviderProfile;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Result of a scene on a profile.
#[derive(Clone, Debug, Default)]
pub struct ExhaustResult {
    /// Runs with one fault.
    pub singles: u64,
    /// Runs with two faults.
    pub pairs: u64,
    /// Failing runs, with the first violation.
    pub broken: Vec<(Script, Violation)>,
}

/// The pairs of faults to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    Singles,
    /// Every fault at the first call, with every fault at every place.
    CallPairs,
    /// Every fault at every place, with every fault at every place reached after it.
    AllPairs,
}

/// The operation under test. Its preparation runs without faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    Charge,
    Capture,
    Void,
    /// A partial refund.
    Refund,
    /// A charge paid in part by a wallet.
    Split,
    Payout,
}

pub const SCENES: [Scene; 6] =
    [Scene::Charge, Scene::Capture, Scene::Void, Scene::Refund, Scene::Split, Scene::Payout];

impl Scene {
    pub const fn name(self) -> &'static str {
        match self {
            Scene::Charge => "charge",
            Scene::Capture => "capture",
            Scene::Void => "void",
            Scene::Refund => "refund",
            Scene::Split => "split",
            Scene::Payout => "payout",
        }
    }

    pub fn parse(name: &str) -> Option<Scene> {
        SCENES.into_iter().find(|scene| scene.name() == name)
    }

    /// The preparing charge, if any, and the request under test.
    fn asks(self) -> (Option<Ask>, Ask) {
        let charge = |key| Ask::Charge { tenant: 1, key, body: 0 };
        let on = |key: u64, number: u64| Ask::Operate {
            tenant: 1,
            key: key.saturating_mul(OPERATIONS).saturating_add(number),
            body: 0,
        };
        // The `client` module defines the meaning of the keys.
        let (hold, captured, split) = (LIVES, LIVES.saturating_add(1), charge(LIVES.saturating_add(6)));
        match self {
            Scene::Charge => (None, charge(2)),
            Scene::Capture => (Some(charge(hold)), on(hold, 1)),
            Scene::Void => (Some(charge(hold)), on(hold, 2)),
            Scene::Refund => (Some(charge(captured)), on(captured, 4)),
            Scene::Split => (None, split),
            Scene::Payout => (Some(charge(4)), Ask::Payout { tenant: 1, key: 4, body: 0 }),
        }
    }

    /// The scene as a script: the request, and its retry at another process.
    pub fn script(self, profile: &'static ProviderProfile, exclusive: bool) -> Script {
        let mut setup = Setup::plain(1, profile);
        setup.end = 1_200;
        setup.latency = 1;
        setup.exclusive = exclusive;
        setup.processes = if exclusive { 1 } else { 2 };
        let (first, ask) = self.asks();
        setup.quiet = u64::from(first.is_some());
        let at = |at, process, ask| Event { at, action: Action::Ask { process, ask, patience: None } };
        let mut events: Vec<Event> = first.into_iter().map(|first| at(0, 0, first)).collect();
        events.extend([at(0, 0, ask), at(700, setup.processes.saturating_sub(1), ask)]);
        Script { setup, events, faults: FaultSource::Listed(BTreeMap::new()) }
    }
}

/// Tries every single fault at every place that the scene reaches, and pairs as deep as wanted. The
/// same two faults give the same run in either order, so each pair runs once.
pub fn exhaust(script: &Script, depth: Depth, threads: usize) -> ExhaustResult {
    let firsts = places(script, &[], None);
    let tried = Mutex::new(ExhaustResult::default());
    let pairs: Mutex<BTreeSet<[(Point, Fault); 2]>> = Mutex::default();
    in_parallel(threads, &firsts, |first| {
        one(&tried, script, &[*first]);
        let deep = match depth {
            Depth::Singles => false,
            Depth::CallPairs => first.0 == (Site::Call, 0),
            Depth::AllPairs => true,
        };
        if !deep {
            return;
        }
        for second in places(script, &[*first], Some(first.0)) {
            let mut pair = [*first, second];
            pair.sort_unstable();
            if lock(&pairs).insert(pair) {
                one(&tried, script, &pair);
            }
        }
    });
    tried.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Every fault at every place that a run with the `given` faults reaches.
fn places(script: &Script, given: &[(Point, Fault)], after: Option<Point>) -> Vec<(Point, Fault)> {
    let reached = run(&with(script, given), None).reached;
    let mut places = Vec::new();
    for (site, count) in SITES.into_iter().zip(reached) {
        // Later places belong to background work on a store that no longer changes.
        let bound = match site {
            Site::Poll => 120,
            Site::Read => 12,
            Site::Commit => 8,
            Site::Call | Site::Lookup => 3,
        };
        for number in 0..count.min(bound) {
            let earlier = after.is_some_and(|(other, place)| other == site && number <= place);
            if !earlier {
                let kinds = FAULTS.iter().copied().filter(|fault| fault.site() == site);
                places.extend(kinds.map(|fault| ((site, number), fault)));
            }
        }
    }
    places
}

fn with(script: &Script, faults: &[(Point, Fault)]) -> Script {
    Script { faults: FaultSource::Listed(faults.iter().copied().collect()), ..script.clone() }
}

fn one(tried: &Mutex<ExhaustResult>, script: &Script, faults: &[(Point, Fault)]) {
    let script = with(script, faults);
    let broken = run(&script, None).violations.into_iter().next();
    let mut tried = lock(tried);
    let count = if faults.len() == 1 { &mut tried.singles } else { &mut tried.pairs };
    *count = count.saturating_add(1);
    tried.broken.extend(broken.map(|first| (script, first)));
}

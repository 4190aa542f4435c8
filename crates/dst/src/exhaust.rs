//! Every fault at every place: singles, and pairs in their order, for one charge and for what is asked of one.

use crate::campaign::side_by_side;
use crate::check::Violation;
use crate::client::{LIVES, OPERATIONS};
use crate::executor::lock;
use crate::faults::{FAULTS, Fault, Point, SITES, Site};
use crate::run::run;
use crate::script::{Ask, Event, Script, Setup, Source, What};
use counterfoil_gateway::ProviderProfile;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// What was tried on one profile.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// Runs with one fault.
    pub singles: u64,
    /// Runs with two.
    pub pairs: u64,
    /// Runs that broke something; the first of them with the first thing they broke.
    pub broken: Vec<(Script, Violation)>,
}

/// Which pairs are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// None.
    Singles,
    /// What goes wrong with the first call, and then everything at every place.
    CallPairs,
    /// Everything at every place, and then everything at every place that is reached then.
    AllPairs,
}

/// What is tried. What comes before it is done without faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// A charge.
    Charge,
    /// The capture of a hold.
    Capture,
    /// The void of a hold.
    Void,
    /// A refund of a part.
    Refund,
    /// A charge that a wallet pays in part.
    Split,
    /// A payout.
    Payout,
}

/// Every scene.
pub const SCENES: [Scene; 6] =
    [Scene::Charge, Scene::Capture, Scene::Void, Scene::Refund, Scene::Split, Scene::Payout];

impl Scene {
    /// Its name.
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

    /// The scene of that name.
    pub fn parse(name: &str) -> Option<Scene> {
        SCENES.into_iter().find(|scene| scene.name() == name)
    }

    /// The charge that is made first, if one is, and what is asked for.
    fn asks(self) -> (Option<Ask>, Ask) {
        let charge = |key| Ask::Charge { tenant: 1, key, body: 0 };
        let on = |key: u64, number: u64| Ask::Operate {
            tenant: 1,
            key: key.saturating_mul(OPERATIONS).saturating_add(number),
            body: 0,
        };
        // What the numbers stand for is said in `client`.
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

    /// It is asked for twice: by the client and by its retry at another process.
    pub fn script(self, profile: &'static ProviderProfile, exclusive: bool) -> Script {
        let mut setup = Setup::plain(1, profile);
        setup.end = 1_200;
        setup.latency = 1;
        setup.exclusive = exclusive;
        setup.processes = if exclusive { 1 } else { 2 };
        let (first, ask) = self.asks();
        setup.quiet = u64::from(first.is_some());
        let at = |at, process, ask| Event { at, what: What::Ask { process, ask, patience: None } };
        let mut events: Vec<Event> = first.into_iter().map(|first| at(0, 0, first)).collect();
        events.extend([at(0, 0, ask), at(700, setup.processes.saturating_sub(1), ask)]);
        Script { setup, events, faults: Source::Listed(BTreeMap::new()) }
    }
}

/// Tries every single fault at every place the scene reaches, and pairs as deep as wanted. Two faults that strike in one
/// run are one pair, whichever of them was thought of first: the same list of faults is the same run, so it is run once.
pub fn exhaust(script: &Script, depth: Depth, threads: usize) -> Tried {
    let firsts = places(script, &[], None);
    let tried = Mutex::new(Tried::default());
    let pairs: Mutex<BTreeSet<[(Point, Fault); 2]>> = Mutex::default();
    side_by_side(threads, &firsts, |first| {
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

/// Every fault at every place a run reaches, given what strikes before.
fn places(script: &Script, given: &[(Point, Fault)], after: Option<Point>) -> Vec<(Point, Fault)> {
    let reached = run(&with(script, given), None).reached;
    let mut places = Vec::new();
    for (site, count) in SITES.into_iter().zip(reached) {
        // Later ones are background work that looks at a store in which nothing changes any more.
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
    Script { faults: Source::Listed(faults.iter().copied().collect()), ..script.clone() }
}

fn one(tried: &Mutex<Tried>, script: &Script, faults: &[(Point, Fault)]) {
    let script = with(script, faults);
    let broken = run(&script, None).violations.into_iter().next();
    let mut tried = lock(tried);
    let count = if faults.len() == 1 { &mut tried.singles } else { &mut tried.pairs };
    *count = count.saturating_add(1);
    tried.broken.extend(broken.map(|first| (script, first)));
}

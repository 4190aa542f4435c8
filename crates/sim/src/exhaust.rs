//! Every fault at every place, for one charge: singles, and pairs in their order.

use crate::check::Violation;
use crate::faults::{FAULTS, Fault, Point, SITES, Site};
use crate::run::run;
use crate::script::{Ask, Event, Script, Setup, Source, What};
use counterfoil_gateway::Profile;
use std::collections::BTreeMap;

/// What was tried on one profile.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// Runs with one fault.
    pub singles: u64,
    /// Runs with two.
    pub pairs: u64,
    /// Runs that broke something, with the first thing they broke.
    pub broken: Vec<(Script, Violation)>,
}

/// Which pairs are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// None.
    Singles,
    /// What goes wrong with the first call, and then everything at every place.
    CallPairs,
    /// Everything at every place, and then everything at every place after it.
    AllPairs,
}

/// One charge, asked for twice: by the client and by its retry at another process.
pub fn one_charge(profile: &'static Profile, exclusive: bool) -> Script {
    let mut setup = Setup::plain(1, profile);
    setup.end = 1_200;
    setup.latency = 1;
    setup.exclusive = exclusive;
    setup.processes = if exclusive { 1 } else { 2 };
    let ask = Ask::Charge { tenant: 1, key: 2, body: 0 };
    let events = vec![
        Event { at: 0, what: What::Ask { process: 0, ask, patience: None } },
        Event {
            at: 700,
            what: What::Ask { process: setup.processes.saturating_sub(1), ask, patience: None },
        },
    ];
    Script { setup, events, faults: Source::Listed(BTreeMap::new()) }
}

/// Tries every single fault at every place one charge reaches, and pairs as deep as wanted.
pub fn exhaust(profile: &'static Profile, exclusive: bool, depth: Depth) -> Tried {
    let script = one_charge(profile, exclusive);
    let mut tried = Tried::default();
    let mut firsts = Vec::new();
    for (point, fault) in places(&script, &[], None) {
        tried.singles = tried.singles.saturating_add(1);
        tried.one(&script, &[(point, fault)]);
        firsts.push((point, fault));
    }
    for first in firsts {
        let deep = match depth {
            Depth::Singles => false,
            Depth::CallPairs => first.0 == (Site::Call, 0),
            Depth::AllPairs => true,
        };
        if deep {
            for second in places(&script, &[first], Some(first.0)) {
                tried.pairs = tried.pairs.saturating_add(1);
                tried.one(&script, &[first, second]);
            }
        }
    }
    tried
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

impl Tried {
    fn one(&mut self, script: &Script, faults: &[(Point, Fault)]) {
        let script = with(script, faults);
        if let Some(first) = run(&script, None).violations.into_iter().next() {
            self.broken.push((script, first));
        }
    }
}

//! Shrinking a failing run to as few events, faults and special settings as still fail in the same
//! way.

use crate::bank::Bug;
use crate::faults::{Fault, Point};
use crate::run::{Outcome, run};
use crate::script::{FaultSource, Script};

/// Most runs of one shrinking.
const RUNS_MAX: u32 = 600;

/// The state of a shrinking.
struct Shrinking {
    best: Script,
    broken: (&'static str, &'static str),
    bug: Option<Bug>,
    runs: u32,
}

/// The script of a drawn run with the faults listed. It gives the same run.
pub fn with_listed_faults(script: &Script, outcome: &Outcome) -> Script {
    Script { faults: FaultSource::Listed(outcome.struck.clone()), ..script.clone() }
}

/// Shrinks a failing script. `None` if it does not fail again.
pub fn shrink(script: &Script, bug: Option<Bug>) -> Option<Script> {
    let outcome = run(script, bug);
    let first = outcome.violations.first()?;
    let mut shrinking = Shrinking {
        best: with_listed_faults(script, &outcome),
        broken: (first.check, first.invariant),
        bug,
        runs: 0,
    };
    if !shrinking.fails(&shrinking.best.clone()) {
        return None;
    }
    shrinking.simplify();
    loop {
        let before = (shrinking.best.events.len(), shrinking.fault_list().len());
        shrinking.fewer_events();
        shrinking.fewer_faults();
        let after = (shrinking.best.events.len(), shrinking.fault_list().len());
        if before == after || shrinking.runs >= RUNS_MAX {
            break;
        }
    }
    shrinking.simplify();
    Some(shrinking.best)
}

impl Shrinking {
    fn fails(&mut self, script: &Script) -> bool {
        if self.runs >= RUNS_MAX {
            return false;
        }
        self.runs = self.runs.saturating_add(1);
        run(script, self.bug).violations.iter().any(|found| (found.check, found.invariant) == self.broken)
    }

    fn attempt(&mut self, script: Script) -> bool {
        let fails = script != self.best && self.fails(&script);
        if fails {
            self.best = script;
        }
        fails
    }

    fn fault_list(&self) -> Vec<(Point, Fault)> {
        match &self.best.faults {
            FaultSource::Listed(listed) => listed.iter().map(|(point, fault)| (*point, *fault)).collect(),
            FaultSource::Drawn(_) => Vec::new(),
        }
    }

    /// Removes ever smaller parts of the events.
    fn fewer_events(&mut self) {
        let mut size = self.best.events.len().div_ceil(2).max(1);
        loop {
            let mut start = 0;
            while start < self.best.events.len() {
                let mut script = self.best.clone();
                let end = start.saturating_add(size).min(script.events.len());
                script.events.drain(start..end);
                if !self.attempt(script) {
                    start = end;
                }
            }
            if size == 1 {
                return;
            }
            size = size.div_ceil(2);
        }
    }

    /// Removes ever smaller parts of the faults.
    fn fewer_faults(&mut self) {
        let mut size = self.fault_list().len().div_ceil(2).max(1);
        loop {
            let mut start = 0;
            while start < self.fault_list().len() {
                let mut list = self.fault_list();
                let end = start.saturating_add(size).min(list.len());
                list.drain(start..end);
                let script =
                    Script { faults: FaultSource::Listed(list.into_iter().collect()), ..self.best.clone() };
                if !self.attempt(script) {
                    start = end;
                }
            }
            if size == 1 {
                return;
            }
            size = size.div_ceil(2);
        }
    }

    /// Uses default settings wherever the script still fails with them.
    fn simplify(&mut self) {
        let mut script = self.best.clone();
        script.setup.in_order = true;
        self.attempt(script);
        let mut script = self.best.clone();
        script.setup.paces = [1_000; 3];
        self.attempt(script);
        for latency in [1, 5, 40] {
            let mut script = self.best.clone();
            if latency < script.setup.latency {
                script.setup.latency = latency;
                self.attempt(script);
            }
        }
        let mut script = self.best.clone();
        script.setup.breaker = 1_000;
        self.attempt(script);
    }
}

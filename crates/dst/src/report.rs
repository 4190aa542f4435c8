//! A summary of many runs.

use crate::faults::{FAULTS, Fault};
use crate::run::Outcome;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub runs: u64,
    /// Runs with a violation.
    pub broken: u64,
    /// Runs with a known defect.
    pub known: u64,
    /// Runs that differed when repeated.
    pub differing: u64,
    /// Sum of the traces of all runs. The same seeds have the same sum, in any order.
    pub traces: u64,
    sums: BTreeMap<&'static str, u64>,
    struck: BTreeMap<Fault, u64>,
}

impl Report {
    pub fn add(&mut self, outcome: &Outcome) {
        self.runs = self.runs.saturating_add(1);
        self.broken = self.broken.saturating_add(u64::from(!outcome.violations.is_empty()));
        self.known = self.known.saturating_add(u64::from(!outcome.known.is_empty()));
        self.traces = self.traces.wrapping_add(outcome.trace);
        let seen = &outcome.seen;
        for (name, value) in [
            ("asks", seen.asks),
            ("answers", seen.answers),
            ("charges", seen.charges),
            ("operations", seen.operations),
            ("payouts", seen.payouts),
            ("hints", seen.hints),
            ("effects", seen.effects),
            ("parked", seen.parked),
            ("transactions", seen.transactions),
            ("commits", seen.commits),
            ("crashes", seen.crashes),
            ("steps", seen.polls),
            ("simulated hours", 0),
            ("ms", seen.ms),
        ] {
            let sum = self.sums.entry(name).or_default();
            *sum = sum.saturating_add(value);
        }
        for fault in outcome.struck.values() {
            let times = self.struck.entry(*fault).or_default();
            *times = times.saturating_add(1);
        }
    }

    pub fn sum(&self, name: &str) -> u64 {
        self.sums.get(name).copied().unwrap_or(0)
    }

    /// The sums so far, as a line of JSON.
    pub fn line(&self, took: Duration) -> String {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = self.sum("charges").saturating_mul(1_000) / ms;
        let mut line = format!(r#"{{"seeds":{},"broken":{}"#, self.runs, self.broken);
        for name in ["charges", "operations", "payouts", "asks", "parked", "commits", "crashes", "steps"] {
            let _ = write!(line, r#","{name}":{}"#, self.sum(name));
        }
        let struck: u64 = self.struck.values().sum();
        let (hours, traces) = (self.sum("ms") / 3_600_000, self.traces);
        let _ = write!(
            line,
            r#","faults":{struck},"differing":{},"simulated_hours":{hours},"seconds":{},"charges_per_second":{rate},"traces":"{traces:016x}"}}"#,
            self.differing,
            ms / 1_000
        );
        line
    }

    /// Faults that never struck.
    pub fn never(&self) -> Vec<&'static str> {
        FAULTS.iter().filter(|fault| !self.struck.contains_key(fault)).map(|fault| fault.name()).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs, {} broken, {} with a known defect;", self.runs, self.broken, self.known)?;
        let hours = self.sums.get("ms").copied().unwrap_or(0) / 3_600_000;
        for (name, sum) in self.sums.iter().filter(|(name, _)| **name != "ms") {
            let sum = if *name == "simulated hours" { hours } else { *sum };
            write!(f, " {sum} {name},")?;
        }
        writeln!(f)?;
        f.write_str("faults that struck:")?;
        for (fault, times) in &self.struck {
            write!(f, " {}={times}", fault.name())?;
        }
        let never = self.never();
        if never.is_empty() { Ok(()) } else { write!(f, "\nfaults that never struck: {}", never.join(" ")) }
    }
}

//! One run: a start without faults, a phase with faults, a phase without faults in which all work
//! must end, and the checks.

mod cluster;
mod frontend;
mod operator;
mod settle;

pub use cluster::{Cluster, SimEngine, references};

use crate::bank::Bug;
use crate::check::{self, Evidence, Violation};
use crate::client::{ACCOUNTS, LIVES, opening};
use crate::executor::lock;
use crate::faults::{Fault, Point};
use crate::script::{Action, Ask, Event, Script};
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::Row;
use std::collections::BTreeMap;

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// A hash of everything that happened.
    pub trace: u64,
    /// Violations that are new.
    pub violations: Vec<Violation>,
    /// Violations by known defects ([`check::OPEN`]).
    pub known: Vec<Violation>,
    /// The faults that struck, for a script.
    pub struck: BTreeMap<Point, Fault>,
    /// Places reached, by site.
    pub reached: [u64; 5],
    pub seen: Seen,
}

impl Outcome {
    /// The result of a run that panicked.
    pub fn panicked(what: String) -> Outcome {
        Outcome {
            trace: 0,
            violations: vec![Violation::new("panic", "I9", what)],
            known: Vec::new(),
            struck: BTreeMap::new(),
            reached: [0; 5],
            seen: Seen::default(),
        }
    }
}

/// Counts of a run, to show that the run was not empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub asks: u64,
    /// Requests with a stored answer.
    pub answers: u64,
    pub charges: u64,
    /// Captures, voids and refunds.
    pub operations: u64,
    pub payouts: u64,
    /// Pieces of work brought forward by hints.
    pub hints: u64,
    pub effects: u64,
    /// Parked work at the end.
    pub parked: u64,
    pub transactions: u64,
    pub commits: u64,
    pub crashes: u64,
    pub ms: u64,
    /// Task polls.
    pub polls: u64,
}

/// Time limit of each step of the start.
const PATIENCE: u64 = 300_000;

/// Runs a script, with a planted bug if any.
pub fn run(script: &Script, bug: Option<Bug>) -> Outcome {
    run_with_evidence(script, bug).0
}

/// Runs a script and returns the evidence of the checks as well.
pub fn run_with_evidence(script: &Script, bug: Option<Bug>) -> (Outcome, Evidence) {
    let mut cluster = Cluster::new(script, bug);
    cluster.boot_all();
    if let Err(violation) = begin(&mut cluster, needs_ledger(script)) {
        return (outcome(&cluster, vec![violation]), Evidence::default());
    }
    let (quiet, events) =
        script.events.split_at(usize::try_from(script.setup.quiet).unwrap_or(0).min(script.events.len()));
    for event in quiet {
        if let Action::Ask { process, ask, .. } = event.action {
            let place = cluster.ask(process, ask, None);
            answered(&mut cluster, place);
        }
    }
    let start = cluster.executor.now();
    lock(&cluster.faults).start();
    act(&mut cluster, script, events, start);
    let violations = settle::settle(&mut cluster);
    let mut outcome = outcome(&cluster, violations);
    let evidence = Evidence::of(&cluster);
    let (known, new): (Vec<_>, Vec<_>) =
        check::check(&evidence).into_iter().partition(|found| check::OPEN.contains(&found.check));
    outcome.violations.extend(new);
    outcome.known = known;
    (outcome, evidence)
}

/// Whether a request of the script needs the ledger accounts.
fn needs_ledger(script: &Script) -> bool {
    script.events.iter().any(|event| match event.action {
        Action::Ask { ask: Ask::Charge { key, .. }, .. } => key % 6 == 0 || key >= LIVES,
        Action::Ask {
            ask: Ask::Ledger { .. } | Ask::Operate { .. } | Ask::Payout { .. } | Ask::Look { .. },
            ..
        } => true,
        _ => false,
    })
}

/// Starts all processes and opens the accounts, without faults.
fn begin(cluster: &mut Cluster, ledger: bool) -> Result<(), Violation> {
    let stuck = |what: &str| Err(Violation::new("begin", "I9", format!("without any fault, {what}")));
    cluster.run(PATIENCE, Cluster::all_up);
    if !cluster.all_up() {
        return stuck("a process does not start");
    }
    let openings = if ledger { u64::try_from(ACCOUNTS.len()).unwrap_or(0).saturating_add(3) } else { 0 };
    for number in 0..openings {
        let id = Ulid::new(Time::from_ms(0), u128::from(number));
        let ask = Ask::Ledger { key: number, body: 0 };
        let place = cluster.hand(0, ask, opening(number, id), None);
        if !answered(cluster, place) {
            return stuck("an account cannot be opened");
        }
    }
    lock(&cluster.calls).clear();
    let mut known = lock(&cluster.known);
    *known = crate::client::ClientKnowledge::default();
    for row in lock(&cluster.machine).store.rows().values() {
        if let Row::Account(account) = row.as_ref() {
            known.accounts.insert(account.code.as_str().to_owned(), account.id);
        }
    }
    Ok(())
}

/// Runs until the request at `place` has an answer; returns whether it got one.
fn answered(cluster: &mut Cluster, place: usize) -> bool {
    let is_there =
        |cluster: &Cluster| lock(&cluster.calls).get(place).is_some_and(|call| call.returned.is_some());
    let until = cluster.executor.now().saturating_add(PATIENCE);
    cluster.run(until, is_there);
    is_there(cluster)
}

/// The phase with faults.
fn act(cluster: &mut Cluster, script: &Script, events: &[Event], start: u64) {
    // Processes that shut down, each with the time of its exit.
    let mut gone: Vec<(u64, u64)> = Vec::new();
    // A pause of all processes postpones the later events.
    let mut start = start;
    for event in events {
        let at = start.saturating_add(event.at);
        leave(cluster, &mut gone, at);
        cluster.run(at, |_| false);
        let now = cluster.executor.now();
        match event.action {
            Action::Ask { process, ask, patience } => {
                cluster.ask(process, ask, patience);
            }
            Action::Crash { process, back } => cluster.crash(process, back),
            Action::Pause { process, ms } => cluster.pause(process, ms),
            Action::Drain { process } => {
                cluster.drain(process);
                gone.push((now.saturating_add(6_000), process));
            }
            Action::Hint { process, number } => cluster.hint(process, number),
            Action::Freeze(ms) => {
                cluster.freeze(now.saturating_add(ms));
                cluster.run(now.saturating_add(ms), |_| false);
                start = start.saturating_add(ms);
            }
            Action::StoreDown(ms) => lock(&cluster.machine).down_until = now.saturating_add(ms),
            Action::ProviderDown(ms) => lock(&cluster.provider).down_until = now.saturating_add(ms),
        }
    }
    let end = start.saturating_add(script.setup.end);
    leave(cluster, &mut gone, end.saturating_add(6_000));
    cluster.run(end, |_| false);
}

fn leave(cluster: &mut Cluster, gone: &mut Vec<(u64, u64)>, until: u64) {
    gone.sort_unstable();
    while let Some((at, process)) = gone.first().copied().filter(|(at, _)| *at <= until) {
        cluster.run(at, |_| false);
        cluster.crash(process, 300);
        gone.remove(0);
    }
}

fn outcome(cluster: &Cluster, violations: Vec<Violation>) -> Outcome {
    let machine = lock(&cluster.machine);
    let rows = machine.store.rows();
    let count = |wanted: fn(&Row) -> bool| {
        u64::try_from(rows.values().filter(|row| wanted(row)).count()).unwrap_or(0)
    };
    let calls = lock(&cluster.calls);
    let answered = |it: &&crate::client::ClientCall| {
        use counterfoil_engine::service::Submitted;
        matches!(it.response, Some(crate::client::Response::Submitted(Submitted::Answer { .. })))
    };
    let size = |length: usize| u64::try_from(length).unwrap_or(0);
    let seen = Seen {
        asks: size(calls.len()),
        answers: size(calls.iter().filter(answered).count()),
        charges: count(|row| matches!(row, Row::Charge(_))),
        operations: count(|row| matches!(row, Row::Operation(_))),
        payouts: count(|row| matches!(row, Row::Payout(_))),
        hints: *lock(&cluster.hinted),
        effects: size(lock(&cluster.provider).effects.len()),
        parked: count(|row| matches!(row, Row::Outbox(outbox) if outbox.parked.is_some())),
        transactions: count(|row| matches!(row, Row::Transaction(_))),
        commits: size(machine.store.history().len()),
        crashes: cluster.crashes,
        ms: cluster.executor.now(),
        polls: cluster.executor.polls(),
    };
    let faults = lock(&cluster.faults);
    Outcome {
        trace: cluster.executor.trace(),
        violations,
        known: Vec::new(),
        struck: faults.struck().clone(),
        reached: faults.reached(),
        seen,
    }
}

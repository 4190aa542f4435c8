//! One run: a quiet beginning, a phase of faults in which nothing may go wrong, a phase without faults in which
//! everything must come to its end, and the checks.

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

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Everything that happened, as one number.
    pub trace: u64,
    /// What must not be.
    pub violations: Vec<Violation>,
    /// What must not be either, and is known ([`check::OPEN`]).
    pub known: Vec<Violation>,
    /// The faults that struck, to be listed in a script.
    pub struck: BTreeMap<Point, Fault>,
    /// Places reached, by site.
    pub reached: [u64; 5],
    /// What there was to look at.
    pub seen: Seen,
}

impl Outcome {
    /// A run that ended in a panic.
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

/// Counts of one run, to show that it was not empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Requests.
    pub asks: u64,
    /// Requests that got their stored answer.
    pub answers: u64,
    /// Charges made.
    pub charges: u64,
    /// Captures, voids and refunds begun.
    pub operations: u64,
    /// Payouts begun.
    pub payouts: u64,
    /// Work that hints have brought forward.
    pub hints: u64,
    /// Effects at the provider.
    pub effects: u64,
    /// Charges that ended with a human.
    pub parked: u64,
    /// Transactions of the ledger.
    pub transactions: u64,
    /// Commits.
    pub commits: u64,
    /// Processes that died.
    pub crashes: u64,
    /// Virtual milliseconds.
    pub ms: u64,
    /// Tasks that were run.
    pub polls: u64,
}

/// Time without any progress after which the beginning counts as failed.
const PATIENCE: u64 = 300_000;

/// Runs a script. `bug` is what is broken on purpose.
pub fn run(script: &Script, bug: Option<Bug>) -> Outcome {
    run_with_evidence(script, bug).0
}

/// Runs a script and keeps what the checks looked at.
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

/// Whether anybody asks for something that needs the accounts.
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

/// Starts everybody and opens the accounts, without faults.
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
    let mut learnt = lock(&cluster.known);
    *learnt = crate::client::ClientKnowledge::default();
    for row in lock(&cluster.machine).store.rows().values() {
        if let Row::Account(account) = row.as_ref() {
            learnt.accounts.insert(account.code.as_str().to_owned(), account.id);
        }
    }
    Ok(())
}

/// Runs until the request at `place` has its answer; says whether it got one.
fn answered(cluster: &mut Cluster, place: usize) -> bool {
    let is_there =
        |cluster: &Cluster| lock(&cluster.calls).get(place).is_some_and(|call| call.returned.is_some());
    let until = cluster.executor.now().saturating_add(PATIENCE);
    cluster.run(until, is_there);
    is_there(cluster)
}

/// The phase of faults.
fn act(cluster: &mut Cluster, script: &Script, events: &[Event], start: u64) {
    // A drained process is gone a little later.
    let mut gone: Vec<(u64, u64)> = Vec::new();
    // What everybody slept through puts off what comes after.
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

//! The phase without faults: all processes are up, store and provider answer, and all work must
//! end.

use super::cluster::Cluster;
use super::operator::settle_letters;
use crate::check::Violation;
use crate::client::{OPERATIONS, Response, fingerprint, request};
use crate::executor::lock;
use crate::script::Ask;
use crate::store::START;
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::service::Submitted;
use counterfoil_store::{Due, Row, RowKey};
use std::collections::BTreeSet;

/// Time limit for all work. A provider that stores its errors for a day is asked every half minute
/// until `not found` is proof.
const WORK_MAX: u64 = 3 * 86_400_000;
/// Rounds without progress of due work. Commits that were slow when the faults ended may take a
/// minute each.
const IDLE_MAX: u32 = 60;
/// Rounds of retries for open keys.
const ASKS_MAX: u32 = 40;

/// A used key: kind, tenant and number.
type Used = (&'static str, u64, u64);

/// Runs to the end of all work; returns the violations of liveness.
pub(super) fn settle(cluster: &mut Cluster) -> Vec<Violation> {
    lock(&cluster.faults).stop();
    lock(&cluster.machine).down_until = 0;
    lock(&cluster.provider).down_until = 0;
    cluster.executor.resume_all();
    cluster.bring_back(true);
    let mut violations = Vec::new();
    let patience = cluster.executor.now().saturating_add(120_000);
    cluster.run(patience, Cluster::all_up);
    if !cluster.all_up() {
        violations.push(Violation::new("liveness", "I9", "a process does not start again".to_owned()));
        return violations;
    }
    work_off(cluster, &mut violations);
    if !violations.is_empty() {
        return violations;
    }
    let mut open = used(cluster);
    for round in 0..ASKS_MAX {
        if open.is_empty() || !violations.is_empty() {
            break;
        }
        ask_all(cluster, &mut open, u64::from(round), &mut violations);
        work_off(cluster, &mut violations);
        if !open.is_empty() {
            sleep_until_leases_end(cluster);
        }
    }
    for (kind, tenant, key) in open {
        let what = format!("{kind} {key} of tenant {tenant} has no final answer and is not parked");
        violations.push(Violation::new("liveness", "I9", what));
    }
    if cluster.setup.operators > 0 && violations.is_empty() {
        settle_letters(cluster, &mut violations);
    }
    // Delivers the requests that are still on the network.
    let late = cluster.setup.profile.rules.late_delivery.ms().saturating_add(30_000);
    cluster.freeze(cluster.executor.now().saturating_add(late));
    let end = cluster.executor.now().saturating_add(late).saturating_add(2_000);
    cluster.run(end, |_| false);
    work_off(cluster, &mut violations);
    let end = cluster.executor.now().saturating_add(60_000);
    cluster.run(end, |cluster| !has_overdue_hold(cluster) && !is_at_work(cluster));
    violations
}

/// Whether a late request is still being worked on.
fn is_at_work(cluster: &Cluster) -> bool {
    lock(&cluster.machine).store.leases() > 0
}

fn has_overdue_hold(cluster: &Cluster) -> bool {
    let now = START.plus(Span::from_ms(cluster.executor.now()));
    !lock(&cluster.machine).store.due(Due::Holds, now, 1).is_empty()
}

/// Advances time until only parked work is left. Idle time is skipped.
pub(super) fn work_off(cluster: &mut Cluster, violations: &mut Vec<Violation>) {
    let (mut last, mut idle) = (None, 0_u32);
    let end = cluster.executor.now().saturating_add(WORK_MAX);
    while cluster.executor.now() < end {
        let Some(next) = next_work(cluster) else { return };
        let mut seen = commits(cluster);
        idle = if last == Some(next) { idle.saturating_add(1) } else { 0 };
        last = Some(next);
        if let Some(until) = cluster.executor.paused_until() {
            cluster.run(until, |_| false);
            continue;
        }
        if idle > IDLE_MAX {
            break;
        }
        let now = cluster.executor.now();
        // Only a wait without any lease is skipped, so running work is not interrupted.
        if !next.is_held && next.due > now.saturating_add(1_000) {
            cluster.freeze(next.due);
            cluster.run(next.due, |_| false);
        }
        let until = next.due.max(now).saturating_add(2_500);
        // Work changes only with a commit.
        cluster.run(until, |cluster| {
            let now = commits(cluster);
            now != std::mem::replace(&mut seen, now) && next_work(cluster) != Some(next)
        });
    }
    violations.push(Violation::new("liveness", "I9", "work does not end".to_owned()));
}

/// The next due work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NextWork {
    /// Whether any work is leased.
    is_held: bool,
    due: u64,
    revision: u64,
}

/// The next due work, if any.
fn next_work(cluster: &Cluster) -> Option<NextWork> {
    let machine = lock(&cluster.machine);
    let open = machine.store.work().filter_map(|row| match row {
        Row::Outbox(outbox) if outbox.parked.is_none() => Some(outbox),
        _ => None,
    });
    let (mut next, mut held) = (None, false);
    for outbox in open {
        let claim = machine.store.find_row(|tenant| RowKey::Claim(tenant, outbox.claim));
        held |= matches!(claim, Some(Row::Claim(claim)) if claim.state.lease().is_some());
        let one = (since_start(outbox.due_at), outbox.revision);
        next = Some(next.map_or(one, |least: (u64, u64)| least.min(one)));
    }
    next.map(|(due, revision)| NextWork { is_held: held, due, revision })
}

fn commits(cluster: &Cluster) -> usize {
    lock(&cluster.machine).store.history().len()
}

fn since_start(at: Time) -> u64 {
    at.since(START).ms()
}

/// Skips to the end of the leases: bulk requests continue only with a retry after that.
fn sleep_until_leases_end(cluster: &mut Cluster) {
    let until = {
        let machine = lock(&cluster.machine);
        let leases = machine.store.rows().values().filter_map(|row| match row.as_ref() {
            Row::Claim(claim) => claim.state.lease().map(|lease| lease.until),
            _ => None,
        });
        leases.max().map(since_start)
    };
    if let Some(until) = until.filter(|until| *until > cluster.executor.now()) {
        cluster.freeze(until);
        cluster.run(until, |_| false);
    }
}

fn used(cluster: &Cluster) -> BTreeSet<Used> {
    let calls = lock(&cluster.calls);
    let keys = calls.iter().filter_map(|call| match call.ask {
        Ask::Charge { tenant, key, .. } => Some(("charge", tenant, key)),
        Ask::Operate { tenant, key, .. } => Some(("operate", tenant, key)),
        Ask::Payout { tenant, key, .. } => Some(("payout", tenant, key)),
        Ask::Ledger { key, .. } => Some(("keep", 1, key)),
        Ask::Look { .. } | Ask::Resolve { .. } => None,
    });
    keys.collect()
}

/// Retries every open key, and removes those with a final answer.
fn ask_all(cluster: &mut Cluster, open: &mut BTreeSet<Used>, round: u64, violations: &mut Vec<Violation>) {
    let processes = cluster.setup.processes.clamp(1, 3);
    let mut asked = Vec::new();
    for (turn, used) in (round..).zip(open.iter().copied()) {
        let (kind, tenant, key) = used;
        let body = body(cluster, used);
        let ask = match kind {
            "charge" => Ask::Charge { tenant, key, body },
            "operate" => Ask::Operate { tenant, key, body },
            "payout" => Ask::Payout { tenant, key, body },
            _ => Ask::Ledger { key, body },
        };
        asked.push((used, body, cluster.ask(turn % processes, ask, None)));
    }
    let crashes = cluster.crashes;
    let mut waiting = asked.iter().map(|(_, _, place)| *place).peekable();
    let until = cluster.executor.now().saturating_add(60_000);
    cluster.run(until, |cluster| {
        let calls = lock(&cluster.calls);
        let returned = |place: &usize| calls.get(*place).is_some_and(|call| call.returned.is_some());
        while waiting.next_if(returned).is_some() {}
        waiting.peek().is_none()
    });
    for (used, said, place) in asked {
        let response = lock(&cluster.calls).get(place).and_then(|call| call.response.clone());
        let is_over = match response {
            // A listed fault has killed or paused the process.
            None if cluster.crashes > crashes || cluster.executor.paused_until().is_some() => false,
            None => {
                let what = format!("{used:?}: a request got no answer within a minute without faults");
                violations.push(Violation::new("liveness", "I9", what));
                true
            }
            Some(Response::Submitted(submitted)) => match submitted {
                Submitted::Answer { .. }
                | Submitted::Expired { .. }
                | Submitted::Invalid(_)
                | Submitted::NotFound => true,
                Submitted::Pending { .. } => is_parked(cluster, used),
                // Parked work locks the payment until an operator decides.
                Submitted::InProgress => is_in_the_way(cluster, used),
                // A claim with the other body was committed late. The next round asks with that
                // body.
                Submitted::Mismatch if body(cluster, used) != said => false,
                Submitted::Mismatch => {
                    let what = format!("{used:?}: the claim's own request got `mismatch`");
                    violations.push(Violation::new("mismatch", "I13", what));
                    true
                }
                Submitted::InUse | Submitted::StoreUnavailable | Submitted::Draining => false,
            },
            // The request names something that was never created.
            Some(_) => true,
        };
        if is_over {
            open.remove(&used);
        }
    }
}

/// Whether the key's work is parked.
fn is_parked(cluster: &Cluster, (kind, tenant, key): Used) -> bool {
    let Some(request) = request(tenant, kind, key, 0, Ulid::from_bytes([0; 16])) else { return false };
    let machine = lock(&cluster.machine);
    let Some(Row::Claim(claim)) = machine.store.find_row(|tenant| RowKey::Claim(tenant, request.claim))
    else {
        return false;
    };
    let work = machine.store.find_row(|tenant| RowKey::Outbox(tenant, claim.subject));
    matches!(work, Some(Row::Outbox(outbox)) if outbox.parked.is_some())
}

/// Whether any work on the operation's charge is parked.
fn is_in_the_way(cluster: &Cluster, (_, tenant, key): Used) -> bool {
    let known = lock(&cluster.known);
    let Some(charge) = known.charges.get(&(tenant, key / OPERATIONS)) else { return false };
    let machine = lock(&cluster.machine);
    let parked = |row: &Row| matches!(row, Row::Outbox(it) if it.payment == Payment::Charge(*charge) && it.parked.is_some());
    machine.store.rows().values().any(|row| parked(row))
}

/// The body of the key's claim, or the first body.
fn body(cluster: &Cluster, (kind, tenant, key): Used) -> u64 {
    let Some(request) = request(tenant, kind, key, 0, Ulid::from_bytes([0; 16])) else { return 0 };
    let machine = lock(&cluster.machine);
    let claimed = match machine.store.find_row(|tenant| RowKey::Claim(tenant, request.claim)) {
        Some(Row::Claim(claim)) => Some(claim.fingerprint),
        _ => None,
    };
    (0..2).find(|body| claimed == Some(fingerprint(kind, key, *body))).unwrap_or(0)
}

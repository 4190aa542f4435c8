//! Reduction: states with the same future are made equal. Without it, passing time and crashes
//! would make the space infinite.
//!
//! - Times are distances from now, no longer than any rule looks back.
//! - A worker whose claim was taken over can commit nothing, and can send nothing after its lease.
//!   It then counts as idle. (Not if the planted defect lets its commits succeed.)
//! - Revisions and fences only identify late writers. Among the others they do not matter.
//! - The history of settled or parked work does not matter. The provider's memory matters while a
//!   request with its key may still arrive.
//! - Workers and keys are interchangeable, and requests in flight have no order.

use crate::provider::Message;
use crate::state::{LEASE, NOW, State, Stored, TICK};
use crate::worker::{AttemptResult, Held, Worker};
use crate::{Bug, Protocol};
use counterfoil_core::idempotency::claim::{Claim, ClaimState, Custody, Lease};
use counterfoil_core::outbox::{History, Outbox};
use counterfoil_core::payments::provider::Rules;
use counterfoil_core::types::time::{Span, Time};
use std::hash::{DefaultHasher, Hash, Hasher};

/// No rule looks further back: the longest finite window has two ticks.
const PAST: Span = Span::from_ms(3 * TICK);
/// Longer windows count as infinite.
const ENDLESS: Span = Span::from_ms(100 * TICK);
const INSTANT: Span = Span::from_ms(1);

impl State {
    /// Lets the time of a lease pass.
    pub(crate) fn pass(&mut self, rules: &Rules) {
        let older = |at: &mut Time| {
            if *at != Time::MAX {
                *at = at.minus(LEASE).max(NOW.minus(PAST));
            }
        };
        for stored in &mut self.stored {
            stored.claim.iter_mut().for_each(|claim| claim_times(claim, older));
            stored.outbox.iter_mut().for_each(|outbox| outbox_times(outbox, older));
        }
        for worker in &mut self.workers {
            if let Some(held) = worker.held_mut() {
                claim_times(&mut held.claim, older);
                outbox_times(&mut held.outbox, older);
            }
            if let Worker::Knowing(
                _,
                AttemptResult::FoundApproved(at)
                | AttemptResult::FoundDeclined(at)
                | AttemptResult::FoundNothing(at)
                | AttemptResult::FoundSeveral(at),
            ) = worker
            {
                older(at);
            }
        }
        self.provider.memory.values_mut().for_each(|(_, since)| older(since));
        self.wire.iter_mut().for_each(|message| older(&mut message.sent_at));
        self.wire.retain(|message| NOW <= message.sent_at.plus(rules.late_delivery));
    }

    /// Maps a state to the representative of all states with the same future.
    pub(crate) fn reduce(&mut self, model: &Protocol) {
        let forgets = model.profile.rules.dedup_window.is_some_and(|window| window < ENDLESS);
        if model.bug != Some(Bug::NoCompareAndSwap) {
            self.drop_the_late();
        }
        for message in &mut self.wire {
            let waits = |worker: usize| {
                matches!(self.workers.get(worker), Some(Worker::Waiting(held))
                    if held.key == message.key && held.outbox.history.generation == message.generation)
            };
            message.worker = message.worker.filter(|worker| waits(*worker));
        }
        for stored in &mut self.stored {
            stored.forget();
            stored.outbox.iter_mut().for_each(|outbox| history(&mut outbox.history, forgets));
        }
        for worker in &mut self.workers {
            if let Some(held) = worker.held_mut() {
                (held.claim.created_at, held.outbox.created_at) = (Time::EPOCH, Time::EPOCH);
                history(&mut held.outbox.history, forgets);
            }
        }
        if !forgets {
            self.provider.memory.values_mut().for_each(|(_, since)| *since = NOW);
        }
        self.forget_at_provider();
        self.arrange();
    }

    /// Makes workers without a claim and without a pending send idle. Active workers get the stored
    /// revision.
    fn drop_the_late(&mut self) {
        for worker in &mut self.workers {
            let Some(held) = worker.held_mut() else { continue };
            let Some(stored) = self.stored.get(held.key) else { continue };
            let same = stored.claim.as_ref().is_some_and(|claim| claim.revision == held.claim.revision)
                && stored.outbox.as_ref().is_some_and(|outbox| outbox.revision == held.outbox.revision);
            let revision = u64::from(same).saturating_add(1);
            (held.claim.revision, held.claim.fence, held.outbox.revision) = (revision, 1, revision);
            let in_time = held.claim.state.lease().is_some_and(|lease| !lease.is_over(NOW));
            let may_send = in_time && matches!(worker, Worker::Holding(_));
            if !same && !may_send {
                *worker = Worker::Idle;
            }
        }
        for stored in &mut self.stored {
            if let Some(claim) = &mut stored.claim {
                (claim.revision, claim.fence) = (2, 1);
            }
            if let Some(outbox) = &mut stored.outbox {
                outbox.revision = 2;
            }
        }
    }

    /// Drops the provider's memory of keys without a request in flight or to come.
    fn forget_at_provider(&mut self) {
        let (stored, wire, workers) = (&self.stored, &self.wire, &self.workers);
        self.provider.memory.retain(|(key, generation), _| {
            let coming = |message: &Message| message.key == *key && message.generation == *generation;
            let held = |worker: &Worker| {
                worker
                    .held()
                    .is_some_and(|held| held.key == *key && held.outbox.history.generation == *generation)
            };
            let current = stored.get(*key).and_then(|stored| stored.outbox.as_ref());
            let current = current
                .is_some_and(|outbox| outbox.parked.is_none() && outbox.history.generation == *generation);
            current || wire.iter().any(coming) || workers.iter().any(held)
        });
        for (key, declined) in self.provider.declined.iter_mut().enumerate() {
            let open = stored.get(key).and_then(|stored| stored.outbox.as_ref());
            let held = |worker: &Worker| worker.held().is_some_and(|held| held.key == key);
            *declined &= open.is_some_and(|outbox| outbox.parked.is_none()) || workers.iter().any(held);
        }
    }

    /// Sorts keys, workers and requests by their state alone.
    fn arrange(&mut self) {
        let mut keys: Vec<(u64, usize)> = (0..self.stored.len()).map(|key| (self.print(key), key)).collect();
        keys.sort_unstable();
        let place = |key: usize| keys.iter().position(|(_, old)| *old == key).unwrap_or(key);
        let order = |old: usize| keys.get(old).map_or(old, |(_, old)| *old);
        if keys.iter().enumerate().any(|(new, (_, old))| new != *old) {
            let (stored, provider) = (self.stored.clone(), self.provider.clone());
            for new in 0..stored.len() {
                if let (Some(to), Some(from)) = (self.stored.get_mut(new), stored.get(order(new))) {
                    to.clone_from(from);
                }
                if let (Some(to), Some(from)) =
                    (self.provider.effects.get_mut(new), provider.effects.get(order(new)))
                {
                    *to = *from;
                }
                if let (Some(to), Some(from)) =
                    (self.provider.declined.get_mut(new), provider.declined.get(order(new)))
                {
                    *to = *from;
                }
            }
            let memory = provider.memory.into_iter();
            self.provider.memory =
                memory.map(|((key, generation), kept)| ((place(key), generation), kept)).collect();
            for held in self.workers.iter_mut().filter_map(Worker::held_mut) {
                held.key = place(held.key);
            }
            for message in &mut self.wire {
                message.key = place(message.key);
            }
        }
        let mut workers: Vec<(u64, usize)> = (0..self.workers.len())
            .map(|worker| (sum(&(self.workers.get(worker), self.awaited(worker))), worker))
            .collect();
        workers.sort_unstable();
        let old = self.workers.clone();
        for (to, (_, from)) in self.workers.iter_mut().zip(&workers) {
            if let Some(from) = old.get(*from) {
                to.clone_from(from);
            }
        }
        for message in &mut self.wire {
            message.worker =
                message.worker.and_then(|worker| workers.iter().position(|(_, old)| *old == worker));
        }
        self.wire.sort_unstable();
    }

    /// The requests awaited by a worker.
    fn awaited(&self, worker: usize) -> Vec<(usize, u16, Time)> {
        let own = self.wire.iter().filter(|message| message.worker == Some(worker));
        let mut own: Vec<_> = own.map(|message| (message.key, message.generation, message.sent_at)).collect();
        own.sort_unstable();
        own
    }

    /// A hash of a key's state, independent of the key's number.
    fn print(&self, key: usize) -> u64 {
        let memory = self.provider.memory.iter().filter(|((of, _), _)| *of == key);
        let memory: Vec<_> = memory.map(|((_, generation), kept)| (*generation, *kept)).collect();
        let wire = self.wire.iter().filter(|message| message.key == key);
        let mut wire: Vec<_> =
            wire.map(|message| (message.generation, message.sent_at, message.worker.is_some())).collect();
        wire.sort_unstable();
        let workers = self.workers.iter().filter_map(|worker| match worker {
            Worker::Idle => None,
            Worker::Holding(held) => Some((0, held, None)),
            Worker::Waiting(held) => Some((1, held, None)),
            Worker::Knowing(held, result) => Some((2, held, Some(*result))),
        });
        let workers = workers.filter(|(_, held, _)| held.key == key);
        let mut workers: Vec<u64> =
            workers.map(|(doing, held, result)| sum(&(doing, &held.claim, &held.outbox, result))).collect();
        workers.sort_unstable();
        let (effects, declined) = (self.provider.effects(key), self.provider.has_declined(key));
        sum(&(self.stored.get(key), effects, declined, memory, wire, workers))
    }
}

impl Stored {
    /// Drops parts of a settled or parked claim that no rule reads.
    fn forget(&mut self) {
        let Some(claim) = &mut self.claim else { return };
        claim.created_at = Time::EPOCH;
        let Some(outbox) = &mut self.outbox else {
            claim.attempts = 0;
            return;
        };
        outbox.created_at = Time::EPOCH;
        if outbox.parked.is_some() {
            claim.attempts = 0;
            outbox.history = History::begun(NOW);
        }
    }
}

impl Worker {
    pub(crate) fn held(&self) -> Option<&Held> {
        match self {
            Worker::Idle => None,
            Worker::Holding(held) | Worker::Waiting(held) | Worker::Knowing(held, _) => Some(held),
        }
    }

    fn held_mut(&mut self) -> Option<&mut Held> {
        match self {
            Worker::Idle => None,
            Worker::Holding(held) | Worker::Waiting(held) | Worker::Knowing(held, _) => Some(held),
        }
    }
}

fn claim_times(claim: &mut Claim, older: impl Fn(&mut Time)) {
    match &mut claim.state {
        ClaimState::InFlight(lease) | ClaimState::Uncertain(Custody::Held(lease)) => {
            older(&mut lease.until);
            older(&mut lease.ceiling);
            end(lease);
        }
        ClaimState::FailedRetry { not_before } | ClaimState::Uncertain(Custody::Waiting { not_before }) => {
            older(not_before);
            *not_before = (*not_before).max(NOW);
        }
        ClaimState::Completed(_) | ClaimState::FailedTerminal(_) | ClaimState::Expired { .. } => {}
    }
}

/// An expired lease matters only by whether it could still be renewed.
fn end(lease: &mut Lease) {
    if lease.is_over(NOW) {
        let renewable = lease.until < lease.ceiling;
        lease.ceiling = lease.ceiling.max(NOW);
        lease.until = if renewable { NOW.minus(INSTANT) } else { NOW };
    }
}

fn outbox_times(outbox: &mut Outbox, older: impl Fn(&mut Time)) {
    older(&mut outbox.due_at);
    outbox.due_at = outbox.due_at.max(NOW);
    older(&mut outbox.history.first_sent_at);
    older(&mut outbox.history.last_sent_at);
}

/// The times of calls matter only if the provider forgets keys, or if a request may still arrive.
fn history(history: &mut History, forgets: bool) {
    if !forgets {
        history.first_sent_at = NOW;
    }
    if !history.unknown {
        history.last_sent_at = NOW;
    }
}

fn sum(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

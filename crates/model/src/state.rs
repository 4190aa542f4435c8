//! One state of the modelled world.

use crate::Protocol;
use crate::provider::{Message, Provider};
use crate::worker::Worker;
use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::outbox::Outbox;
use counterfoil_core::types::time::{Span, Time};

pub const WORKERS: usize = 3;
/// Milliseconds of one tick: a whole lease.
pub(crate) const TICK: u64 = 10;
/// The time of every state. When a lease's time passes, everything else moves into the past.
pub(crate) const NOW: Time = Time::from_ms(1_000);
pub(crate) const LEASE: Span = Span::from_ms(TICK);

/// A state of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The stored rows of each key.
    pub(crate) stored: Vec<Stored>,
    pub(crate) workers: [Worker; WORKERS],
    pub(crate) provider: Provider,
    /// Requests in flight to the provider.
    pub(crate) wire: Vec<Message>,
}

/// The stored rows of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    pub(crate) claim: Option<Claim>,
    pub(crate) outbox: Option<Outbox>,
    /// Set once the key was answered.
    pub(crate) answered: bool,
}

impl State {
    pub(crate) fn start(keys: usize) -> State {
        State {
            stored: vec![Stored::default(); keys],
            workers: [const { Worker::Idle }; WORKERS],
            provider: Provider::new(keys),
            wire: Vec::new(),
        }
    }

    fn keys(&self) -> impl Iterator<Item = (usize, &Stored)> {
        self.stored.iter().enumerate()
    }

    pub(crate) fn effects_are_single(&self) -> bool {
        self.keys().all(|(key, _)| self.provider.effects(key) <= 1)
    }

    pub(crate) fn completed_have_their_effect(&self) -> bool {
        self.keys().all(|(key, stored)| {
            let completed = matches!(state_of(stored), Some(ClaimState::Completed(_)));
            !completed || self.provider.effects(key) == 1
        })
    }

    pub(crate) fn failed_have_none(&self, model: &Protocol) -> bool {
        self.keys().all(|(key, stored)| {
            let failed = matches!(state_of(stored), Some(ClaimState::FailedTerminal(_)));
            let late = self.wire.iter().any(|message| {
                message.key == key && self.provider.would_execute(message, &model.profile.rules, NOW)
            });
            !failed || (self.provider.effects(key) == 0 && !late)
        })
    }

    pub(crate) fn work_is_kept(&self) -> bool {
        self.keys().all(|(_, stored)| {
            let settled = state_of(stored).is_none_or(|state| state.settled().is_some());
            settled == stored.outbox.is_none()
        })
    }

    pub(crate) fn answers_stay(&self) -> bool {
        self.keys().all(|(_, stored)| {
            !stored.answered || state_of(stored).is_some_and(|state| state.settled().is_some())
        })
    }

    /// The number of busy workers.
    pub(crate) fn busy(&self) -> usize {
        self.workers.iter().filter(|worker| **worker != Worker::Idle).count()
    }

    pub(crate) fn all_completed(&self) -> bool {
        self.keys().all(|(_, stored)| matches!(state_of(stored), Some(ClaimState::Completed(_))))
    }
}

fn state_of(stored: &Stored) -> Option<&ClaimState> {
    stored.claim.as_ref().map(|claim| &claim.state)
}

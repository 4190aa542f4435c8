//! The protocol of claims, leases, fences and provider keys as a model whose whole state space is walked.
//!
//! What is modelled is the world: workers that crash at any moment or sleep past their leases, a provider that executes
//! late, twice, or answers with errors, messages and answers that are lost. What decides is the product itself: the
//! core's `decide`, `next`, `judge_outcome`, `judge_query`, `take_over` and `Claim::on`, and the store's judge. A
//! [`Bug`] may be planted to see that the check would notice.
//!
//! Leaves out: bytes, HTTP, windows and expiry, and everything with more than the bounds of [`Protocol`].

mod actions;
mod pairs;
mod profiles;
mod provider;
mod reduce;
mod state;
mod worker;

pub use pairs::{Pairs, pairs};
pub use profiles::{PROFILES, Profile};
pub use state::{State, WORKERS};

use stateright::{Model, Property};

/// A defect to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    /// Commits do not compare revisions: the last writer wins.
    NoCompareAndSwap,
    /// The provider is called again whatever is known.
    BlindRepetition,
    /// "Not found" is taken for proof at once.
    HastyProof,
    /// Work is taken over while its lease still runs, and nothing is assumed of who held it.
    LeaseIgnored,
    /// An unknown outcome is told as a failure.
    UnknownIsFailure,
    /// Every attempt has a provider key of its own.
    FreshKeyPerAttempt,
}

/// The model.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// Keys that clients use, 1 or 2.
    pub keys: usize,
    /// The provider's contract.
    pub profile: Profile,
    /// A defect, if one is planted.
    pub bug: Option<Bug>,
}

impl Model for Protocol {
    type State = State;
    type Action = actions::Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::start(self.keys)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Self::Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, state: &State, action: Self::Action) -> Option<State> {
        self.after(state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most one effect per key", |_, state: &State| state.effects_are_single()),
            Property::always("completed means exactly one effect", |_, state: &State| {
                state.completed_have_their_effect()
            }),
            Property::always("failed means no effect, now or later", |model: &Protocol, state: &State| {
                state.failed_have_none(model)
            }),
            Property::always("work is there until its claim is settled", |_, state: &State| {
                state.work_is_kept()
            }),
            Property::always("an answer stays", |_, state: &State| state.answers_stay()),
            Property::sometimes("every key is completed", |_, state: &State| state.all_completed()),
        ]
    }
}

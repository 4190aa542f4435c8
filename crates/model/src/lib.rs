//! A model of the protocol of claims, leases, fences and provider keys. The checker walks its whole
//! state space.
//!
//! The model covers the environment: workers that crash at any moment or sleep past their leases; a
//! provider that executes late, twice, or answers with errors; lost messages and answers. The
//! decisions are the product's own: `decide`, `next`, `judge_outcome`, `judge_query`, `take_over`
//! and `Claim::on` of the core, and the store's judge. A planted [`Bug`] shows that the check finds
//! defects.
//!
//! The model omits bytes, HTTP, windows, expiry, and everything beyond the bounds of [`Protocol`].

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
    /// The provider is called again without regard to the history.
    BlindRepetition,
    /// "Not found" counts as proof at once.
    HastyProof,
    /// Work is taken over during its lease, and nothing is assumed about the old holder.
    LeaseIgnored,
    /// An unknown outcome is reported as a failure.
    UnknownIsFailure,
    /// Every attempt has its own provider key.
    FreshKeyPerAttempt,
}

#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// Keys that clients use, 1 or 2.
    pub keys: usize,
    /// The provider's contract.
    pub profile: Profile,
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

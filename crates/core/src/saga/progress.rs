//! How far a saga has come, and the one function that moves it.
//!
//! A step that cannot be done turns the saga round: what was done is undone in reverse order. A deed that undoes and
//! cannot be done ends in the hands of a human. Whether a deed was done is the caller's to know; a deed whose outcome is
//! unknown has not happened yet, and the saga stays where it is.

use super::definition::SagaDefinition;

/// Where a saga stands: which deed is next. Stored with every step's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SagaProgress {
    /// The step, from 0.
    pub step: u8,
    /// Doing or undoing.
    pub way: Direction,
}

/// The direction of a saga.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Doing.
    Forward,
    /// Undoing.
    Back,
}

impl Direction {
    /// The word in stores and timelines.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Back => "back",
        }
    }

    /// The way of that name.
    pub fn parse(name: &str) -> Option<Direction> {
        [Direction::Forward, Direction::Back].into_iter().find(|way| way.name() == name)
    }
}

/// What became of the deed that was next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// It was done.
    Done,
    /// It was certainly not done, and will not be.
    Failed,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAction<D> {
    /// This deed is next.
    Do(D, SagaProgress),
    /// All steps were done.
    Completed,
    /// A step failed, and everything before it was undone.
    Undone,
    /// A deed that undoes could not be done: only a human can go on.
    Stuck(D),
}

impl SagaProgress {
    /// Before the first step.
    pub const START: SagaProgress = SagaProgress { step: 0, way: Direction::Forward };
}

/// The deed that is next; nothing if the definition has no such step.
pub fn action<D: Copy>(definition: &SagaDefinition<D>, progress: SagaProgress) -> Option<D> {
    let stage = definition.steps.get(usize::from(progress.step))?;
    match progress.way {
        Direction::Forward => Some(stage.action),
        Direction::Back => stage.undo,
    }
}

/// What follows when the deed at `progress` has happened. The one transition function.
pub fn next<D: Copy>(
    definition: &SagaDefinition<D>,
    progress: SagaProgress,
    happened: StepResult,
) -> Option<NextAction<D>> {
    let current = action(definition, progress)?;
    Some(match (progress.way, happened) {
        (Direction::Forward, StepResult::Done) => {
            let after = SagaProgress { step: progress.step.checked_add(1)?, way: Direction::Forward };
            action(definition, after).map_or(NextAction::Completed, |action| NextAction::Do(action, after))
        }
        (Direction::Forward, StepResult::Failed) | (Direction::Back, StepResult::Done) => {
            before(definition, progress.step)
        }
        (Direction::Back, StepResult::Failed) => NextAction::Stuck(current),
    })
}

/// The last step before `step` that has something to undo.
fn before<D: Copy>(definition: &SagaDefinition<D>, step: u8) -> NextAction<D> {
    (0..step)
        .rev()
        .map(|step| SagaProgress { step, way: Direction::Back })
        .find_map(|progress| action(definition, progress).map(|action| NextAction::Do(action, progress)))
        .unwrap_or(NextAction::Undone)
}

#[cfg(test)]
mod tests {
    use super::super::definition::Stage;
    use super::*;
    use proptest::prelude::*;

    /// Reserve, authorize, tell (nothing to undo), capture.
    const SALE: SagaDefinition<&str> = SagaDefinition {
        name: "sale",
        version: 1,
        steps: &[
            Stage { action: "reserve", undo: Some("release") },
            Stage { action: "authorize", undo: Some("void") },
            Stage { action: "tell", undo: None },
            Stage { action: "capture", undo: Some("refund") },
        ],
    };

    /// The deeds of a run in which the deeds named fail, and how it ended.
    fn run(failing: &[&str]) -> (Vec<&'static str>, NextAction<&'static str>) {
        let (mut actions, mut at) = (Vec::new(), SagaProgress::START);
        loop {
            let action = action(&SALE, at).unwrap();
            actions.push(action);
            let happened = if failing.contains(&action) { StepResult::Failed } else { StepResult::Done };
            match next(&SALE, at, happened).unwrap() {
                NextAction::Do(_, after) => at = after,
                end => return (actions, end),
            }
        }
    }

    #[test]
    fn all_steps_in_order() {
        assert_eq!(run(&[]), (vec!["reserve", "authorize", "tell", "capture"], NextAction::Completed));
    }

    #[test]
    fn a_failure_at_each_step_undoes_what_was_done_in_reverse() {
        assert_eq!(run(&["reserve"]), (vec!["reserve"], NextAction::Undone));
        assert_eq!(run(&["authorize"]), (vec!["reserve", "authorize", "release"], NextAction::Undone));
        assert_eq!(
            run(&["tell"]),
            (vec!["reserve", "authorize", "tell", "void", "release"], NextAction::Undone)
        );
        assert_eq!(
            run(&["capture"]),
            (vec!["reserve", "authorize", "tell", "capture", "void", "release"], NextAction::Undone)
        );
    }

    #[test]
    fn a_compensation_that_fails_is_a_humans() {
        assert_eq!(run(&["capture", "void"]).1, NextAction::Stuck("void"));
        assert_eq!(run(&["tell", "release"]).1, NextAction::Stuck("release"));
    }

    #[test]
    fn what_is_not_there_is_no_step() {
        let beyond = SagaProgress { step: 4, way: Direction::Forward };
        assert_eq!(next(&SALE, beyond, StepResult::Done), None);
        assert_eq!(
            next(&SALE, SagaProgress { step: 2, way: Direction::Back }, StepResult::Done),
            None,
            "nothing to undo"
        );
        assert_eq!(
            next(&SALE, SagaProgress { step: u8::MAX, way: Direction::Forward }, StepResult::Done),
            None
        );
    }

    proptest! {
        /// Whatever fails, every deed done before the failure is undone exactly once, youngest first, and it ends.
        #[test]
        fn every_run_ends_and_undoes_each_step_once(fails in prop::collection::vec(any::<bool>(), 8)) {
            let (mut at, mut done, mut steps) = (SagaProgress::START, Vec::new(), 0);
            let end = loop {
                let failed = fails[usize::from(at.step) + if at.way == Direction::Back { 4 } else { 0 }];
                if !failed {
                    match at.way {
                        Direction::Forward => done.push(at.step),
                        Direction::Back => prop_assert_eq!(done.iter().rev().find(|step| SALE.steps[usize::from(**step)].undo.is_some()), Some(&at.step)),
                    }
                    if at.way == Direction::Back { done.retain(|step| *step < at.step); }
                }
                steps += 1;
                match next(&SALE, at, if failed { StepResult::Failed } else { StepResult::Done }).unwrap() {
                    NextAction::Do(_, after) => at = after,
                    end => break end,
                }
            };
            prop_assert!(steps <= 8);
            if end == NextAction::Undone {
                prop_assert!(done.iter().all(|step| SALE.steps[usize::from(*step)].undo.is_none()));
            }
        }
    }
}

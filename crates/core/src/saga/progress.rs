//! The progress of a saga, and the only function for advancing a saga.
//!
//! A failed step turns the saga around: completed steps are undone in reverse order. A failed
//! compensation needs a human. The caller decides whether an action is done. While an outcome is
//! unknown, the saga keeps its position.

use super::definition::SagaDefinition;

/// The position of a saga: its next action. Stored together with every step's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SagaProgress {
    pub step: u8,
    pub way: Direction,
}

/// The direction of a saga.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    Forward,
    /// Undoing completed steps.
    Back,
}

impl Direction {
    /// The name in stores and timelines.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Back => "back",
        }
    }

    pub fn parse(name: &str) -> Option<Direction> {
        [Direction::Forward, Direction::Back].into_iter().find(|way| way.name() == name)
    }
}

/// The result of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    Done,
    /// The action certainly had no effect and never will.
    Failed,
}

/// The next action of a saga.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAction<D> {
    Do(D, SagaProgress),
    /// All steps are done.
    Completed,
    /// A step failed, and all earlier steps are undone.
    Undone,
    /// A compensation failed: only a human can continue.
    Stuck(D),
}

impl SagaProgress {
    /// The first step.
    pub const START: SagaProgress = SagaProgress { step: 0, way: Direction::Forward };
}

/// The action at that position; `None` if the definition has no such step.
pub fn action<D: Copy>(definition: &SagaDefinition<D>, progress: SagaProgress) -> Option<D> {
    let stage = definition.steps.get(usize::from(progress.step))?;
    match progress.way {
        Direction::Forward => Some(stage.action),
        Direction::Back => stage.undo,
    }
}

/// The transition after a result. All progress of sagas goes through this function.
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

/// The compensation of the last undoable step before `step`.
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

    /// Reserve, authorize, notify (without a compensation), capture.
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

    /// Runs a saga in which the named actions fail. Returns the actions and the end.
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
    fn a_failure_undoes_completed_steps_in_reverse() {
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
    fn a_failed_compensation_is_stuck() {
        assert_eq!(run(&["capture", "void"]).1, NextAction::Stuck("void"));
        assert_eq!(run(&["tell", "release"]).1, NextAction::Stuck("release"));
    }

    #[test]
    fn a_position_outside_the_definition_has_no_action() {
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
        /// Every run ends. Every step completed before a failure is undone exactly once, latest
        /// first.
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

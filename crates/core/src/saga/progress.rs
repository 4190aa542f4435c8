//! How far a saga has come, and the one function that moves it.
//!
//! A step that cannot be done turns the saga round: what was done is undone in reverse order. A deed that undoes and
//! cannot be done ends in the hands of a human. Whether a deed was done is the caller's to know; a deed whose outcome is
//! unknown has not happened yet, and the saga stays where it is.

use super::definition::Definition;

/// Where a saga stands: which deed is next. Stored with every step's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    /// The step, from 0.
    pub step: u8,
    /// Doing or undoing.
    pub way: Way,
}

/// The direction of a saga.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Doing.
    Forward,
    /// Undoing.
    Back,
}

impl Way {
    /// The word in stores and timelines.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Forward => "forward",
            Way::Back => "back",
        }
    }

    /// The way of that name.
    pub fn parse(name: &str) -> Option<Way> {
        [Way::Forward, Way::Back].into_iter().find(|way| way.name() == name)
    }
}

/// What became of the deed that was next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It was done.
    Done,
    /// It was certainly not done, and will not be.
    Failed,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<D> {
    /// This deed is next.
    Do(D, Progress),
    /// All steps were done.
    Completed,
    /// A step failed, and everything before it was undone.
    Undone,
    /// A deed that undoes could not be done: only a human can go on.
    Stuck(D),
}

impl Progress {
    /// Before the first step.
    pub const START: Progress = Progress { step: 0, way: Way::Forward };
}

/// The deed that is next; nothing if the definition has no such step.
pub fn action<D: Copy>(definition: &Definition<D>, progress: Progress) -> Option<D> {
    let stage = definition.steps.get(usize::from(progress.step))?;
    match progress.way {
        Way::Forward => Some(stage.action),
        Way::Back => stage.undo,
    }
}

/// What follows when the deed at `progress` has happened. The one transition function.
pub fn next<D: Copy>(definition: &Definition<D>, progress: Progress, happened: Happened) -> Option<Next<D>> {
    let current = action(definition, progress)?;
    Some(match (progress.way, happened) {
        (Way::Forward, Happened::Done) => {
            let after = Progress { step: progress.step.checked_add(1)?, way: Way::Forward };
            action(definition, after).map_or(Next::Completed, |action| Next::Do(action, after))
        }
        (Way::Forward, Happened::Failed) | (Way::Back, Happened::Done) => before(definition, progress.step),
        (Way::Back, Happened::Failed) => Next::Stuck(current),
    })
}

/// The last step before `step` that has something to undo.
fn before<D: Copy>(definition: &Definition<D>, step: u8) -> Next<D> {
    (0..step)
        .rev()
        .map(|step| Progress { step, way: Way::Back })
        .find_map(|progress| action(definition, progress).map(|action| Next::Do(action, progress)))
        .unwrap_or(Next::Undone)
}

#[cfg(test)]
mod tests {
    use super::super::definition::Stage;
    use super::*;
    use proptest::prelude::*;

    /// Reserve, authorize, tell (nothing to undo), capture.
    const SALE: Definition<&str> = Definition {
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
    fn run(failing: &[&str]) -> (Vec<&'static str>, Next<&'static str>) {
        let (mut actions, mut at) = (Vec::new(), Progress::START);
        loop {
            let action = action(&SALE, at).unwrap();
            actions.push(action);
            let happened = if failing.contains(&action) { Happened::Failed } else { Happened::Done };
            match next(&SALE, at, happened).unwrap() {
                Next::Do(_, after) => at = after,
                end => return (actions, end),
            }
        }
    }

    #[test]
    fn all_steps_in_order() {
        assert_eq!(run(&[]), (vec!["reserve", "authorize", "tell", "capture"], Next::Completed));
    }

    #[test]
    fn a_failure_at_each_step_undoes_what_was_done_in_reverse() {
        assert_eq!(run(&["reserve"]), (vec!["reserve"], Next::Undone));
        assert_eq!(run(&["authorize"]), (vec!["reserve", "authorize", "release"], Next::Undone));
        assert_eq!(run(&["tell"]), (vec!["reserve", "authorize", "tell", "void", "release"], Next::Undone));
        assert_eq!(
            run(&["capture"]),
            (vec!["reserve", "authorize", "tell", "capture", "void", "release"], Next::Undone)
        );
    }

    #[test]
    fn a_compensation_that_fails_is_a_humans() {
        assert_eq!(run(&["capture", "void"]).1, Next::Stuck("void"));
        assert_eq!(run(&["tell", "release"]).1, Next::Stuck("release"));
    }

    #[test]
    fn what_is_not_there_is_no_step() {
        let beyond = Progress { step: 4, way: Way::Forward };
        assert_eq!(next(&SALE, beyond, Happened::Done), None);
        assert_eq!(
            next(&SALE, Progress { step: 2, way: Way::Back }, Happened::Done),
            None,
            "nothing to undo"
        );
        assert_eq!(next(&SALE, Progress { step: u8::MAX, way: Way::Forward }, Happened::Done), None);
    }

    proptest! {
        /// Whatever fails, every deed done before the failure is undone exactly once, youngest first, and it ends.
        #[test]
        fn every_run_ends_and_undoes_each_step_once(fails in prop::collection::vec(any::<bool>(), 8)) {
            let (mut at, mut done, mut steps) = (Progress::START, Vec::new(), 0);
            let end = loop {
                let failed = fails[usize::from(at.step) + if at.way == Way::Back { 4 } else { 0 }];
                if !failed {
                    match at.way {
                        Way::Forward => done.push(at.step),
                        Way::Back => prop_assert_eq!(done.iter().rev().find(|step| SALE.steps[usize::from(**step)].undo.is_some()), Some(&at.step)),
                    }
                    if at.way == Way::Back { done.retain(|step| *step < at.step); }
                }
                steps += 1;
                match next(&SALE, at, if failed { Happened::Failed } else { Happened::Done }).unwrap() {
                    Next::Do(_, after) => at = after,
                    end => break end,
                }
            };
            prop_assert!(steps <= 8);
            if end == Next::Undone {
                prop_assert!(done.iter().all(|step| SALE.steps[usize::from(*step)].undo.is_none()));
            }
        }
    }
}

//! The flows as sagas: which deeds, in which order, and what undoes each.
//!
//! A definition that was released is never changed: a new version is added beside it, and work that began under the old
//! one ends under it.

use super::provider::ProviderStep;
use crate::outbox::{Flow, Saga};
use crate::saga::definition::{SagaDefinition, Stage, find, latest};
use crate::saga::progress::{self, Direction, NextAction, SagaProgress, StepResult};

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SagaAction {
    /// Asks the provider for a step; it is committed before it is asked, and again with the answer.
    Call(ProviderStep),
    /// Reserves money in the ledger, in the set that leads past it.
    Reserve,
    /// Frees what was reserved, in the set that leads past it.
    Release,
    /// Posts what happened, in the set that leads past it.
    Post,
}

const fn stage(action: SagaAction, undo: Option<SagaAction>) -> Stage<SagaAction> {
    Stage { action, undo }
}

/// Every definition there ever was.
pub const DEFINITIONS: [SagaDefinition<SagaAction>; 9] = [
    SagaDefinition {
        name: Flow::Charge.name(),
        version: 1,
        steps: &[stage(SagaAction::Call(ProviderStep::Charge), None), stage(SagaAction::Post, None)],
    },
    SagaDefinition {
        name: Flow::Charge.name(),
        version: 2,
        steps: &[
            stage(SagaAction::Call(ProviderStep::Charge), Some(SagaAction::Call(ProviderStep::Void))),
            stage(SagaAction::Post, None),
        ],
    },
    SagaDefinition {
        name: Flow::Authorize.name(),
        version: 1,
        steps: &[stage(SagaAction::Call(ProviderStep::Authorize), None)],
    },
    SagaDefinition {
        name: Flow::Authorize.name(),
        version: 2,
        steps: &[stage(
            SagaAction::Call(ProviderStep::Authorize),
            Some(SagaAction::Call(ProviderStep::Void)),
        )],
    },
    SagaDefinition {
        name: Flow::Split.name(),
        version: 1,
        steps: &[
            stage(SagaAction::Reserve, Some(SagaAction::Release)),
            stage(SagaAction::Call(ProviderStep::Authorize), Some(SagaAction::Call(ProviderStep::Void))),
            stage(SagaAction::Call(ProviderStep::Capture), None),
            stage(SagaAction::Post, None),
        ],
    },
    SagaDefinition {
        name: Flow::Capture.name(),
        version: 1,
        steps: &[stage(SagaAction::Call(ProviderStep::Capture), None), stage(SagaAction::Post, None)],
    },
    SagaDefinition {
        name: Flow::Void.name(),
        version: 1,
        steps: &[stage(SagaAction::Call(ProviderStep::Void), None)],
    },
    SagaDefinition {
        name: Flow::Refund.name(),
        version: 1,
        steps: &[
            stage(SagaAction::Reserve, Some(SagaAction::Release)),
            stage(SagaAction::Call(ProviderStep::Refund), None),
            stage(SagaAction::Post, None),
        ],
    },
    SagaDefinition {
        name: Flow::Payout.name(),
        version: 1,
        steps: &[
            stage(SagaAction::Reserve, Some(SagaAction::Release)),
            stage(SagaAction::Call(ProviderStep::Payout), None),
            stage(SagaAction::Post, None),
        ],
    },
];

/// From one call to the next: what is done in the ledger on the way, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// In order; all of it belongs into the set that makes the turn.
    pub ledger: Vec<SagaAction>,
    /// What follows.
    pub onward: AfterStep,
}

/// Where a saga goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterStep {
    /// The provider is asked for this step.
    Call(ProviderStep, Saga),
    /// Everything was done.
    Completed,
    /// A step was refused, and everything before it was undone.
    Undone,
    /// What should undo a step was refused: only a human can go on.
    Stuck,
}

/// How a saga of that flow begins, under its youngest definition.
pub fn begin(flow: Flow) -> Option<Transition> {
    let definition = latest(&DEFINITIONS, flow.name())?;
    let first = progress::action(&definition, SagaProgress::START)?;
    walk(flow, &definition, NextAction::Do(first, SagaProgress::START))
}

/// The step a saga stands at; nothing if this build does not know its definition.
pub fn step(saga: Saga) -> Option<ProviderStep> {
    match progress::action(&find(&DEFINITIONS, saga.flow.name(), saga.version)?, saga.progress)? {
        SagaAction::Call(step) => Some(step),
        SagaAction::Reserve | SagaAction::Release | SagaAction::Post => None,
    }
}

/// What follows when the step a saga stands at has happened; nothing if this build does not know its definition.
pub fn turn(saga: Saga, happened: StepResult) -> Option<Transition> {
    let definition = find(&DEFINITIONS, saga.flow.name(), saga.version)?;
    walk(saga.flow, &definition, progress::next(&definition, saga.progress, happened)?)
}

/// The saga turned round, so that what the provider holds for it is given up next; nothing where that is not in its
/// definition, or it is on its way back already.
pub fn give_up(saga: Saga) -> Option<Saga> {
    let definition = find(&DEFINITIONS, saga.flow.name(), saga.version)?;
    let void = Some(SagaAction::Call(ProviderStep::Void));
    (0..=saga.progress.step)
        .rev()
        .map(|step| SagaProgress { step, way: Direction::Back })
        .find(|back| saga.progress.way == Direction::Forward && progress::action(&definition, *back) == void)
        .map(|progress| Saga { progress, ..saga })
}

/// Goes on over what the ledger do, up to the next call or the end.
fn walk(
    flow: Flow,
    definition: &SagaDefinition<SagaAction>,
    mut next: NextAction<SagaAction>,
) -> Option<Transition> {
    let mut ledger = Vec::new();
    loop {
        let onward = match next {
            NextAction::Do(SagaAction::Call(step), progress) => {
                AfterStep::Call(step, Saga { flow, version: definition.version, progress })
            }
            NextAction::Do(
                action @ (SagaAction::Reserve | SagaAction::Release | SagaAction::Post),
                progress,
            ) => {
                ledger.push(action);
                next = progress::next(definition, progress, StepResult::Done)?;
                continue;
            }
            NextAction::Completed => AfterStep::Completed,
            NextAction::Undone => AfterStep::Undone,
            NextAction::Stuck(_) => AfterStep::Stuck,
        };
        return Some(Transition { ledger, onward });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::FLOWS;

    fn called(turn: &Transition) -> Saga {
        match turn.onward {
            AfterStep::Call(_, saga) => saga,
            AfterStep::Completed | AfterStep::Undone | AfterStep::Stuck => panic!("{turn:?}"),
        }
    }

    #[test]
    fn every_flow_begins_with_a_call_and_every_call_leads_on_or_ends() {
        for flow in FLOWS {
            let mut open = vec![called(&begin(flow).unwrap())];
            let mut seen = 0;
            while let Some(saga) = open.pop() {
                assert!(step(saga).is_some(), "{saga:?}");
                seen += 1;
                assert!(seen < 20, "{flow:?} does not end");
                for happened in [StepResult::Done, StepResult::Failed] {
                    match turn(saga, happened).unwrap().onward {
                        AfterStep::Call(_, next) => open.push(next),
                        AfterStep::Completed | AfterStep::Undone | AfterStep::Stuck => {}
                    }
                }
            }
        }
    }

    #[test]
    fn a_refund_and_a_payout_reserve_first_and_release_when_they_are_refused() {
        for flow in [Flow::Refund, Flow::Payout] {
            let begun = begin(flow).unwrap();
            assert_eq!(begun.ledger, [SagaAction::Reserve]);
            let saga = called(&begun);
            let done = turn(saga, StepResult::Done).unwrap();
            assert_eq!((done.ledger, done.onward), (vec![SagaAction::Post], AfterStep::Completed));
            let refused = turn(saga, StepResult::Failed).unwrap();
            assert_eq!((refused.ledger, refused.onward), (vec![SagaAction::Release], AfterStep::Undone));
        }
    }

    #[test]
    fn a_split_that_cannot_be_captured_is_voided_and_then_released() {
        let authorize = called(&begin(Flow::Split).unwrap());
        assert_eq!(step(authorize), Some(ProviderStep::Authorize));
        let declined = turn(authorize, StepResult::Failed).unwrap();
        assert_eq!((declined.ledger, declined.onward), (vec![SagaAction::Release], AfterStep::Undone));

        let capture = called(&turn(authorize, StepResult::Done).unwrap());
        assert_eq!(step(capture), Some(ProviderStep::Capture));
        let undoing = turn(capture, StepResult::Failed).unwrap();
        assert_eq!(undoing.ledger, [], "the money stays reserved until the card is free");
        let void = called(&undoing);
        assert_eq!(step(void), Some(ProviderStep::Void));
        let undone = turn(void, StepResult::Done).unwrap();
        assert_eq!((undone.ledger, undone.onward), (vec![SagaAction::Release], AfterStep::Undone));
        assert_eq!(turn(void, StepResult::Failed).unwrap().onward, AfterStep::Stuck);
    }

    #[test]
    fn a_definition_this_build_does_not_know_is_left_alone() {
        let saga = Saga { flow: Flow::Charge, version: 9, progress: SagaProgress::START };
        assert_eq!((step(saga), turn(saga, StepResult::Done), give_up(saga)), (None, None, None));
    }

    #[test]
    fn what_is_held_is_given_up_by_the_sagas_own_undoing_and_nothing_else_is() {
        for flow in FLOWS {
            let back = give_up(called(&begin(flow).unwrap()));
            if !matches!(flow, Flow::Charge | Flow::Authorize | Flow::Split) {
                assert_eq!(back, None, "{flow:?} holds nothing of its own");
                continue;
            }
            let back = back.unwrap();
            assert_eq!(step(back), Some(ProviderStep::Void));
            assert_eq!(turn(back, StepResult::Done).unwrap().onward, AfterStep::Undone);
            assert_eq!(turn(back, StepResult::Failed).unwrap().onward, AfterStep::Stuck);
            assert_eq!(give_up(back), None, "it is on its way back");
        }
        let authorize = called(&begin(Flow::Split).unwrap());
        let capture = called(&turn(authorize, StepResult::Done).unwrap());
        assert_eq!(give_up(capture), give_up(authorize), "what was to be captured is held");
        let first = Saga { flow: Flow::Charge, version: 1, progress: SagaProgress::START };
        assert_eq!(give_up(first), None, "what began under a definition ends under it");
    }

    fn told(definition: &SagaDefinition<SagaAction>) -> String {
        let word = |action: SagaAction| match action {
            SagaAction::Call(step) => step.name(),
            SagaAction::Reserve => "reserve",
            SagaAction::Release => "release",
            SagaAction::Post => "post",
        };
        let steps = definition.steps.iter().map(|stage| match stage.undo {
            Some(undo) => format!("{}/{}", word(stage.action), word(undo)),
            None => word(stage.action).to_owned(),
        });
        format!("{} {}: {}", definition.name, definition.version, steps.collect::<Vec<_>>().join(" "))
    }

    /// Work that began under a definition ends under it: what was released is never changed.
    #[test]
    fn golden_definitions() {
        let released = [
            "charge 1: charge post",
            "charge 2: charge/void post",
            "authorize 1: authorize",
            "authorize 2: authorize/void",
            "split 1: reserve/release authorize/void capture post",
            "capture 1: capture post",
            "void 1: void",
            "refund 1: reserve/release refund post",
            "payout 1: reserve/release payout post",
        ];
        assert_eq!(DEFINITIONS.iter().map(told).collect::<Vec<_>>(), released);
    }
}

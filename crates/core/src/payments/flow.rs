//! The payment flows as sagas: steps, order, and compensations.
//!
//! A released definition never changes. A changed flow gets a new version beside the old one, and
//! work ends under the definition it began with.

use super::provider::ProviderStep;
use crate::outbox::{Flow, Saga};
use crate::saga::definition::{SagaDefinition, Stage, find, latest};
use crate::saga::progress::{self, Direction, NextAction, SagaProgress, StepResult};

/// The action of a saga step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SagaAction {
    /// Asks the provider to execute a step. The store commits the intent before the call and the
    /// result after it.
    Call(ProviderStep),
    /// Reserves money in the ledger, in the change set of the transition.
    Reserve,
    /// Releases the reserved money, in the change set of the transition.
    Release,
    /// Posts the payment to the ledger, in the change set of the transition.
    Post,
}

const fn stage(action: SagaAction, undo: Option<SagaAction>) -> Stage<SagaAction> {
    Stage { action, undo }
}

/// All definitions of all flows.
pub const DEFINITIONS: [SagaDefinition<SagaAction>; 7] = [
    SagaDefinition {
        name: Flow::Charge.name(),
        version: 1,
        steps: &[
            stage(SagaAction::Call(ProviderStep::Charge), Some(SagaAction::Call(ProviderStep::Void))),
            stage(SagaAction::Post, None),
        ],
    },
    SagaDefinition {
        name: Flow::Authorize.name(),
        version: 1,
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

/// The way from one provider call to the next: the ledger actions in between, and the saga's next
/// state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// In order. All belong to the transition's change set.
    pub ledger: Vec<SagaAction>,
    pub next: AfterStep,
}

/// The state of a saga after a provider call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterStep {
    /// The next call to the provider.
    Call(ProviderStep, Saga),
    /// All steps are done.
    Completed,
    /// A step was refused, and all earlier steps are undone.
    Undone,
    /// A compensation was refused, so only a human can continue.
    Stuck,
}

/// The first transition of a new saga, under the flow's latest definition.
pub fn begin(flow: Flow) -> Option<Transition> {
    let definition = latest(&DEFINITIONS, flow.name())?;
    let first = progress::action(&definition, SagaProgress::START)?;
    transition_at(flow, &definition, NextAction::Do(first, SagaProgress::START))
}

/// The provider call at the saga's position; `None` if this build does not know the definition.
pub fn step(saga: Saga) -> Option<ProviderStep> {
    match progress::action(&find(&DEFINITIONS, saga.flow.name(), saga.version)?, saga.progress)? {
        SagaAction::Call(step) => Some(step),
        SagaAction::Reserve | SagaAction::Release | SagaAction::Post => None,
    }
}

/// Advances a saga after a provider call; `None` if this build does not know the definition.
pub fn advance(saga: Saga, result: StepResult) -> Option<Transition> {
    let definition = find(&DEFINITIONS, saga.flow.name(), saga.version)?;
    transition_at(saga.flow, &definition, progress::next(&definition, saga.progress, result)?)
}

/// Turns a saga around, towards the void of the provider's hold. `None` if the definition has no
/// void, or the saga is already on its way back.
pub fn give_up(saga: Saga) -> Option<Saga> {
    let definition = find(&DEFINITIONS, saga.flow.name(), saga.version)?;
    let void = Some(SagaAction::Call(ProviderStep::Void));
    (0..=saga.progress.step)
        .rev()
        .map(|step| SagaProgress { step, way: Direction::Back })
        .find(|back| saga.progress.way == Direction::Forward && progress::action(&definition, *back) == void)
        .map(|progress| Saga { progress, ..saga })
}

/// Collects ledger actions up to the next provider call or the end of the saga.
fn transition_at(
    flow: Flow,
    definition: &SagaDefinition<SagaAction>,
    mut next: NextAction<SagaAction>,
) -> Option<Transition> {
    let mut ledger = Vec::new();
    loop {
        let after = match next {
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
        return Some(Transition { ledger, next: after });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::FLOWS;

    fn called(transition: &Transition) -> Saga {
        match transition.next {
            AfterStep::Call(_, saga) => saga,
            AfterStep::Completed | AfterStep::Undone | AfterStep::Stuck => panic!("{transition:?}"),
        }
    }

    #[test]
    fn every_flow_begins_with_a_call_and_ends() {
        for flow in FLOWS {
            let mut open = vec![called(&begin(flow).unwrap())];
            let mut seen = 0;
            while let Some(saga) = open.pop() {
                assert!(step(saga).is_some(), "{saga:?}");
                seen += 1;
                assert!(seen < 20, "{flow:?} does not end");
                for result in [StepResult::Done, StepResult::Failed] {
                    match advance(saga, result).unwrap().next {
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
            let done = advance(saga, StepResult::Done).unwrap();
            assert_eq!((done.ledger, done.next), (vec![SagaAction::Post], AfterStep::Completed));
            let refused = advance(saga, StepResult::Failed).unwrap();
            assert_eq!((refused.ledger, refused.next), (vec![SagaAction::Release], AfterStep::Undone));
        }
    }

    #[test]
    fn a_split_that_cannot_be_captured_is_voided_and_then_released() {
        let authorize = called(&begin(Flow::Split).unwrap());
        assert_eq!(step(authorize), Some(ProviderStep::Authorize));
        let declined = advance(authorize, StepResult::Failed).unwrap();
        assert_eq!((declined.ledger, declined.next), (vec![SagaAction::Release], AfterStep::Undone));

        let capture = called(&advance(authorize, StepResult::Done).unwrap());
        assert_eq!(step(capture), Some(ProviderStep::Capture));
        let undoing = advance(capture, StepResult::Failed).unwrap();
        assert_eq!(undoing.ledger, [], "the money stays reserved until the card is free");
        let void = called(&undoing);
        assert_eq!(step(void), Some(ProviderStep::Void));
        let undone = advance(void, StepResult::Done).unwrap();
        assert_eq!((undone.ledger, undone.next), (vec![SagaAction::Release], AfterStep::Undone));
        assert_eq!(advance(void, StepResult::Failed).unwrap().next, AfterStep::Stuck);
    }

    #[test]
    fn a_definition_this_build_does_not_know_is_left_alone() {
        let saga = Saga { flow: Flow::Charge, version: 9, progress: SagaProgress::START };
        assert_eq!((step(saga), advance(saga, StepResult::Done), give_up(saga)), (None, None, None));
    }

    #[test]
    fn only_flows_with_a_hold_at_the_provider_can_be_given_up() {
        for flow in FLOWS {
            let back = give_up(called(&begin(flow).unwrap()));
            if !matches!(flow, Flow::Charge | Flow::Authorize | Flow::Split) {
                assert_eq!(back, None, "{flow:?} has no hold at the provider");
                continue;
            }
            let back = back.unwrap();
            assert_eq!(step(back), Some(ProviderStep::Void));
            assert_eq!(advance(back, StepResult::Done).unwrap().next, AfterStep::Undone);
            assert_eq!(advance(back, StepResult::Failed).unwrap().next, AfterStep::Stuck);
            assert_eq!(give_up(back), None, "the saga is already on its way back");
        }
        let authorize = called(&begin(Flow::Split).unwrap());
        let capture = called(&advance(authorize, StepResult::Done).unwrap());
        assert_eq!(give_up(capture), give_up(authorize), "the uncaptured amount is still held");
    }

    fn line(definition: &SagaDefinition<SagaAction>) -> String {
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

    /// Pins all definitions, because work in progress ends under the definition it began with.
    #[test]
    fn golden_definitions() {
        let released = [
            "charge 1: charge/void post",
            "authorize 1: authorize/void",
            "split 1: reserve/release authorize/void capture post",
            "capture 1: capture post",
            "void 1: void",
            "refund 1: reserve/release refund post",
            "payout 1: reserve/release payout post",
        ];
        assert_eq!(DEFINITIONS.iter().map(line).collect::<Vec<_>>(), released);
    }
}

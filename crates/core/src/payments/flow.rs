//! The flows as sagas: which deeds, in which order, and what undoes each.
//!
//! A definition that was released is never changed: a new version is added beside it, and work that began under the old
//! one ends under it.

use super::provider::Step;
use crate::outbox::{Flow, Saga};
use crate::saga::definition::{Definition, Stage, find, latest};
use crate::saga::progress::{self, Happened, Next, Progress, Way};

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SagaAction {
    /// Asks the provider for a step; it is committed before it is asked, and again with the answer.
    Call(Step),
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
pub const DEFINITIONS: [Definition<SagaAction>; 9] = [
    Definition {
        name: Flow::Charge.name(),
        version: 1,
        steps: &[stage(SagaAction::Call(Step::Charge), None), stage(SagaAction::Post, None)],
    },
    Definition {
        name: Flow::Charge.name(),
        version: 2,
        steps: &[
            stage(SagaAction::Call(Step::Charge), Some(SagaAction::Call(Step::Void))),
            stage(SagaAction::Post, None),
        ],
    },
    Definition {
        name: Flow::Authorize.name(),
        version: 1,
        steps: &[stage(SagaAction::Call(Step::Authorize), None)],
    },
    Definition {
        name: Flow::Authorize.name(),
        version: 2,
        steps: &[stage(SagaAction::Call(Step::Authorize), Some(SagaAction::Call(Step::Void)))],
    },
    Definition {
        name: Flow::Split.name(),
        version: 1,
        steps: &[
            stage(SagaAction::Reserve, Some(SagaAction::Release)),
            stage(SagaAction::Call(Step::Authorize), Some(SagaAction::Call(Step::Void))),
            stage(SagaAction::Call(Step::Capture), None),
            stage(SagaAction::Post, None),
        ],
    },
    Definition {
        name: Flow::Capture.name(),
        version: 1,
        steps: &[stage(SagaAction::Call(Step::Capture), None), stage(SagaAction::Post, None)],
    },
    Definition { name: Flow::Void.name(), version: 1, steps: &[stage(SagaAction::Call(Step::Void), None)] },
    Definition {
        name: Flow::Refund.name(),
        version: 1,
        steps: &[
            stage(SagaAction::Reserve, Some(SagaAction::Release)),
            stage(SagaAction::Call(Step::Refund), None),
            stage(SagaAction::Post, None),
        ],
    },
    Definition {
        name: Flow::Payout.name(),
        version: 1,
        steps: &[
            stage(SagaAction::Reserve, Some(SagaAction::Release)),
            stage(SagaAction::Call(Step::Payout), None),
            stage(SagaAction::Post, None),
        ],
    },
];

/// From one call to the next: what is done in the ledger on the way, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// In order; all of it belongs into the set that makes the turn.
    pub ledger: Vec<SagaAction>,
    /// What follows.
    pub onward: Onward,
}

/// Where a saga goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// The provider is asked for this step.
    Call(Step, Saga),
    /// Everything was done.
    Completed,
    /// A step was refused, and everything before it was undone.
    Undone,
    /// What should undo a step was refused: only a human can go on.
    Stuck,
}

/// How a saga of that flow begins, under its youngest definition.
pub fn begin(flow: Flow) -> Option<Turn> {
    let definition = latest(&DEFINITIONS, flow.name())?;
    let first = progress::action(&definition, Progress::START)?;
    walk(flow, &definition, Next::Do(first, Progress::START))
}

/// The step a saga stands at; nothing if this build does not know its definition.
pub fn step(saga: Saga) -> Option<Step> {
    match progress::action(&find(&DEFINITIONS, saga.flow.name(), saga.version)?, saga.progress)? {
        SagaAction::Call(step) => Some(step),
        SagaAction::Reserve | SagaAction::Release | SagaAction::Post => None,
    }
}

/// What follows when the step a saga stands at has happened; nothing if this build does not know its definition.
pub fn turn(saga: Saga, happened: Happened) -> Option<Turn> {
    let definition = find(&DEFINITIONS, saga.flow.name(), saga.version)?;
    walk(saga.flow, &definition, progress::next(&definition, saga.progress, happened)?)
}

/// The saga turned round, so that what the provider holds for it is given up next; nothing where that is not in its
/// definition, or it is on its way back already.
pub fn give_up(saga: Saga) -> Option<Saga> {
    let definition = find(&DEFINITIONS, saga.flow.name(), saga.version)?;
    let void = Some(SagaAction::Call(Step::Void));
    (0..=saga.progress.step)
        .rev()
        .map(|step| Progress { step, way: Way::Back })
        .find(|back| saga.progress.way == Way::Forward && progress::action(&definition, *back) == void)
        .map(|progress| Saga { progress, ..saga })
}

/// Goes on over what the ledger do, up to the next call or the end.
fn walk(flow: Flow, definition: &Definition<SagaAction>, mut next: Next<SagaAction>) -> Option<Turn> {
    let mut ledger = Vec::new();
    loop {
        let onward = match next {
            Next::Do(SagaAction::Call(step), progress) => {
                Onward::Call(step, Saga { flow, version: definition.version, progress })
            }
            Next::Do(action @ (SagaAction::Reserve | SagaAction::Release | SagaAction::Post), progress) => {
                ledger.push(action);
                next = progress::next(definition, progress, Happened::Done)?;
                continue;
            }
            Next::Completed => Onward::Completed,
            Next::Undone => Onward::Undone,
            Next::Stuck(_) => Onward::Stuck,
        };
        return Some(Turn { ledger, onward });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::FLOWS;

    fn called(turn: &Turn) -> Saga {
        match turn.onward {
            Onward::Call(_, saga) => saga,
            Onward::Completed | Onward::Undone | Onward::Stuck => panic!("{turn:?}"),
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
                for happened in [Happened::Done, Happened::Failed] {
                    match turn(saga, happened).unwrap().onward {
                        Onward::Call(_, next) => open.push(next),
                        Onward::Completed | Onward::Undone | Onward::Stuck => {}
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
            let done = turn(saga, Happened::Done).unwrap();
            assert_eq!((done.ledger, done.onward), (vec![SagaAction::Post], Onward::Completed));
            let refused = turn(saga, Happened::Failed).unwrap();
            assert_eq!((refused.ledger, refused.onward), (vec![SagaAction::Release], Onward::Undone));
        }
    }

    #[test]
    fn a_split_that_cannot_be_captured_is_voided_and_then_released() {
        let authorize = called(&begin(Flow::Split).unwrap());
        assert_eq!(step(authorize), Some(Step::Authorize));
        let declined = turn(authorize, Happened::Failed).unwrap();
        assert_eq!((declined.ledger, declined.onward), (vec![SagaAction::Release], Onward::Undone));

        let capture = called(&turn(authorize, Happened::Done).unwrap());
        assert_eq!(step(capture), Some(Step::Capture));
        let undoing = turn(capture, Happened::Failed).unwrap();
        assert_eq!(undoing.ledger, [], "the money stays reserved until the card is free");
        let void = called(&undoing);
        assert_eq!(step(void), Some(Step::Void));
        let undone = turn(void, Happened::Done).unwrap();
        assert_eq!((undone.ledger, undone.onward), (vec![SagaAction::Release], Onward::Undone));
        assert_eq!(turn(void, Happened::Failed).unwrap().onward, Onward::Stuck);
    }

    #[test]
    fn a_definition_this_build_does_not_know_is_left_alone() {
        let saga = Saga { flow: Flow::Charge, version: 9, progress: Progress::START };
        assert_eq!((step(saga), turn(saga, Happened::Done), give_up(saga)), (None, None, None));
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
            assert_eq!(step(back), Some(Step::Void));
            assert_eq!(turn(back, Happened::Done).unwrap().onward, Onward::Undone);
            assert_eq!(turn(back, Happened::Failed).unwrap().onward, Onward::Stuck);
            assert_eq!(give_up(back), None, "it is on its way back");
        }
        let authorize = called(&begin(Flow::Split).unwrap());
        let capture = called(&turn(authorize, Happened::Done).unwrap());
        assert_eq!(give_up(capture), give_up(authorize), "what was to be captured is held");
        let first = Saga { flow: Flow::Charge, version: 1, progress: Progress::START };
        assert_eq!(give_up(first), None, "what began under a definition ends under it");
    }

    fn told(definition: &Definition<SagaAction>) -> String {
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

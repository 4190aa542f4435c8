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
pub enum Deed {
    /// Asks the provider for a step; it is committed before it is asked, and again with the answer.
    Call(Step),
    /// Reserves money in the books, in the set that leads past it.
    Reserve,
    /// Frees what was reserved, in the set that leads past it.
    Release,
    /// Posts what happened, in the set that leads past it.
    Post,
}

const fn stage(deed: Deed, undo: Option<Deed>) -> Stage<Deed> {
    Stage { deed, undo }
}

/// Every definition there ever was.
pub const DEFINITIONS: [Definition<Deed>; 9] = [
    Definition {
        name: Flow::Charge.name(),
        version: 1,
        steps: &[stage(Deed::Call(Step::Charge), None), stage(Deed::Post, None)],
    },
    Definition {
        name: Flow::Charge.name(),
        version: 2,
        steps: &[stage(Deed::Call(Step::Charge), Some(Deed::Call(Step::Void))), stage(Deed::Post, None)],
    },
    Definition {
        name: Flow::Authorize.name(),
        version: 1,
        steps: &[stage(Deed::Call(Step::Authorize), None)],
    },
    Definition {
        name: Flow::Authorize.name(),
        version: 2,
        steps: &[stage(Deed::Call(Step::Authorize), Some(Deed::Call(Step::Void)))],
    },
    Definition {
        name: Flow::Split.name(),
        version: 1,
        steps: &[
            stage(Deed::Reserve, Some(Deed::Release)),
            stage(Deed::Call(Step::Authorize), Some(Deed::Call(Step::Void))),
            stage(Deed::Call(Step::Capture), None),
            stage(Deed::Post, None),
        ],
    },
    Definition {
        name: Flow::Capture.name(),
        version: 1,
        steps: &[stage(Deed::Call(Step::Capture), None), stage(Deed::Post, None)],
    },
    Definition { name: Flow::Void.name(), version: 1, steps: &[stage(Deed::Call(Step::Void), None)] },
    Definition {
        name: Flow::Refund.name(),
        version: 1,
        steps: &[
            stage(Deed::Reserve, Some(Deed::Release)),
            stage(Deed::Call(Step::Refund), None),
            stage(Deed::Post, None),
        ],
    },
    Definition {
        name: Flow::Payout.name(),
        version: 1,
        steps: &[
            stage(Deed::Reserve, Some(Deed::Release)),
            stage(Deed::Call(Step::Payout), None),
            stage(Deed::Post, None),
        ],
    },
];

/// From one call to the next: what is done in the books on the way, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// In order; all of it belongs into the set that makes the turn.
    pub books: Vec<Deed>,
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
    let first = progress::deed(&definition, Progress::START)?;
    walk(flow, &definition, Next::Do(first, Progress::START))
}

/// The step a saga stands at; nothing if this build does not know its definition.
pub fn step(saga: Saga) -> Option<Step> {
    match progress::deed(&find(&DEFINITIONS, saga.flow.name(), saga.version)?, saga.progress)? {
        Deed::Call(step) => Some(step),
        Deed::Reserve | Deed::Release | Deed::Post => None,
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
    let void = Some(Deed::Call(Step::Void));
    (0..=saga.progress.step)
        .rev()
        .map(|step| Progress { step, way: Way::Back })
        .find(|back| saga.progress.way == Way::Forward && progress::deed(&definition, *back) == void)
        .map(|progress| Saga { progress, ..saga })
}

/// Goes on over what the books do, up to the next call or the end.
fn walk(flow: Flow, definition: &Definition<Deed>, mut next: Next<Deed>) -> Option<Turn> {
    let mut books = Vec::new();
    loop {
        let onward = match next {
            Next::Do(Deed::Call(step), progress) => {
                Onward::Call(step, Saga { flow, version: definition.version, progress })
            }
            Next::Do(deed @ (Deed::Reserve | Deed::Release | Deed::Post), progress) => {
                books.push(deed);
                next = progress::next(definition, progress, Happened::Done)?;
                continue;
            }
            Next::Completed => Onward::Completed,
            Next::Undone => Onward::Undone,
            Next::Stuck(_) => Onward::Stuck,
        };
        return Some(Turn { books, onward });
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
            assert_eq!(begun.books, [Deed::Reserve]);
            let saga = called(&begun);
            let done = turn(saga, Happened::Done).unwrap();
            assert_eq!((done.books, done.onward), (vec![Deed::Post], Onward::Completed));
            let refused = turn(saga, Happened::Failed).unwrap();
            assert_eq!((refused.books, refused.onward), (vec![Deed::Release], Onward::Undone));
        }
    }

    #[test]
    fn a_split_that_cannot_be_captured_is_voided_and_then_released() {
        let authorize = called(&begin(Flow::Split).unwrap());
        assert_eq!(step(authorize), Some(Step::Authorize));
        let declined = turn(authorize, Happened::Failed).unwrap();
        assert_eq!((declined.books, declined.onward), (vec![Deed::Release], Onward::Undone));

        let capture = called(&turn(authorize, Happened::Done).unwrap());
        assert_eq!(step(capture), Some(Step::Capture));
        let undoing = turn(capture, Happened::Failed).unwrap();
        assert_eq!(undoing.books, [], "the money stays reserved until the card is free");
        let void = called(&undoing);
        assert_eq!(step(void), Some(Step::Void));
        let undone = turn(void, Happened::Done).unwrap();
        assert_eq!((undone.books, undone.onward), (vec![Deed::Release], Onward::Undone));
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

    fn told(definition: &Definition<Deed>) -> String {
        let word = |deed: Deed| match deed {
            Deed::Call(step) => step.name(),
            Deed::Reserve => "reserve",
            Deed::Release => "release",
            Deed::Post => "post",
        };
        let steps = definition.steps.iter().map(|stage| match stage.undo {
            Some(undo) => format!("{}/{}", word(stage.deed), word(undo)),
            None => word(stage.deed).to_owned(),
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

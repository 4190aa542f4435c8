//! The state space of two keys, composed from the single-key space.
//!
//! Two keys share only their workers and the time. An action changes the state of a single key.
//! Time passes for both, and the number of workers is shared. A state of two keys is therefore a
//! pair of single-key states. The next action concerns either key, as long as a worker is left for
//! it, or both when time passes. A test walks two keys directly where that is small enough, and
//! finds the same number of states.

use crate::{Protocol, State, WORKERS};
use stateright::{Expectation, Model};
use std::collections::{BTreeSet, HashMap};

/// The result of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    pub single: usize,
    pub states: u64,
    /// Transitions between states of two keys.
    pub moves: u64,
    /// Properties that fail in some state.
    pub broken: BTreeSet<&'static str>,
    /// Whether both keys can be completed.
    pub completes: bool,
}

/// The states of one key and their transitions, by number.
struct Graph {
    states: Vec<State>,
    moves: Vec<Vec<usize>>,
    ticks: Vec<usize>,
}

impl Graph {
    fn of(model: &Protocol) -> Graph {
        let mut graph = Graph { states: model.init_states(), moves: Vec::new(), ticks: Vec::new() };
        let mut numbers: HashMap<State, usize> =
            graph.states.iter().cloned().enumerate().map(|(number, state)| (state, number)).collect();
        let mut next = 0;
        while let Some(state) = graph.states.get(next).cloned() {
            let (mut actions, mut moves, mut tick) = (Vec::new(), Vec::new(), next);
            model.actions(&state, &mut actions);
            for action in actions {
                let Some(after) = model.next_state(&state, action) else { continue };
                let fresh = graph.states.len();
                let number = *numbers.entry(after.clone()).or_insert(fresh);
                if number == fresh {
                    graph.states.push(after);
                }
                if action.is_tick() {
                    tick = number;
                } else if number != next {
                    moves.push(number);
                }
            }
            moves.sort_unstable();
            moves.dedup();
            graph.moves.push(moves);
            graph.ticks.push(tick);
            next += 1;
        }
        graph
    }

    fn busy(&self, number: usize) -> usize {
        self.states.get(number).map_or(0, State::busy)
    }

    fn moves(&self, number: usize) -> &[usize] {
        self.moves.get(number).map_or(&[], Vec::as_slice)
    }

    fn tick(&self, number: usize) -> usize {
        self.ticks.get(number).copied().unwrap_or(number)
    }
}

/// Walks all states of two keys.
pub fn pairs(model: &Protocol) -> Pairs {
    let graph = Graph::of(&Protocol { keys: 1, ..*model });
    let count = graph.states.len();
    let mut seen = vec![false; count * count];
    let mut reached = vec![false; count];
    let mut todo = vec![(0, 0)];
    let mut walked = Pairs { single: count, ..Pairs::default() };
    if let Some(first) = seen.first_mut() {
        *first = true;
    }
    while let Some((one, other)) = todo.pop() {
        walked.states += 1;
        for key in [one, other] {
            if let Some(reached) = reached.get_mut(key) {
                *reached = true;
            }
        }
        walked.completes |=
            [one, other].into_iter().all(|key| graph.states.get(key).is_some_and(State::all_completed));
        let left = graph.moves(one).iter().map(|next| (*next, other));
        let right = graph.moves(other).iter().map(|next| (one, *next));
        let time = (graph.tick(one), graph.tick(other));
        for (one, other) in left.chain(right).chain([time]) {
            if graph.busy(one) + graph.busy(other) > WORKERS {
                continue;
            }
            walked.moves += 1;
            // Keys are interchangeable: the smaller number comes first.
            let pair = (one.min(other), one.max(other));
            if let Some(seen) = seen.get_mut(pair.0 * count + pair.1)
                && !std::mem::replace(seen, true)
            {
                todo.push(pair);
            }
        }
    }
    let single = Protocol { keys: 1, ..*model };
    for (state, _) in graph.states.iter().zip(reached).filter(|(_, reached)| *reached) {
        for property in single.properties() {
            let holds = (property.condition)(&single, state);
            if property.expectation == Expectation::Always && !holds {
                walked.broken.insert(property.name);
            }
        }
    }
    walked
}

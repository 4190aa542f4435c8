//! Planted bugs are found: the honest score of the checks.

use counterfoil_sim::bank::{BUGS, Bug, hunt};

/// Rare ones need a certain fault on a certain profile; `counterfoil-sim --bank --seeds 3000` looks longer.
const RARE: [Bug; 5] = [
    Bug::ReversedTwice,
    Bug::SnapshotWrong,
    Bug::UnclearIsNothing,
    Bug::VoidUnknownIsDone,
    Bug::CaptureUnknownIsFailure,
];

#[test]
fn common_bugs_are_found_within_two_hundred_seeds() {
    let common = BUGS.iter().filter(|bug| !RARE.contains(bug));
    let missed: Vec<&str> =
        common.filter(|bug| hunt(**bug, 500, 200).is_none()).map(|bug| bug.name()).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

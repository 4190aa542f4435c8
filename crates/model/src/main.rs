//! Walks the whole state space of one and of two keys, for every provider contract. With `direct`,
//! the walk of two keys visits all states directly instead of combining states of a single key. The
//! result is the same, in a hundred times the time.

use counterfoil_model::{PROFILES, Protocol, WORKERS, pairs};
use stateright::{Checker, Model};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let direct = std::env::args().nth(1).is_some_and(|word| word == "direct");
    let (mut broken, mut states) = (0_usize, 0_u64);
    for profile in PROFILES {
        let begun = Instant::now();
        let model = Protocol { keys: 2, profile, bug: None };
        let (count, found) = if direct {
            let checker = model.checker().threads(2).spawn_bfs().join();
            let mut found = checker.discoveries();
            found.remove("every key is completed");
            for (name, path) in &found {
                println!("{name}\n{path}");
            }
            (u64::try_from(checker.unique_state_count()).unwrap_or(u64::MAX), found.len())
        } else {
            let walked = pairs(&model);
            println!("{walked:?}");
            (walked.states, walked.broken.len().saturating_add(usize::from(!walked.completes)))
        };
        states = states.saturating_add(count);
        broken = broken.saturating_add(found);
        println!(
            "2 keys, {WORKERS} workers, a provider that {}: {count} states, {found} broken, {} ms",
            profile.name,
            begun.elapsed().as_millis()
        );
    }
    println!("{states} states, {broken} broken");
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! Walks the whole state space: `counterfoil-model KEYS`, for every provider contract.

use counterfoil_model::{PROFILES, Protocol, WORKERS};
use stateright::{Checker, Model};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let Some(keys) = std::env::args().nth(1).and_then(|word| word.parse::<usize>().ok()) else {
        eprintln!("usage: counterfoil-model KEYS, for example: counterfoil-model 2");
        return ExitCode::from(2);
    };
    let (mut broken, mut states) = (0_u32, 0_usize);
    for profile in PROFILES {
        let begun = Instant::now();
        let protocol = Protocol { keys, profile, bug: None };
        let checker = protocol.checker().threads(2).spawn_bfs().join();
        states = states.saturating_add(checker.unique_state_count());
        println!(
            "{keys} keys, {WORKERS} workers, {}: {} states, {} generated, depth {}, {} s",
            profile.name,
            checker.unique_state_count(),
            checker.state_count(),
            checker.max_depth(),
            begun.elapsed().as_secs()
        );
        for (name, path) in checker.discoveries() {
            if name != "every key is completed" {
                println!("BROKEN: {name}\n{path}");
                broken = broken.saturating_add(1);
            }
        }
    }
    println!("{states} states, {broken} broken");
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

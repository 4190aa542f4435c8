//! Walks the whole state space within given bounds: `counterfoil-model KEYS TICKS CRASHES`, for every provider contract.

use counterfoil_model::{PROFILES, Protocol};
use stateright::{Checker, Model};
use std::process::ExitCode;

fn main() -> ExitCode {
    let bounds: Vec<u8> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [keys, ticks, crashes] = bounds.as_slice() else {
        eprintln!("usage: counterfoil-model KEYS TICKS CRASHES, for example: counterfoil-model 2 2 2");
        return ExitCode::from(2);
    };
    let mut broken = 0_u32;
    for profile in PROFILES {
        let protocol =
            Protocol { keys: usize::from(*keys), profile, ticks: *ticks, crashes: *crashes, bug: None };
        let checker = protocol.checker().threads(2).spawn_bfs().join();
        println!("{}: {} states, depth {}", profile.name, checker.unique_state_count(), checker.max_depth());
        for (name, path) in checker.discoveries() {
            if name != "every key is completed" {
                println!("BROKEN: {name}\n{path}");
                broken = broken.saturating_add(1);
            }
        }
    }
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! `crash --matrix`: every provider contract with every fault and a killed server, over real HTTP.
//! No request charges a card twice, nothing done is reported as failed, and unknown outcomes are
//! parked and listed.

mod cell;
mod contract;
mod fault;
mod operator;
mod table;

use crate::failure::{Failure, Result};
use crate::progress::Progress;
use cell::Found;
use contract::{CONTRACTS, Contract};
use counterfoil_prng::Prng;
use fault::{FAULTS, Fault};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
pub(super) use table::Matrix;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Number of concurrent cells; cells mostly wait.
const TOGETHER: usize = 12;

/// Runs `cells_max` cells, in an order that covers every provider and every fault early. With
/// `blind` the servers are told that their provider keeps every promise, a lie that the judge has
/// to find.
pub(super) async fn run(binary: &Path, cells_max: usize, blind: bool, seed: u64) -> Result<Matrix> {
    let begun = Instant::now();
    let mut prng = Prng::new(seed);
    let (slots, mut running) = (Arc::new(Semaphore::new(TOGETHER)), JoinSet::new());
    for (contract, fault) in cells().into_iter().take(cells_max) {
        let (binary, prng, slots) = (binary.to_owned(), prng.fork(), Arc::clone(&slots));
        running.spawn_local(async move {
            let _slot = slots.acquire_owned().await.map_err(Failure::while_("waiting for a turn"))?;
            cell::run(&binary, contract, fault, blind, prng).await
        });
    }
    let progress = Progress::new(running.len() as u64);
    let mut found: Vec<Found> = Vec::new();
    while let Some(done) = running.join_next().await {
        found.push(done.map_err(Failure::while_("running a cell"))??);
        progress.show(found.len() as u64, "cells");
    }
    Ok(Matrix { seed, took: begun.elapsed(), found })
}

/// Every provider with every fault its contract allows, by diagonals.
fn cells() -> Vec<(Contract, Fault)> {
    let diagonal = |turn: usize| {
        CONTRACTS.iter().enumerate().map(move |(place, contract)| {
            // With steps of four the first diagonal covers every provider and every fault.
            let fault = FAULTS[(4 * place + turn) % FAULTS.len()];
            (*contract, fault)
        })
    };
    let all = (0..FAULTS.len()).flat_map(diagonal);
    all.filter(|(contract, fault)| fault.applies_to(contract)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_cell_comes_once_and_the_first_ones_are_all_different() {
        let cells = cells();
        let names: HashSet<_> =
            cells.iter().map(|(contract, fault)| (contract.profile, fault.name)).collect();
        assert_eq!((cells.len(), names.len()), (100, 100));
        let first = &cells[..12];
        let faults: HashSet<_> = first.iter().map(|(_, fault)| fault.name).collect();
        assert_eq!(faults.len(), FAULTS.len());
        assert_eq!(first.iter().map(|(contract, _)| contract.profile).collect::<HashSet<_>>().len(), 12);
    }
}

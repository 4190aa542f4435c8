//! A cell: a provider with its contract, a fault, a killed server, and clients that keep
//! asking. Nothing is shared with other cells.

use super::super::aftermath::{note_answers, replay_all};
use super::super::board::Board;
use super::super::client::{self, Shared, lock};
use super::super::judge::{Evidence, Judged, Verdict, Wrong, judge, judge_ledger};
use super::super::mix::Mix;
use super::super::order::Order;
use super::super::provider::{history, set_faults};
use super::super::report::asked;
use super::super::scene::{Scene, SceneOptions, StoreKind};
use super::super::served::{self, Parked};
use super::super::{ledger, provider};
use super::contract::Contract;
use super::fault::Fault;
use super::operator;
use crate::failure::{Failure, Result};
use counterfoil_prng::Prng;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Charges of a cell; operations come on top.
const CHARGES: usize = 30;
const CLIENTS: usize = 8;
/// Number of kills.
pub(super) const KILLS: u64 = 3;
/// A kill comes within this time after the server is ready.
const WITHIN_MS: u64 = 250;
/// Upper bound of the wait until everything has ended or is parked.
const SETTLE: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Result of a cell.
pub(super) struct Found {
    pub(super) profile: &'static str,
    pub(super) fault: &'static str,
    pub(super) verdict: Verdict,
    pub(super) figures: Vec<(&'static str, u64)>,
    /// Number of dead letters by reason.
    pub(super) parked: HashMap<String, u64>,
    /// Requests executed twice by the provider itself.
    pub(super) repeated: u64,
    pub(super) sound: bool,
}

impl Found {
    pub(super) fn holds(&self) -> bool {
        self.verdict.is_clean() && self.sound
    }
}

pub(super) async fn run(
    binary: &Path,
    contract: Contract,
    fault: Fault,
    blind: bool,
    mut prng: Prng,
) -> Result<Found> {
    let options = SceneOptions {
        store: StoreKind::Embedded,
        place: None,
        lease_ms: None,
        cut_bytes: None,
        settings: if blind { Contract::BLIND.settings() } else { contract.settings() },
        prng: prng.fork(),
    };
    let mut scene = Scene::set(binary, options).await?;
    let found = play(&mut scene, contract, fault, prng).await;
    // With `blind`, a violation is expected and needs no investigation.
    if !found.as_ref().is_ok_and(Found::holds) && !blind {
        let kept = scene.keep();
        eprintln!("xtask: {} × {}: kept in {}", contract.profile, fault.name, kept.display());
    }
    found.map_err(Failure::while_(format!("{} × {}", contract.profile, fault.name)))
}

async fn play(scene: &mut Scene, contract: Contract, fault: Fault, mut prng: Prng) -> Result<Found> {
    let wallets = ledger::open(&scene.address).await?;
    set_faults(scene.provider, &fault.faults(&contract, prng.next_u64())).await?;
    let mix = Mix { transfers: 0, payouts: 0, held: 30, split: 15, wallets };
    let board: Shared = Arc::new(Mutex::new(Board::new(prng.fork(), mix, CHARGES)));
    let mut clients = client::start(CLIENTS, &scene.address, &board, &mut prng);

    for kill in 0..KILLS {
        sleep(Duration::from_millis(prng.below(WITHIN_MS))).await;
        let running = scene.servers.first_mut().ok_or_else(|| Failure::new("there is no server to kill"))?;
        running.server.kill().await?;
        if kill == 0 {
            sleep(fault.away(&contract)).await;
        }
        *running = scene.launcher.start_server(running.address).await?;
    }
    let parked = settle(&mut clients, &board, scene).await?;
    clients.shutdown().await;
    set_faults(scene.provider, &format!("{{{}}}", contract.usual())).await?;
    let (orders, differing, strange) = {
        let mut board = lock(&board);
        (std::mem::take(&mut board.orders), board.differing.clone(), board.strange.clone())
    };
    let orders = Arc::new(orders);
    let replays = replay_all(&scene.address, &orders).await;
    let mut judged = judge_now(scene, &orders, &parked, fault).await?;
    note_answers(&mut judged.verdict, &orders, &differing, &strange, &replays);
    if orders.iter().filter(|order| order.is_charge()).count() < CHARGES {
        judged.verdict.note(Wrong::Strange, format!("only {} orders were made", orders.len()));
    }

    // The operator adopts the provider's state where it gives one; then everything is judged again.
    let adopted = operator::adopt(&scene.address).await?;
    let mut orders = Arc::unwrap_or_clone(orders);
    operator::ask_again(&scene.address, &mut orders).await;
    let left = served::parked(&scene.address, &orders).await?;
    judged.verdict.join(judge_now(scene, &orders, &left, fault).await?.verdict);

    let (drained, verified) = scene.close().await?;
    let mut figures = asked(&orders);
    let effects = provider::effects(scene.provider).await?.len() as u64;
    figures.extend([
        ("effects", effects),
        ("replays", replays.len() as u64),
        ("adopted by a human", adopted),
    ]);
    Ok(Found {
        profile: contract.profile,
        fault: fault.name,
        verdict: judged.verdict,
        figures,
        parked: parked.reasons,
        repeated: judged.repeated,
        sound: drained && verified,
    })
}

/// Judges the current state.
async fn judge_now(scene: &Scene, orders: &[Order], parked: &Parked, fault: Fault) -> Result<Judged> {
    let effects = arrived(scene).await?;
    let shown = served::payments(&scene.address).await?;
    let by_itself = fault.by_itself;
    let mut judged = judge(&Evidence { orders, effects: &effects, shown: &shown, parked, by_itself });
    let balances = ledger::balances(&scene.address, "posted").await?;
    let of_ledger = judge_ledger(orders, &judged, &balances);
    judged.verdict.join(of_ledger);
    Ok(judged)
}

/// Waits until every order has ended or is parked. The faults stay in force, because real providers
/// do not recover just because a client waits.
async fn settle(clients: &mut JoinSet<()>, board: &Shared, scene: &Scene) -> Result<Parked> {
    let begun = Instant::now();
    loop {
        let orders = {
            let mut board = lock(board);
            // Only follow-up orders are still made.
            if board.is_full() && begun.elapsed() > LOOK_EVERY * 4 {
                board.close();
            }
            board.orders.clone()
        };
        let parked = served::parked(&scene.address, &orders).await?;
        let open = orders.iter().filter(|order| order.first.is_none()).count();
        let waiting = parked.orders.len() + parked.behind.len();
        if (open == waiting && lock(board).is_closed()) || begun.elapsed() > SETTLE {
            return Ok(parked);
        }
        let _ = timeout(LOOK_EVERY, clients.join_next()).await;
        sleep(LOOK_EVERY / 5).await;
    }
}

/// Fetches the provider's effects after its last late delivery.
async fn arrived(scene: &Scene) -> Result<Vec<provider::Effect>> {
    loop {
        let history = history(scene.provider).await?;
        if history.late_pending == 0 {
            return Ok(history.data);
        }
        sleep(LOOK_EVERY).await;
    }
}

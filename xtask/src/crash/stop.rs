//! A server stopped for longer than its leases while the provider works. After it resumes it must
//! notice that its lease has expired, and every key must still get one effect and one answer.

use super::attempt::Attempt;
use super::board::{Board, Errand, ORDERS_MAX};
use super::client::{Address, Client};
use super::judge::{Evidence, Replay, Verdict, Wrong, judge};
use super::mix::Mix;
use super::order::Order;
use super::report::{Report, asked};
use super::scene::Scene;
use super::served::Parked;
use super::{provider, served};
use crate::failure::{Failure, Result};
use counterfoil_prng::Prng;
use rustix::process::Signal;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// A lease that expires while the server is stopped.
pub(super) const LEASE_MS: u64 = 500;
/// The provider answers during the standstill: after the stop, before the resume.
const PROVIDER_MS: u64 = 1_500;
/// Charges in flight when the server stops.
const CHARGES: usize = 16;
/// Number of stops.
const STOPS: u64 = 3;
/// Longer than the lease and the provider's delay together.
const STANDSTILL: Duration = Duration::from_millis(PROVIDER_MS + 2 * LEASE_MS);
/// Upper bound of everything that should take seconds.
const LIMIT: Duration = Duration::from_mins(1);

pub(super) async fn run(scene: &mut Scene, seed: u64) -> Result<Report> {
    let begun = Instant::now();
    let gateway = scene.provider;
    provider::set_faults(gateway, &format!(r#"{{"latency_ms":{PROVIDER_MS}}}"#)).await?;
    let mut board = Board::new(Prng::new(seed), Mix::CHARGES, ORDERS_MAX);
    let mut charges: Vec<Order> = Vec::new();
    let mut in_silence = 0;
    for _ in 0..STOPS {
        let before = charges.len();
        while charges.len() < before + CHARGES
            && let Errand::Ask(index) = board.next(Instant::now())
        {
            charges.push(board.orders[index].clone());
        }
        let mut asking = ask_all(&scene.address, &charges[before..]);
        wait_until_claimed(&scene.address, &charges[before..]).await?;
        scene.servers[0].server.signal(Signal::STOP)?;
        let executed = provider::effects(gateway).await?.len();
        sleep(STANDSTILL).await;
        in_silence += provider::effects(gateway).await?.len().saturating_sub(executed);
        scene.servers[0].server.signal(Signal::CONT)?;
        while let Some(answered) = asking.join_next().await {
            let (index, attempt) = answered.map_err(Failure::while_("asking for a charge"))?;
            charges[before + index].first = match attempt {
                Attempt::Final(last) => Some(last),
                Attempt::Later | Attempt::Away | Attempt::Strange(_) | Attempt::Cut => None,
            };
        }
    }
    if in_silence == 0 {
        return Err(Failure::new(
            "the provider executed nothing while the server stood still: nothing was tested",
        ));
    }
    provider::clear_faults(gateway).await?;
    let mut verdict = Verdict::default();
    let mut replays = 0;
    for charge in &mut charges {
        let last = final_answer(&scene.address, charge).await;
        match (&charge.first, last) {
            (Some(first), last) => {
                replays += 1;
                match Replay::of(first, last.as_ref()) {
                    Replay::Same => {}
                    Replay::Differs => {
                        verdict.note(Wrong::Differing, format!("{}: the answer changed", charge.key));
                    }
                    Replay::Lost => verdict.note(Wrong::Lost, format!("{}: the answer is gone", charge.key)),
                }
            }
            (None, last) => charge.first = last,
        }
    }
    let effects = provider::effects(gateway).await?;
    let shown = served::payments(&scene.address).await?;
    let evidence = Evidence {
        orders: &charges,
        effects: &effects,
        shown: &shown,
        parked: &Parked::default(),
        by_itself: false,
    };
    verdict.join(judge(&evidence).verdict);
    let (drained, verified) = scene.close().await?;
    let mut figures = vec![("stops", STOPS), ("effects", effects.len() as u64), ("replays", replays)];
    figures.extend(asked(&charges));
    Ok(Report { seed, took: begun.elapsed(), figures, readiness: Vec::new(), verdict, verified, drained })
}

fn ask_all(address: &Address, charges: &[Order]) -> JoinSet<(usize, Attempt)> {
    let mut asking = JoinSet::new();
    for (index, charge) in charges.iter().cloned().enumerate() {
        let mut client = Client::new(address);
        asking.spawn(async move { (index, client.ask(&charge.request()).await) });
    }
    asking
}

/// Waits until the server has claimed every key, so that it is calling the provider.
async fn wait_until_claimed(address: &Address, charges: &[Order]) -> Result<()> {
    let begun = Instant::now();
    let mut client = Client::new(address);
    for charge in charges {
        while !is_claimed(&mut client, &charge.key).await {
            if begun.elapsed() > LIMIT {
                return Err(Failure::new(format!("{} was never claimed", charge.key)));
            }
            sleep(Duration::from_millis(5)).await;
        }
    }
    Ok(())
}

async fn is_claimed(client: &mut Client, key: &str) -> bool {
    client.get(&format!("/v1/idempotency-keys/{key}")).await.is_ok_and(|answer| answer.status == 200)
}

/// Retries until the answer is final.
async fn final_answer(address: &Address, charge: &Order) -> Option<super::attempt::FinalAnswer> {
    let begun = Instant::now();
    let mut client = Client::new(address);
    while begun.elapsed() < LIMIT {
        match client.ask(&charge.request()).await {
            Attempt::Final(last) => return Some(last),
            Attempt::Strange(_) => return None,
            Attempt::Later | Attempt::Away | Attempt::Cut => sleep(Duration::from_millis(50)).await,
        }
    }
    None
}

//! The closed loop: each task sends its next transfers after the answer to the last ones.

use super::bank::Bank;
use super::{Done, Order};
use crate::bench::sample::number;
use crate::failure::{Failure, Result};
use crate::process::cpu_of_self;
use counterfoil_core::payments::ledger::{Item, LedgerCommand};
use counterfoil_core::types::id::AccountId;
use counterfoil_engine::service::Submitted;
use counterfoil_load::child::WARMUP;
use counterfoil_load::histogram::Histogram;
use counterfoil_load::transfer::posted;
use counterfoil_prng::Prng;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The amounts of the load over HTTP.
const AMOUNT_MIN: i64 = 1_000;
const AMOUNTS: i64 = 9_000;

/// Start of the measurement, and start of the last call.
#[derive(Clone, Copy)]
struct Window {
    start: Instant,
    end: Instant,
}

#[derive(Default)]
struct Tally {
    posted: u64,
    failed: u64,
    answered: u64,
    /// From the first measured call to the last answer.
    span: Option<(Instant, Instant)>,
    latencies: Histogram,
}

struct Client {
    bank: Arc<Bank>,
    pairs: Arc<[(AccountId, AccountId)]>,
    prng: Prng,
    batch: usize,
}

pub(super) async fn measure(bank: &Arc<Bank>, order: Order) -> Result<Done> {
    let pairs: Arc<[_]> = bank.pairs(order.accounts)?.into();
    let mut prng = Prng::new(order.milliseconds);
    let (cpu, written) = (cpu_of_self()?, bank.written());
    let start = Instant::now() + WARMUP;
    let window = Window { start, end: start + Duration::from_millis(order.milliseconds) };
    let mut running = JoinSet::new();
    for _ in 0..order.tasks {
        let (bank, pairs) = (Arc::clone(bank), Arc::clone(&pairs));
        running.spawn(Client { bank, pairs, prng: prng.fork(), batch: order.batch }.repeat(window));
    }
    let mut all = Tally::default();
    let mut per_second = 0.0;
    while let Some(tally) = running.join_next().await {
        let tally = tally.map_err(Failure::while_("a client"))?;
        per_second += tally.per_second();
        all.posted += tally.posted;
        all.failed += tally.failed;
        all.answered += tally.answered;
        all.latencies.merge(&tally.latencies);
    }
    let cpu = cpu_of_self()?.saturating_sub(cpu);
    let (writes, sets) = bank.written();
    Ok(Done {
        posted: all.posted,
        failed: all.failed,
        per_second,
        p50_us: all.latencies.percentile_us(500),
        p99_us: all.latencies.percentile_us(990),
        p999_us: all.latencies.percentile_us(999),
        answered: all.answered,
        cpu_us: u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX),
        sets: sets.saturating_sub(written.1),
        writes: writes.saturating_sub(written.0),
    })
}

impl Tally {
    /// Uses the client's own time span. The span of all clients would count the end, when some have
    /// finished.
    fn per_second(&self) -> f64 {
        let span = self.span.map_or(Duration::ZERO, |(first, last)| last - first);
        if span.is_zero() { 0.0 } else { number(self.posted) / span.as_secs_f64() }
    }
}

impl Client {
    async fn repeat(mut self, window: Window) -> Tally {
        let mut tally = Tally::default();
        let mut now = Instant::now();
        while now < window.end {
            let posted = self.once().await;
            let answered = Instant::now();
            tally.answered += posted;
            if now >= window.start {
                tally.posted += posted;
                tally.failed += (self.batch as u64).saturating_sub(posted);
                tally.latencies.record(answered - now);
                let (first, _) = tally.span.unwrap_or((now, answered));
                tally.span = Some((first, answered));
            }
            now = answered;
        }
        tally
    }

    /// Returns the number of transfers that were new and posted.
    async fn once(&mut self) -> u64 {
        let request = self.bank.request();
        let submitted = if self.batch == 1 {
            let act = LedgerCommand::Transfer(self.transfer());
            self.bank.service.execute(request, act).await
        } else {
            let items = (0..self.batch).map(|_| Item::Transfer(self.transfer())).collect();
            self.bank.service.bulk(request, items).await
        };
        match submitted {
            Submitted::Answer { settled, replayed: false } => match settled.reply.status {
                201 => 1,
                200 => posted(&settled.reply.body),
                _ => 0,
            },
            _ => 0,
        }
    }

    fn transfer(&mut self) -> counterfoil_core::payments::ledger::TransferOrder {
        let roll = self.prng.next_u64();
        let place = usize::try_from(roll % self.pairs.len() as u64).unwrap_or_default();
        let more = i64::try_from((roll >> 32) % AMOUNTS.unsigned_abs()).unwrap_or_default();
        self.bank.transfer(self.pairs[place], AMOUNT_MIN + more)
    }
}

//! What one of many sees who each wait for their own answers, and what all of them saw together.

use super::child::Driven;
use super::sample::number;
use crate::failure::{Failure, Result};
use crate::process::cpu_of_self;
use counterfoil_load::Report;
use counterfoil_load::histogram::Histogram;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The answers of one.
#[derive(Default)]
pub(super) struct Tally {
    answered: u64,
    latencies: Histogram,
    /// From the first measured request to the last answer.
    span: Option<(Instant, Instant)>,
}

impl Tally {
    /// An answer, just now, to what was begun then; it is measured if that was after `start`.
    pub(super) fn count(&mut self, begun: Instant, start: Instant) {
        let answered = Instant::now();
        self.answered += 1;
        if begun >= start {
            self.latencies.record(answered - begun);
            let (first, _) = self.span.unwrap_or((begun, answered));
            self.span = Some((first, answered));
        }
    }

    /// By its own time, as the load over HTTP counts.
    fn per_second(&self) -> f64 {
        let span = self.span.map_or(Duration::ZERO, |(first, last)| last - first);
        if span.is_zero() { 0.0 } else { number(self.latencies.count()) / span.as_secs_f64() }
    }

    /// Waits for all, and adds up. `cpu`: what this process had used before they began.
    pub(super) async fn of_all(
        mut running: JoinSet<Result<Tally>>,
        start: Instant,
        cpu: Duration,
    ) -> Result<Driven> {
        let connections = running.len();
        let (mut all, mut per_second) = (Tally::default(), 0.0);
        while let Some(tally) = running.join_next().await {
            let tally = tally.map_err(Failure::while_("one of many"))??;
            per_second += tally.per_second();
            all.answered += tally.answered;
            all.latencies.merge(&tally.latencies);
        }
        let cpu = cpu_of_self()?.saturating_sub(cpu);
        Ok(Driven {
            report: all.report(connections, per_second, start.elapsed()),
            answered: all.answered,
            cpu_us: u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX),
        })
    }

    fn report(&self, connections: usize, per_second: f64, took: Duration) -> Report {
        let at = |permille| self.latencies.percentile_us(permille);
        Report {
            connections,
            requests: self.latencies.count(),
            ok: self.latencies.count(),
            ok_replays: 0,
            errors_by_status: BTreeMap::new(),
            transport_errors: 0,
            first_transport_error: None,
            differing_replays: 0,
            seconds: took.as_secs_f64(),
            per_second,
            p50_us: at(500),
            p90_us: at(900),
            p99_us: at(990),
            p999_us: at(999),
            max_us: self.latencies.max_us(),
        }
    }
}

//! A load in a process of its own, so that its CPU time is its own: what it is told, and what it tells its parent.

use crate::report::{Outcome, Tally};
use crate::{LoadError, Report};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Load that is not measured: connections open, caches fill.
pub const WARMUP: Duration = Duration::from_millis(500);

/// What every load is told.
#[derive(Args, Debug)]
pub struct Aim {
    /// Where to.
    #[arg(long)]
    pub address: SocketAddr,
    /// Under which key.
    #[arg(long)]
    pub api_key: String,
    /// How many at once, each one request after the other.
    #[arg(long)]
    pub connections: usize,
    /// How long it is measured.
    #[arg(long)]
    pub milliseconds: u64,
    /// What every idempotency key begins with.
    #[arg(long)]
    pub prefix: String,
}

/// What the load tells its parent.
#[derive(Debug, Deserialize, Serialize)]
pub struct Driven {
    /// The figures.
    pub report: Report,
    /// Requests answered as they should be, warm-up included: what the CPU time is divided by.
    pub answered: u64,
    /// What the load itself took.
    pub cpu_us: u64,
}

/// The answers to one of many who each wait for their own.
#[derive(Debug)]
pub struct Answers {
    tally: Tally,
    answered: u64,
}

impl Default for Answers {
    fn default() -> Answers {
        Answers { tally: Tally::new(1), answered: 0 }
    }
}

impl Answers {
    /// One that is as it should be, just now, to what was begun then; it is measured if that was after `start`.
    pub fn count(&mut self, begun: Instant, start: Instant) {
        let now = Instant::now();
        self.answered += 1;
        if begun >= start {
            self.tally.count(&Outcome::New { count: 1, status: 200 }, now - begun);
            self.tally.span(begun, now);
        }
    }
}

impl Driven {
    /// What all of them saw together, and what that took.
    pub fn by(all: Vec<Answers>, start: Instant, cpu: Duration) -> Result<Driven, LoadError> {
        let (connections, mut together, mut answered) = (all.len(), Tally::new(1), 0);
        for one in all {
            answered += one.answered;
            together.merge(one.tally);
        }
        Ok(Driven {
            report: together.report(connections, start.elapsed())?,
            answered,
            cpu_us: u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_before_the_start_is_answered_and_not_measured() {
        let begun = Instant::now();
        let start = begun + Duration::from_millis(1);
        while Instant::now() < start {}
        let (mut one, mut other) = (Answers::default(), Answers::default());
        one.count(begun, start);
        one.count(start, start);
        other.count(begun, start);
        let driven = Driven::by(vec![one, other], start, Duration::ZERO).unwrap();
        assert_eq!((driven.answered, driven.report.connections), (3, 2));
        assert_eq!(
            (driven.report.requests, driven.report.ok, driven.report.errors_by_status.len()),
            (1, 1, 0)
        );
    }
}

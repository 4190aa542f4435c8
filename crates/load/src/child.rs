//! A load in a separate process, so that its CPU time can be counted: its arguments, and its report
//! to the parent.

use crate::report::{Outcome, Tally};
use crate::{LoadError, Report};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Unmeasured load at the start: connections open, caches fill.
pub const WARMUP: Duration = Duration::from_millis(500);

/// Arguments of every load.
#[derive(Args, Debug)]
pub struct Aim {
    #[arg(long)]
    pub address: SocketAddr,
    #[arg(long)]
    pub api_key: String,
    /// Number of connections, each with one request at a time.
    #[arg(long)]
    pub connections: usize,
    /// Length of the measurement.
    #[arg(long)]
    pub milliseconds: u64,
    /// Prefix of every idempotency key.
    #[arg(long)]
    pub prefix: String,
}

/// The load's report to its parent.
#[derive(Debug, Deserialize, Serialize)]
pub struct Driven {
    pub report: Report,
    /// Correct answers, warm-up included; the divisor of the CPU time.
    pub answered: u64,
    /// CPU time of the load itself, in microseconds.
    pub cpu_us: u64,
}

/// The answers to one of several concurrent clients.
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
    /// Counts a correct answer that has just arrived. It is measured if its request began after
    /// `start`.
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
    /// Merges the answers of all clients into a report with the CPU time used.
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
    fn requests_begun_before_the_start_are_not_measured() {
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

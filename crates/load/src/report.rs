//! The figures of a run: per connection while it runs, as a report at its end.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::histogram::Histogram;

/// The figures of a run. Every request started after the warm-up is in exactly one of `ok`,
/// `errors_by_status`, `transport_errors` and `differing_replays`. Latencies are those of the `ok`
/// ones. A bulk request counts as its number of transfers, each `ok` or not, with one latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub connections: usize,
    /// Requests started during the measurement.
    pub requests: u64,
    /// Answered with 2xx; a replay also with the same answer as the first time.
    pub ok: u64,
    /// Replays among the `ok` requests.
    pub ok_replays: u64,
    /// Refused requests by status.
    pub errors_by_status: BTreeMap<u16, u64>,
    /// Connections refused, cut or silent.
    pub transport_errors: u64,
    /// The first transport error as text.
    pub first_transport_error: Option<String>,
    /// Replays that differ from the first answer. Anything but 0 is a defect of the server.
    pub differing_replays: u64,
    /// From the end of the warm-up until the last measured answer, at least the planned duration.
    pub seconds: f64,
    /// Sum of the connections' rates: each divides its `ok` requests by the time from its first
    /// request to its last answer. Dividing by `seconds` would count the end, when some connections
    /// have finished.
    pub per_second: f64,
    /// Median latency in microseconds.
    pub p50_us: u64,
    /// 90th percentile in microseconds.
    pub p90_us: u64,
    /// 99th percentile in microseconds.
    pub p99_us: u64,
    /// 99.9th percentile in microseconds.
    pub p999_us: u64,
    /// Maximum in microseconds.
    pub max_us: u64,
}

/// Progress of a run, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Time under load so far, warm-up included.
    pub elapsed: Duration,
    /// Planned time under load, warm-up included.
    pub total: Duration,
    /// Correct answers, warm-up included.
    pub ok: u64,
    /// All other completed requests, warm-up included.
    pub failed: u64,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Executed now, with this many of its items.
    New {
        count: u64,
        status: u16,
    },
    Replayed,
    Refused(u16),
    Lost(std::io::Error),
    Differs,
}

/// The counts of a connection.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Number of items in a request.
    per_request: u64,
    new: u64,
    replayed: u64,
    refused: BTreeMap<u16, u64>,
    lost: u64,
    first_lost: Option<String>,
    differing: u64,
    latencies: Histogram,
    /// From the first request to the last answer.
    span: Option<(Instant, Instant)>,
    per_second: f64,
}

impl Tally {
    pub(crate) fn new(per_request: u64) -> Self {
        Self {
            per_request,
            new: 0,
            replayed: 0,
            refused: BTreeMap::new(),
            lost: 0,
            first_lost: None,
            differing: 0,
            latencies: Histogram::default(),
            span: None,
            per_second: 0.0,
        }
    }

    /// Number of correctly executed items of a request.
    pub(crate) fn done(&self, outcome: &Outcome) -> u64 {
        match outcome {
            Outcome::New { count, .. } => *count.min(&self.per_request),
            Outcome::Replayed => self.per_request,
            Outcome::Refused(_) | Outcome::Lost(_) | Outcome::Differs => 0,
        }
    }

    pub(crate) fn count(&mut self, outcome: &Outcome, latency: Duration) {
        let done = self.done(outcome);
        if done > 0 {
            self.latencies.record(latency);
        }
        let rest = self.per_request - done;
        match outcome {
            Outcome::New { status, .. } => {
                self.new += done;
                self.refuse(*status, rest);
            }
            Outcome::Replayed => self.replayed += done,
            Outcome::Refused(status) => self.refuse(*status, rest),
            Outcome::Lost(error) => {
                self.lost += rest;
                self.first_lost.get_or_insert_with(|| error.to_string());
            }
            Outcome::Differs => self.differing += rest,
        }
    }

    /// Extends the time span by a counted request.
    pub(crate) fn span(&mut self, begun: Instant, answered: Instant) {
        let (first, _) = self.span.get_or_insert((begun, answered));
        self.span = Some((*first, answered));
    }

    fn refuse(&mut self, status: u16, count: u64) {
        if count > 0 {
            *self.refused.entry(status).or_default() += count;
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.per_second = sum(self.per_second, other.rate());
        self.new += other.new;
        self.replayed += other.replayed;
        self.lost += other.lost;
        self.differing += other.differing;
        for (status, count) in other.refused {
            self.refuse(status, count);
        }
        if self.first_lost.is_none() {
            self.first_lost = other.first_lost;
        }
        self.latencies.merge(&other.latencies);
    }

    fn rate(&self) -> f64 {
        self.span.map_or(self.per_second, |(begun, answered)| per_second(self.ok(), answered - begun))
    }

    pub(crate) fn ok(&self) -> u64 {
        self.new + self.replayed
    }

    pub(crate) fn failed(&self) -> u64 {
        self.refused.values().sum::<u64>() + self.lost + self.differing
    }

    /// Sums up a run. Fails if nothing succeeded, because such figures would be worthless.
    pub(crate) fn report(self, connections: usize, took: Duration) -> Result<Report, LoadError> {
        let requests = self.ok() + self.failed();
        if self.ok() == 0 {
            return Err(LoadError::NothingSucceeded { requests, detail: self.failures() });
        }
        Ok(Report {
            connections,
            requests,
            ok: self.ok(),
            ok_replays: self.replayed,
            per_second: self.rate(),
            seconds: took.as_secs_f64(),
            p50_us: self.latencies.percentile_us(500),
            p90_us: self.latencies.percentile_us(900),
            p99_us: self.latencies.percentile_us(990),
            p999_us: self.latencies.percentile_us(999),
            max_us: self.latencies.max_us(),
            errors_by_status: self.refused,
            transport_errors: self.lost,
            first_transport_error: self.first_lost,
            differing_replays: self.differing,
        })
    }

    fn failures(&self) -> String {
        let mut text = format!("{} transport errors, {} differing replays", self.lost, self.differing);
        if let Some(first) = &self.first_lost {
            let _ = write!(text, ", first: {first}");
        }
        for (status, count) in &self.refused {
            let _ = write!(text, ", {count} with status {status}");
        }
        text
    }
}

#[expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "a rate for people to read")]
pub(crate) fn per_second(count: u64, took: Duration) -> f64 {
    if took.is_zero() { 0.0 } else { count as f64 / took.as_secs_f64() }
}

#[expect(clippy::float_arithmetic, reason = "a rate for people to read")]
fn sum(one: f64, other: f64) -> f64 {
    one + other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_in_one_figure() {
        let mut tally = Tally::new(1);
        let new = || Outcome::New { count: 1, status: 201 };
        let lost = || Outcome::Lost(std::io::ErrorKind::ConnectionReset.into());
        for outcome in [new(), Outcome::Replayed, Outcome::Refused(503), lost(), Outcome::Differs] {
            tally.count(&outcome, Duration::from_micros(100));
        }
        let mut other = Tally::new(1);
        other.count(&Outcome::Refused(503), Duration::ZERO);
        other.count(&new(), Duration::from_micros(300));
        let begun = Instant::now();
        tally.span(begun, begun + Duration::from_millis(500));
        tally.span(begun + Duration::from_millis(500), begun + Duration::from_secs(1));
        other.span(begun, begun + Duration::from_millis(500));
        let mut total = Tally::new(1);
        total.merge(tally);
        total.merge(other);
        let report = total.report(2, Duration::from_millis(1500)).unwrap();
        assert_eq!((report.requests, report.ok, report.ok_replays), (7, 3, 1));
        assert_eq!((report.transport_errors, report.differing_replays), (1, 1));
        assert_eq!(report.errors_by_status, BTreeMap::from([(503, 2)]));
        assert_eq!(report.max_us, 300);
        assert_eq!(report.first_transport_error.as_deref(), Some("connection reset"));
        let json = serde_json::to_string(&report).unwrap();
        assert!(json.contains(r#""per_second":4.0"#), "2 in a second and 1 in half a second: {json}");
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }

    #[test]
    fn many_in_one_request_are_counted_one_by_one() {
        let mut tally = Tally::new(10);
        tally.count(&Outcome::New { count: 7, status: 200 }, Duration::from_micros(100));
        tally.count(&Outcome::New { count: 10, status: 200 }, Duration::from_micros(200));
        tally.count(&Outcome::Refused(400), Duration::from_micros(900));
        tally.count(&Outcome::Lost(std::io::ErrorKind::ConnectionReset.into()), Duration::from_micros(900));
        let report = tally.report(1, Duration::from_secs(1)).unwrap();
        assert_eq!((report.requests, report.ok, report.transport_errors), (40, 17, 10));
        assert_eq!(report.errors_by_status, BTreeMap::from([(200, 3), (400, 10)]));
        assert_eq!(report.max_us, 200, "an answer that did nothing has no latency");
    }

    #[test]
    fn a_run_without_success_is_an_error_with_counts() {
        let mut tally = Tally::new(1);
        tally.count(&Outcome::Refused(429), Duration::ZERO);
        let message = tally.report(1, Duration::from_secs(1)).unwrap_err().to_string();
        assert!(message.contains("none of 1 requests") && message.contains("1 with status 429"), "{message}");
    }
}

//! A measurement, and the median of several.

use counterfoil_load::child::Driven;
use serde::Serialize;
use std::time::Duration;

/// A measurement of a server under load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Sample {
    pub(super) per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    /// CPU time of the measured processes per answered request.
    pub(super) cpu_us: f64,
    /// Change sets in one durable write; 0 for servers that write nothing.
    pub(super) sets_per_write: f64,
    /// Number of failed requests.
    pub(super) failed: f64,
}

impl Sample {
    /// `cpu` is the CPU time used while the load ran.
    pub(super) fn of(driven: &Driven, cpu: Duration, sets_per_write: f64) -> Sample {
        let report = &driven.report;
        Sample {
            per_second: report.per_second,
            p50_ms: ms(report.p50_us),
            p99_ms: ms(report.p99_us),
            p999_ms: ms(report.p999_us),
            cpu_us: cpu.as_secs_f64() * 1e6 / number(driven.answered.max(1)),
            sets_per_write,
            failed: number(report.requests.saturating_sub(report.ok)),
        }
    }

    /// The latency added to that of `other`: at the median and at the 99th percentile.
    pub(super) fn over(&self, other: &Sample) -> (f64, f64) {
        (self.p50_ms - other.p50_ms, self.p99_ms - other.p99_ms)
    }

    /// The median of each figure separately; failures add up.
    pub(super) fn middle(samples: &[Sample]) -> Sample {
        let of = |figure: fn(&Sample) -> f64| median(samples.iter().map(figure).collect());
        Sample {
            per_second: of(|sample| sample.per_second),
            p50_ms: of(|sample| sample.p50_ms),
            p99_ms: of(|sample| sample.p99_ms),
            p999_ms: of(|sample| sample.p999_ms),
            cpu_us: of(|sample| sample.cpu_us),
            sets_per_write: of(|sample| sample.sets_per_write),
            failed: samples.iter().map(|sample| sample.failed).sum(),
        }
    }
}

/// The median of `values`; of an even number, the mean of the two in the middle.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match (values.get(half), values.len() % 2) {
        (Some(upper), 0) => (values[half - 1] + upper) / 2.0,
        (Some(middle), _) => *middle,
        (None, _) => 0.0,
    }
}

pub(super) fn ms(us: u64) -> f64 {
    number(us) / 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "figures for people, far below 2^52")]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_not_moved_by_one_bad_round() {
        let sample = |per_second| Sample { per_second, failed: 1.0, ..Sample::default() };
        let middle = Sample::middle(&[sample(10.0), sample(9.0), sample(1.0)]);
        assert_eq!(middle, Sample { per_second: 9.0, failed: 3.0, ..Sample::default() });
        assert_eq!(median(vec![4.0, 1.0]).to_string(), "2.5");
        assert_eq!(median(vec![]).to_string(), "0");
    }
}

//! Results of a run against PostgreSQL.

use crate::bench::figures::Fsync;
use crate::bench::sample::Sample;
use serde::Serialize;
use std::collections::BTreeMap;

/// The product and the usual implementation under the same load.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Pair {
    pub(super) product: Sample,
    pub(super) usual: Sample,
}

impl Pair {
    /// The rate as a multiple of the usual one.
    pub(super) fn rate(&self) -> f64 {
        times(self.product.per_second, self.usual.per_second)
    }

    /// The median latency as a multiple of the usual one.
    pub(super) fn latency(&self) -> f64 {
        times(self.product.p50_ms, self.usual.p50_ms)
    }
}

/// NaN if `usual` is zero, so that every comparison fails.
fn times(found: f64, usual: f64) -> f64 {
    if usual > 0.0 { found / usual } else { f64::NAN }
}

/// Results of a whole run.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    /// Commits without HTTP, by number of producers.
    pub(super) commits: BTreeMap<usize, Pair>,
    /// Charges over HTTP, by number of connections.
    pub(super) charges: BTreeMap<usize, Pair>,
    pub(super) fsync: Fsync,
    /// Share of the machine used by other programs.
    pub(super) neighbours_percent: f64,
}

impl Figures {
    /// Number of failed requests in all measurements.
    pub(super) fn failed(&self) -> f64 {
        let pairs = self.commits.values().chain(self.charges.values());
        pairs.flat_map(|pair| [&pair.product, &pair.usual]).map(|sample| sample.failed).sum()
    }
}

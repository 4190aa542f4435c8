//! Results of a run of the benchmark.

use super::sample::{Sample, median, ms};
use counterfoil_load::limits::FsyncReport;
use serde::Serialize;
use std::collections::BTreeMap;

/// The four servers under the same load.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Level {
    pub(super) echo: Sample,
    pub(super) proxy: Sample,
    pub(super) charge: Sample,
    pub(super) replay: Sample,
}

/// The ordinary proxy and the product between the same client and provider, with `CROWD`
/// connections.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Ordinary {
    pub(super) proxy: Sample,
    pub(super) charge: Sample,
}

/// A durable write on this disk.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Fsync {
    pub(super) per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

impl Fsync {
    /// The median of each figure separately.
    pub(super) fn middle(reports: &[FsyncReport]) -> Fsync {
        let of = |figure: fn(&FsyncReport) -> f64| median(reports.iter().map(figure).collect());
        Fsync {
            per_second: of(|it| it.per_second),
            p50_ms: of(|it| ms(it.p50_us)),
            p99_ms: of(|it| ms(it.p99_us)),
        }
    }
}

/// The same load on a small and on a large store.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Growth {
    pub(super) small_keys: u64,
    pub(super) small: Sample,
    pub(super) large_keys: u64,
    pub(super) large: Sample,
}

/// Results of a whole run.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    /// By number of connections.
    pub(super) levels: BTreeMap<usize, Level>,
    pub(super) ordinary: Ordinary,
    pub(super) fsync: Fsync,
    pub(super) growth: Growth,
    pub(super) bytes_per_charge: f64,
    /// Share of the machine used by other programs.
    pub(super) neighbours_percent: f64,
}

impl Figures {
    /// Number of failed requests in all measurements.
    pub(super) fn failed(&self) -> f64 {
        let levels =
            self.levels.values().flat_map(|level| [&level.echo, &level.proxy, &level.charge, &level.replay]);
        let others = [&self.ordinary.proxy, &self.ordinary.charge, &self.growth.small, &self.growth.large];
        levels.chain(others).map(|sample| sample.failed).sum()
    }
}

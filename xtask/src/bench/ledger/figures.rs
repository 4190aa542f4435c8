//! Results of a measurement of the ledger.

use super::cell::Cell;
use crate::bench::figures::Fsync;
use crate::bench::sample::Sample;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Results of a whole run.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    #[serde(serialize_with = "listed")]
    pub(super) cells: BTreeMap<Cell, Sample>,
    pub(super) fsync: Fsync,
    pub(super) bytes_per_transfer: f64,
    /// Share of the machine used by other programs.
    pub(super) neighbours_percent: f64,
}

impl Figures {
    pub(super) fn per_second(&self, cell: Cell) -> f64 {
        self.cells.get(&cell).map_or(0.0, |sample| sample.per_second)
    }

    /// Number of failed transfers in all measurements.
    pub(super) fn failed(&self) -> f64 {
        self.cells.values().map(|sample| sample.failed).sum()
    }
}

/// JSON keys must be strings.
fn listed<S: Serializer>(cells: &BTreeMap<Cell, Sample>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        cell: &'a Cell,
        #[serde(flatten)]
        sample: &'a Sample,
    }
    serializer.collect_seq(cells.iter().map(|(cell, sample)| Line { cell, sample }))
}

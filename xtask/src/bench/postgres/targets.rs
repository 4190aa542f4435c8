//! Targets on PostgreSQL: multiples of the usual implementation on the same server.

use super::figures::{Figures, Pair};
use crate::bench::targets::{ALONE, CROWD, Target};
use std::collections::BTreeMap;

/// Many times more clients than the usual pool has connections.
pub(super) const THRONG: usize = 256;
/// Change sets per second, as a multiple of the usual commits.
const COMMITS_TIMES: f64 = 7.0;
/// Charges per second over HTTP, as a multiple of the usual charges.
const CHARGES_TIMES: f64 = 4.0;
/// A single client must not wait longer than usual.
const ALONE_TIMES: f64 = 1.0;
const UNIT: &str = "times";

/// All targets with their results.
pub(super) fn targets(figures: &Figures) -> Vec<Target> {
    let mut targets = judged("change sets/s", "commit", &figures.commits, COMMITS_TIMES);
    targets.extend(judged("charges/s over HTTP", "charge over HTTP", &figures.charges, CHARGES_TIMES));
    targets
}

fn judged(rate: &str, one: &str, pairs: &BTreeMap<usize, Pair>, goal: f64) -> Vec<Target> {
    let at = |level: usize| pairs.get(&level).cloned().unwrap_or_default();
    let mut targets: Vec<Target> = [CROWD, THRONG]
        .map(|level| {
            Target::at_least(&format!("{rate} at {level}, of the usual"), goal, at(level).rate(), UNIT)
        })
        .into();
    let alone = at(ALONE).latency();
    targets.push(Target::at_most(
        &format!("one {one} at a time, p50, of the usual"),
        ALONE_TIMES,
        alone,
        UNIT,
    ));
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample::Sample;

    fn good() -> Figures {
        let sample = |per_second| Sample { per_second, p50_ms: 1.0, ..Sample::default() };
        let pair = Pair { product: sample(70_000.0), usual: sample(10_000.0) };
        let levels: BTreeMap<usize, Pair> = [ALONE, CROWD, THRONG].map(|level| (level, pair.clone())).into();
        Figures { commits: levels.clone(), charges: levels, ..Figures::default() }
    }

    fn missed(change: fn(&mut Figures)) -> Vec<usize> {
        let mut figures = good();
        change(&mut figures);
        let judged = targets(&figures).into_iter().enumerate();
        judged.filter(|(_, target)| !target.reached).map(|(index, _)| index).collect()
    }

    fn at(pairs: &mut BTreeMap<usize, Pair>, level: usize) -> &mut Sample {
        &mut pairs.get_mut(&level).unwrap().product
    }

    #[test]
    fn each_target_is_missed_by_its_own_figure() {
        assert_eq!(missed(|_| {}), [0_usize; 0]);
        assert_eq!(missed(|figures| at(&mut figures.commits, CROWD).per_second = 69_999.0), [0]);
        assert_eq!(missed(|figures| at(&mut figures.commits, THRONG).per_second = 69_999.0), [1]);
        assert_eq!(missed(|figures| at(&mut figures.commits, ALONE).p50_ms = 1.01), [2]);
        assert_eq!(missed(|figures| at(&mut figures.charges, CROWD).per_second = 39_999.0), [3]);
        assert_eq!(missed(|figures| at(&mut figures.charges, THRONG).per_second = 39_999.0), [4]);
        assert_eq!(missed(|figures| at(&mut figures.charges, ALONE).p50_ms = 1.01), [5]);
    }

    #[test]
    fn targets_without_measurements_are_missed() {
        assert!(targets(&Figures::default()).iter().all(|target| !target.reached));
    }
}

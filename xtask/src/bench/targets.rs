//! Targets with their results. They are ratios to this machine's limits where that makes sense.

use super::figures::{Figures, Level};
use serde::Serialize;

/// The number of connections of most targets.
pub(super) const CROWD: usize = 64;
/// A single client.
pub(super) const ALONE: usize = 1;

/// A target with its result.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Target {
    pub(super) what: String,
    pub(super) goal: String,
    pub(super) found: String,
    pub(super) reached: bool,
}

impl Target {
    pub(super) fn at_least(what: &str, goal: f64, found: f64, unit: &str) -> Target {
        Target::new(what, ("≥", goal), found, unit, found >= goal)
    }

    pub(super) fn at_most(what: &str, goal: f64, found: f64, unit: &str) -> Target {
        Target::new(what, ("≤", goal), found, unit, found <= goal)
    }

    fn new(what: &str, (sign, goal): (&str, f64), found: f64, unit: &str, reached: bool) -> Target {
        // Enough digits that a narrowly missed target does not look reached.
        let goal = format!("{sign} {goal:.3} {unit}");
        Target { what: what.to_owned(), goal, found: format!("{found:.3} {unit}"), reached }
    }
}

/// All targets with their results.
pub(super) fn targets(figures: &Figures) -> Vec<Target> {
    let nothing = Level::default();
    let crowd = figures.levels.get(&CROWD).unwrap_or(&nothing);
    let alone = figures.levels.get(&ALONE).unwrap_or(&nothing);
    let ordinary = &figures.ordinary;
    let (over_p50, over_p99) = ordinary.charge.over(&ordinary.proxy);
    let growth = &figures.growth;
    let alone_goal = 2.0 * figures.fsync.p50_ms + alone.proxy.p50_ms + 0.3;
    let keys = format!("{} keys stored, not {}", growth.large_keys, growth.small_keys);
    vec![
        Target::at_least(
            "charges/s at 64, of an ordinary proxy's",
            50.0,
            percent(ordinary.charge.per_second, ordinary.proxy.per_second),
            "%",
        ),
        Target::at_least(
            "replays/s at 64, of the echo's",
            60.0,
            percent(crowd.replay.per_second, crowd.echo.per_second),
            "%",
        ),
        Target::at_most("own overhead at 64, p50", 3.5, over_p50, "ms"),
        Target::at_most("own overhead at 64, p99", 10.0, over_p99, "ms"),
        Target::at_most(
            "charge at 1, p50: two fsyncs, the proxy and 0.3 ms",
            alone_goal,
            alone.charge.p50_ms,
            "ms",
        ),
        Target::at_most(
            &format!("CPU per charge, {keys}"),
            110.0,
            percent(growth.large.cpu_us, growth.small.cpu_us),
            "%",
        ),
        Target::at_least(
            &format!("charges/s at 64, {keys}"),
            90.0,
            percent(growth.large.per_second, growth.small.per_second),
            "%",
        ),
    ]
}

/// `part` as a percentage of `whole`. NaN if `whole` is zero, so that every comparison fails.
pub(super) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part * 100.0 / whole } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Fsync, Growth, Ordinary};
    use super::super::sample::Sample;
    use super::*;

    fn sample(per_second: f64, p50_ms: f64, p99_ms: f64) -> Sample {
        Sample { per_second, p50_ms, p99_ms, cpu_us: 100.0, ..Sample::default() }
    }

    fn good() -> Figures {
        let level = Level {
            echo: sample(50_000.0, 0.1, 0.5),
            proxy: sample(16_000.0, 1.0, 5.0),
            charge: sample(8_000.0, 2.5, 12.0),
            replay: sample(30_000.0, 0.2, 1.0),
        };
        Figures {
            ordinary: Ordinary { proxy: level.proxy.clone(), charge: level.charge.clone() },
            levels: [(ALONE, level.clone()), (CROWD, level)].into(),
            fsync: Fsync { p50_ms: 0.6, ..Fsync::default() },
            growth: Growth {
                small: sample(8_000.0, 1.0, 1.0),
                large: sample(7_300.0, 1.0, 1.0),
                ..Growth::default()
            },
            ..Figures::default()
        }
    }

    fn missed(change: fn(&mut Figures)) -> Vec<usize> {
        let mut figures = good();
        change(&mut figures);
        let judged = targets(&figures).into_iter().enumerate();
        judged.filter(|(_, target)| !target.reached).map(|(index, _)| index).collect()
    }

    fn crowd(figures: &mut Figures) -> &mut Level {
        figures.levels.get_mut(&CROWD).unwrap()
    }

    #[test]
    fn each_target_is_missed_by_its_own_figure() {
        assert_eq!(missed(|_| {}), [0_usize; 0]);
        assert_eq!(missed(|figures| figures.ordinary.charge.per_second = 7_999.0), [0]);
        assert_eq!(missed(|figures| crowd(figures).replay.per_second = 29_999.0), [1]);
        assert_eq!(missed(|figures| figures.ordinary.charge.p50_ms = 4.6), [2]);
        assert_eq!(missed(|figures| figures.ordinary.charge.p99_ms = 15.1), [3]);
        assert_eq!(missed(|figures| figures.fsync.p50_ms = 0.5), [4]);
        assert_eq!(missed(|figures| figures.growth.large.cpu_us = 111.0), [5]);
        assert_eq!(missed(|figures| figures.growth.large.per_second = 7_100.0), [6]);
    }

    #[test]
    fn targets_without_measurements_are_missed() {
        let targets = targets(&Figures::default());
        let reached: Vec<&str> = targets.iter().filter(|it| it.reached).map(|it| it.what.as_str()).collect();
        // Differences and sums of zeros are zeros; every share of zero is missed.
        assert_eq!(
            reached,
            [
                "own overhead at 64, p50",
                "own overhead at 64, p99",
                "charge at 1, p50: two fsyncs, the proxy and 0.3 ms"
            ]
        );
    }
}

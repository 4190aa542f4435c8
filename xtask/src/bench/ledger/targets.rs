//! Targets of the ledger. TigerBeetle's figures are for orientation: a similar machine, real syncs,
//! 64 clients with single transfers or batches of this size.

use super::cell::{Accounts, Cell, Route, SHARDS};
use super::figures::Figures;
use crate::bench::targets::{Target, percent};

/// Multiple of the orientation figure for single transfers.
const SINGLES_TIMES: f64 = 7.0;
/// A hot account with most shards, as a percentage of distinct accounts.
const HOT_PERCENT: f64 = 80.0;

/// TigerBeetle's transfers/s in batches of this size.
pub(super) fn orientation(batch: usize) -> f64 {
    match batch {
        0..10 => 1_400.0,
        10..100 => 14_000.0,
        100..1_000 => 20_000.0,
        1_000.. => 63_000.0,
    }
}

/// All targets with their results.
pub(super) fn targets(figures: &Figures) -> Vec<Target> {
    let found = |way, batch, accounts| figures.per_second(Cell::usual(way, batch, accounts));
    let mut targets = Vec::new();
    for accounts in [Accounts::Distinct, Accounts::Guarded] {
        targets.push(Target::at_least(
            &format!("single transfers/s over HTTP at 64, {accounts}"),
            SINGLES_TIMES * orientation(1),
            found(Route::Http, 1, accounts),
            "/s",
        ));
    }
    for accounts in [Accounts::Distinct, Accounts::Guarded] {
        targets.push(Target::at_least(
            &format!("transfers/s through the engine in batches of 1000, {accounts}"),
            orientation(1_000),
            found(Route::Engine, 1_000, accounts),
            "/s",
        ));
    }
    let shards = SHARDS.into_iter().max().unwrap_or(1);
    for hot in [Accounts::HotDebited { shards }, Accounts::HotCredited { shards }] {
        for distinct in [Accounts::Guarded, Accounts::Distinct] {
            targets.push(Target::at_least(
                &format!("single transfers/s over HTTP at 64, {hot}, of {distinct}"),
                HOT_PERCENT,
                percent(found(Route::Http, 1, hot), found(Route::Http, 1, distinct)),
                "%",
            ));
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::super::cell::cells;
    use super::*;
    use crate::bench::sample::Sample;

    fn missed(change: impl Fn(&mut Figures)) -> Vec<usize> {
        let sample = Sample { per_second: 63_000.0, ..Sample::default() };
        let cells = cells(&[]).into_iter().map(|cell| (cell, sample.clone())).collect();
        let mut figures = Figures { cells, ..Figures::default() };
        change(&mut figures);
        let judged = targets(&figures).into_iter().enumerate();
        judged.filter(|(_, target)| !target.reached).map(|(index, _)| index).collect()
    }

    fn slow(way: Route, batch: usize, accounts: Accounts, per_second: f64) -> impl Fn(&mut Figures) {
        move |figures| {
            let sample = figures.cells.get_mut(&Cell::usual(way, batch, accounts)).unwrap();
            sample.per_second = per_second;
        }
    }

    #[test]
    fn each_target_is_missed_by_its_own_figure() {
        assert_eq!(missed(|_| {}), [0_usize; 0]);
        assert_eq!(missed(slow(Route::Http, 1, Accounts::Distinct, 9_799.0)), [0]);
        assert_eq!(missed(slow(Route::Http, 1, Accounts::Guarded, 9_799.0)), [1]);
        assert_eq!(missed(slow(Route::Engine, 1_000, Accounts::Distinct, 62_999.0)), [2]);
        assert_eq!(missed(slow(Route::Engine, 1_000, Accounts::Guarded, 62_999.0)), [3]);
        assert_eq!(missed(slow(Route::Http, 1, Accounts::HotDebited { shards: 256 }, 50_000.0)), [4, 5]);
        assert_eq!(missed(slow(Route::Http, 1, Accounts::HotCredited { shards: 256 }, 50_000.0)), [6, 7]);
        assert_eq!(missed(slow(Route::Http, 1, Accounts::HotDebited { shards: 1 }, 1.0)), [0_usize; 0]);
    }

    #[test]
    fn targets_without_measurements_are_missed() {
        assert!(targets(&Figures::default()).iter().all(|target| !target.reached));
    }
}

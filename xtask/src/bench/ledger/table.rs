//! Tables of the ledger's figures.

use super::cell::{Accounts, BATCHES, Cell, Route, SHARDS, spread};
use super::figures::Figures;
use super::targets::orientation;
use crate::bench::sample::Sample;
use crate::bench::table::{judged, new, right};
use crate::bench::targets::{Target, percent};
use comfy_table::{Cell as Field, Table};

/// All tables of a run.
pub(super) fn tables(figures: &Figures, targets: &[Target]) -> Vec<Table> {
    vec![all(figures), one_account(figures), rest(figures), judged(targets)]
}

fn all(figures: &Figures) -> Table {
    let mut table = new(&[
        "way",
        "in a request",
        "clients",
        "accounts",
        "transfers/s",
        "of TigerBeetle's",
        "p50 ms",
        "p99 ms",
        "CPU µs",
        "sets per sync",
        "failed",
    ]);
    for (cell, sample) in &figures.cells {
        let mut fields = vec![
            Field::new(cell.way),
            Field::new(cell.batch),
            Field::new(cell.clients),
            Field::new(cell.accounts),
        ];
        fields.extend(figures_of(sample, orientation(cell.batch)).map(right));
        table.add_row(fields);
    }
    table
}

fn figures_of(sample: &Sample, orientation: f64) -> [String; 7] {
    [
        format!("{:.0}", sample.per_second),
        format!("{:.0} %", percent(sample.per_second, orientation)),
        format!("{:.2}", sample.p50_ms),
        format!("{:.2}", sample.p99_ms),
        format!("{:.1}", sample.cpu_us),
        format!("{:.1}", sample.sets_per_write),
        format!("{:.0}", sample.failed),
    ]
}

/// Writes/s on one account by number of shards, beside distinct accounts with the same work.
fn one_account(figures: &Figures) -> Table {
    let mut head = vec!["one account, transfers/s".to_owned(), "no guard".to_owned()];
    head.extend(SHARDS.map(spread));
    head.extend(["distinct guarded".to_owned(), "widest of distinct".to_owned()]);
    let mut table = new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for way in [Route::Http, Route::Engine] {
        for batch in BATCHES {
            let debited = |shards| Accounts::HotDebited { shards };
            table.add_row(row(figures, way, batch, "debited", debited));
            if batch == 1 {
                let credited = |shards| Accounts::HotCredited { shards };
                table.add_row(row(figures, way, batch, "credited", credited));
            }
        }
    }
    table
}

fn row(
    figures: &Figures,
    way: Route,
    batch: usize,
    side: &str,
    accounts: impl Fn(u16) -> Accounts,
) -> Vec<Field> {
    let rate = |accounts| figures.per_second(Cell::usual(way, batch, accounts));
    let shown = |accounts| right(format!("{:.0}", rate(accounts)));
    let mut fields = vec![Field::new(format!("{way}, {batch} in a request, {side}")), shown(Accounts::Hot)];
    fields.extend(SHARDS.iter().map(|&shards| shown(accounts(shards))));
    let widest = SHARDS.into_iter().max().map_or(0.0, |shards| rate(accounts(shards)));
    let share = percent(widest, rate(Accounts::Guarded));
    fields.extend([shown(Accounts::Guarded), right(format!("{share:.0} %"))]);
    fields
}

fn rest(figures: &Figures) -> Table {
    let mut table = new(&["beside", "found"]);
    let fsync = &figures.fsync;
    for (what, found) in [
        (
            "append + fdatasync (raw limit), p50 / p99",
            format!("{:.0}/s, {:.2} / {:.2} ms", fsync.per_second, fsync.p50_ms, fsync.p99_ms),
        ),
        ("bytes on disk per transfer over HTTP", format!("{:.0}", figures.bytes_per_transfer)),
        (
            "taken by other programs meanwhile (noise)",
            format!("{:.0} % of the machine", figures.neighbours_percent),
        ),
    ] {
        table.add_row([Field::new(what), right(found)]);
    }
    table
}

//! Tables of the figures on PostgreSQL.

use super::figures::{Figures, Pair};
use crate::bench::sample::Sample;
use crate::bench::table::{judged, new, right};
use crate::bench::targets::Target;
use comfy_table::{Cell, Color, Table};
use std::collections::BTreeMap;

/// All tables of a run.
pub(super) fn tables(figures: &Figures, targets: &[Target]) -> Vec<Table> {
    vec![
        pairs("producers", "commits/s", &figures.commits),
        pairs("connections", "charges/s over HTTP", &figures.charges),
        rest(figures),
        judged(targets),
    ]
}

fn pairs(by: &str, rate: &str, pairs: &BTreeMap<usize, Pair>) -> Table {
    let head = [
        by,
        "",
        rate,
        "times the usual",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "CPU µs",
        "sets per write",
        "failed",
    ];
    let mut table = new(&head);
    for (level, pair) in pairs {
        for (name, colour, sample, times) in [
            ("usual", Color::DarkGrey, &pair.usual, String::new()),
            ("product", Color::Cyan, &pair.product, format!("{:.2}", pair.rate())),
        ] {
            let mut cells = vec![Cell::new(level), Cell::new(name).fg(colour)];
            cells.extend(figures_of(sample, times).map(right));
            table.add_row(cells);
        }
    }
    table
}

fn figures_of(sample: &Sample, times: String) -> [String; 8] {
    [
        format!("{:.0}", sample.per_second),
        times,
        format!("{:.2}", sample.p50_ms),
        format!("{:.2}", sample.p99_ms),
        format!("{:.2}", sample.p999_ms),
        format!("{:.0}", sample.cpu_us),
        format!("{:.1}", sample.sets_per_write),
        format!("{:.0}", sample.failed),
    ]
}

fn rest(figures: &Figures) -> Table {
    let mut table = new(&["beside", "found"]);
    let fsync = &figures.fsync;
    for (what, found) in [
        (
            "append + fdatasync (raw limit), p50 / p99",
            format!("{:.0}/s, {:.2} / {:.2} ms", fsync.per_second, fsync.p50_ms, fsync.p99_ms),
        ),
        (
            "taken by other programs meanwhile (noise)",
            format!("{:.0} % of the machine", figures.neighbours_percent),
        ),
    ] {
        table.add_row([Cell::new(what), right(found)]);
    }
    table
}

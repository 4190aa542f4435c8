//! Tables of the figures, coloured on a terminal.

use super::figures::{Figures, Ordinary};
use super::sample::Sample;
use super::targets::{CROWD, Target, percent};
use comfy_table::{Cell, CellAlignment, Color, Table, presets};

/// All tables of a run.
pub(super) fn tables(figures: &Figures, targets: &[Target]) -> Vec<Table> {
    vec![loads(figures), layer(figures), judged(targets)]
}

fn loads(figures: &Figures) -> Table {
    let head = [
        "connections",
        "server",
        "per second",
        "of echo",
        "of proxy",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "CPU µs",
        "failed",
    ];
    let mut table = new(&head);
    for (connections, level) in &figures.levels {
        for (name, sample, colour) in [
            ("echo (raw limit)", &level.echo, Color::DarkGrey),
            ("bare proxy (raw limit)", &level.proxy, Color::DarkGrey),
            ("charges", &level.charge, Color::Cyan),
            ("replays", &level.replay, Color::Cyan),
        ] {
            let mut cells = vec![Cell::new(connections), Cell::new(name).fg(colour)];
            cells.extend(figures_of(sample, level.echo.per_second, level.proxy.per_second).map(right));
            table.add_row(cells);
        }
    }
    let Ordinary { proxy, charge } = &figures.ordinary;
    let echo = figures.levels.get(&CROWD).map_or(f64::NAN, |level| level.echo.per_second);
    for (name, sample, colour) in
        [("ordinary proxy", proxy, Color::DarkGrey), ("charges, ordinarily", charge, Color::Cyan)]
    {
        let mut cells = vec![Cell::new(CROWD), Cell::new(name).fg(colour)];
        cells.extend(figures_of(sample, echo, proxy.per_second).map(right));
        table.add_row(cells);
    }
    table
}

fn figures_of(sample: &Sample, echo: f64, proxy: f64) -> [String; 8] {
    [
        format!("{:.0}", sample.per_second),
        format!("{:.0} %", percent(sample.per_second, echo)),
        format!("{:.0} %", percent(sample.per_second, proxy)),
        format!("{:.2}", sample.p50_ms),
        format!("{:.2}", sample.p99_ms),
        format!("{:.2}", sample.p999_ms),
        format!("{:.0}", sample.cpu_us),
        format!("{:.0}", sample.failed),
    ]
}

fn layer(figures: &Figures) -> Table {
    let mut table = new(&["what the product itself costs", "found"]);
    let mut row = |what: String, found: String| {
        table.add_row([Cell::new(what), right(found)]);
    };
    for (connections, level) in &figures.levels {
        let at = format!("at {connections}");
        let (p50, p99) = level.charge.over(&level.proxy);
        row(format!("overhead over the bare proxy {at}, p50 / p99"), format!("{p50:.2} / {p99:.2} ms"));
        let cpu = level.charge.cpu_us - level.proxy.cpu_us;
        row(format!("CPU over the bare proxy {at}, all processes"), format!("{cpu:.0} µs per charge"));
        // Rates depend on how the kernel spreads a few threads over the cores; CPU time hardly
        // does.
        let charge = percent(level.charge.cpu_us, level.proxy.cpu_us);
        let replay = percent(level.replay.cpu_us, level.echo.cpu_us);
        row(
            format!("CPU {at}: charge, of a bare proxy's / replay, of an echo's"),
            format!("{charge:.0} / {replay:.0} %"),
        );
        row(format!("change sets per durable write {at}"), format!("{:.1}", level.charge.sets_per_write));
        let durable = percent(level.charge.per_second, figures.fsync.per_second);
        row(format!("charges/s {at}, of bare fsyncs/s"), format!("{durable:.0} %"));
    }
    let fsync = &figures.fsync;
    row(
        "append + fdatasync (raw limit), p50 / p99".to_owned(),
        format!("{:.0}/s, {:.2} / {:.2} ms", fsync.per_second, fsync.p50_ms, fsync.p99_ms),
    );
    row("bytes on disk per charge".to_owned(), format!("{:.0}", figures.bytes_per_charge));
    row(
        "taken by other programs meanwhile (noise)".to_owned(),
        format!("{:.0} % of the machine", figures.neighbours_percent),
    );
    let growth = &figures.growth;
    for (keys, sample) in [(growth.small_keys, &growth.small), (growth.large_keys, &growth.large)] {
        row(
            format!("charges at 64 with {keys} keys stored"),
            format!("{:.0}/s, {:.0} µs CPU", sample.per_second, sample.cpu_us),
        );
    }
    table
}

pub(super) fn judged(targets: &[Target]) -> Table {
    let mut table = new(&["target", "goal", "found", "reached"]);
    for target in targets {
        let (word, colour) = if target.reached { ("yes", Color::Green) } else { ("no", Color::Red) };
        table.add_row([
            Cell::new(&target.what),
            right(target.goal.clone()),
            right(target.found.clone()).fg(colour),
            Cell::new(word).fg(colour),
        ]);
    }
    table
}

pub(super) fn new(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_header(head);
    table
}

pub(super) fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

//! The ledger alone: transfers over HTTP and through the engine's interface, on distinct accounts
//! and on one shared account. TigerBeetle's figures stand beside them for orientation.

mod cell;
mod chart;
mod direct;
pub(crate) mod engine;
mod figures;
mod server;
mod table;
mod targets;

use super::figures::Fsync;
use super::neighbours::Neighbours;
use super::sample::Sample;
use super::{Bench, Found, Place};
use crate::failure::Result;
use crate::process::Product;
use crate::progress::Progress;
use cell::{Cell, Route, cells};
use direct::Direct;
use figures::Figures;
use server::OverHttp;
use std::collections::BTreeMap;
use std::time::Duration;

/// Measures every cell in every round.
pub(super) async fn measure(bench: &Bench, place: &Place<'_>) -> Result<Found> {
    let cells = cells(&bench.connections);
    let duration = Duration::from_secs(bench.seconds);
    let progress = Progress::new(bench.rounds * (cells.len() as u64 + 1) + 1);
    progress.show(0, "opening and funding accounts");
    let product = Product::new(place.counterfoil, place.directory);
    let (simulator, provider) = product.simulator().await?;
    let mut http = OverHttp::start(&product, provider, place).await?;
    let mut direct = Direct::start(place).await?;

    let mut neighbours = Neighbours::default();
    let mut taken: BTreeMap<Cell, Vec<Sample>> = BTreeMap::new();
    let mut fsyncs = Vec::new();
    let mut done = 1;
    for round in 1..=bench.rounds {
        progress.show(done, &format!("round {round}: append + fdatasync"));
        fsyncs.push(super::sync_once(place.directory)?);
        done += 1;
        for &cell in &cells {
            progress.show(done, &format!("round {round}: {cell}"));
            let sample = match cell.way {
                Route::Http => http.measure(cell, duration, &mut neighbours).await?,
                Route::Engine => direct.measure(cell, duration, &mut neighbours).await?,
            };
            taken.entry(cell).or_default().push(sample);
            done += 1;
        }
    }
    drop((progress, simulator));
    let figures = Figures {
        cells: taken.iter().map(|(cell, samples)| (*cell, Sample::middle(samples))).collect(),
        fsync: Fsync::middle(&fsyncs),
        bytes_per_transfer: http.bytes_per_transfer(),
        neighbours_percent: neighbours.percent(),
    };
    let targets = targets::targets(&figures);
    Ok(Found {
        tables: table::tables(&figures, &targets),
        json: serde_json::json!({ "figures": figures, "targets": targets }),
        failed: figures.failed(),
    })
}

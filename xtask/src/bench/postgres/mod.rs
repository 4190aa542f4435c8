//! The product on PostgreSQL beside the usual implementation: one server, the same durability, the
//! same minutes. Commits without HTTP come first, then charges over HTTP with the same provider.

mod charge;
mod database;
mod figures;
pub(crate) mod producers;
mod stage;
mod table;
mod targets;
pub(crate) mod usual;

use super::figures::Fsync;
use super::sample::Sample;
use super::targets::{ALONE, CROWD};
use super::{Bench, Found, Place};
use crate::failure::Result;
use crate::progress::Progress;
use figures::{Figures, Pair};
use producers::By;
use stage::{Stage, What};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use targets::THRONG;

/// Samples of both sides, by measurement and number of clients.
type Taken = BTreeMap<(What, usize), [Vec<Sample>; 2]>;

/// Measures everything in every round.
pub(super) async fn measure(bench: &Bench, place: &Place<'_>) -> Result<Found> {
    let asked = bench.connections.iter().copied();
    let levels: BTreeSet<usize> = asked.chain([ALONE, CROWD, THRONG]).collect();
    let progress = Progress::new(bench.rounds * (levels.len() as u64 * 4 + 1) + 1);
    progress.show(0, "starting PostgreSQL and the servers");
    let mut stage = Stage::set(place).await?;
    let duration = Duration::from_secs(bench.seconds);
    let mut taken = Taken::new();
    let mut fsyncs = Vec::new();
    let mut done = 1;
    for round in 1..=bench.rounds {
        progress.show(done, &format!("round {round}: append + fdatasync"));
        fsyncs.push(super::sync_once(place.directory)?);
        done += 1;
        for what in [What::Commits, What::Charges] {
            for &level in &levels {
                let taken = taken.entry((what, level)).or_default();
                for (by, taken) in [By::Usual, By::Store].into_iter().zip(taken) {
                    progress.show(done, &format!("round {round}: {what:?} by {by:?} with {level}"));
                    taken.push(stage.measure(what, by, level, duration).await?);
                    done += 1;
                }
            }
        }
    }
    drop(progress);
    let figures = Figures {
        commits: pairs(&taken, What::Commits),
        charges: pairs(&taken, What::Charges),
        fsync: Fsync::middle(&fsyncs),
        neighbours_percent: stage.neighbours.percent(),
    };
    let targets = targets::targets(&figures);
    Ok(Found {
        tables: table::tables(&figures, &targets),
        json: serde_json::json!({ "figures": figures, "targets": targets }),
        failed: figures.failed(),
    })
}

fn pairs(taken: &Taken, wanted: What) -> BTreeMap<usize, Pair> {
    let of_it = taken.iter().filter(|((what, _), _)| *what == wanted);
    of_it
        .map(|((_, level), samples)| {
            let [usual, product] = samples.each_ref().map(|samples| Sample::middle(samples));
            (*level, Pair { product, usual })
        })
        .collect()
}

//! `bench`: compares the product with the raw limits of the same machine and an ordinary proxy, in
//! the same minutes. The figures are ratios, so a slow machine is no excuse. `--ledger` measures
//! the ledger alone; `--store postgres` compares with the usual implementation on PostgreSQL.
//! Rounds are interleaved and their median counts.

#![expect(clippy::float_arithmetic, reason = "figures for people, none of them money")]

pub(crate) mod child;
mod disk;
mod figures;
pub(crate) mod ledger;
mod neighbours;
pub(crate) mod postgres;
mod runtime;
mod sample;
mod scrape;
mod server;
mod stage;
mod table;
mod targets;

use crate::compile::{self, Profile};
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use clap::{Args, ValueEnum};
use comfy_table::Table;
use counterfoil_load::limits::fsync::{self, FsyncReport};
use figures::{Figures, Fsync, Growth, Level, Ordinary};
use sample::{Sample, number};
use server::Server;
use stage::{LoadTarget, Run, Stage};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use targets::{ALONE, CROWD, targets};

/// Keys in the small store.
const SMALL: u64 = 1_000;
/// The number of connections that fills a store fastest.
const FILLERS: usize = 256;
const FSYNC_TIME: Duration = Duration::from_secs(1);

/// The product's store, which decides what the product is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A directory; the raw limits of this machine.
    Embedded,
    /// A PostgreSQL server started for the run; the usual implementation on the same server.
    Postgres,
}

/// Measures the product against the raw limits of this machine and an ordinary proxy, or the usual
/// implementation, in one run.
#[derive(Args)]
pub(crate) struct Bench {
    /// The store. With `postgres`, commits and charges are measured beside the usual
    /// implementation.
    #[arg(long, value_enum, default_value = "embedded")]
    store: Kind,
    /// Measures transfers instead of charges: over HTTP and through the engine, on distinct and on
    /// hot accounts.
    #[arg(long, conflicts_with_all = ["stored", "store"])]
    ledger: bool,
    /// Seconds of each load in each round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Numbers of connections. Those with targets are always measured (1 and 64, 256 on
    /// PostgreSQL).
    #[arg(long, value_delimiter = ',', default_value = "1,8,64,256")]
    connections: Vec<usize>,
    /// Number of rounds; their median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Keys in the large store, which is compared with one of a thousand. The target is for
    /// 1000000.
    #[arg(long, default_value_t = 100_000)]
    stored: u64,
    /// Measures the build that `cargo xtask dist` made with PGO last; otherwise the same build
    /// without PGO.
    #[arg(long)]
    guided: bool,
    /// Writes all figures to this file as well.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Programs and directory of a run.
struct Place<'a> {
    counterfoil: &'a Path,
    /// An optimised build of this program.
    xtask: &'a Path,
    directory: &'a Path,
}

/// Results as tables and as JSON.
struct Found {
    tables: Vec<Table>,
    json: serde_json::Value,
    /// Number of failed requests.
    failed: f64,
}

impl Bench {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let (profile, build) = if self.guided {
            (Profile::Guided, "cargo profile `dist`, with PGO (cargo xtask dist)")
        } else {
            (Profile::Dist, "cargo profile `dist`, without PGO")
        };
        let built = compile::build(profile, &["counterfoil", "xtask"]).await?;
        let (counterfoil, xtask) = (built.path("counterfoil")?, built.path("xtask")?);
        // The build is on a disk; the system's temporary directory may be memory.
        let made = tempfile::Builder::new().prefix("bench-").tempdir_in(xtask.parent().unwrap_or(xtask));
        let directory = made.map_err(Failure::while_("making a directory beside the build"))?;
        if disk::is_memory(directory.path()) {
            eprintln!("xtask: {} is memory: durable writes cost nothing here", directory.path().display());
        }
        let place = Place { counterfoil, xtask, directory: directory.path() };
        let measured = match self.store {
            Kind::Embedded if self.ledger => ledger::measure(&self, &place).await,
            Kind::Embedded => self.charges(&place).await,
            Kind::Postgres => postgres::measure(&self, &place).await,
        };
        if measured.is_err() {
            eprintln!("xtask: stores and logs are kept in {}", directory.keep().display());
        }
        let found = measured?;
        for table in &found.tables {
            println!("{table}");
        }
        println!("build: {build}");
        if let Some(path) = &self.json {
            std::fs::write(path, found.json.to_string())
                .map_err(Failure::while_(format!("writing {}", path.display())))?;
        }
        // A missed target is only a figure; a wrong answer is a failure.
        Ok(if found.failed > 0.0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    async fn charges(&self, place: &Place<'_>) -> Result<Found> {
        let built = compile::build(Profile::Ordinary, &["counterfoil-ordinary"]).await?;
        let mut stage = Stage::set(place, built.path("counterfoil-ordinary")?).await?;
        let measured = self.measure(&mut stage, place.directory).await;
        if measured.is_err() {
            stage.report_ended_processes();
        }
        let figures = measured?;
        let targets = targets(&figures);
        Ok(Found {
            tables: table::tables(&figures, &targets),
            json: serde_json::json!({ "figures": figures, "targets": targets }),
            failed: figures.failed(),
        })
    }

    async fn measure(&self, stage: &mut Stage, directory: &Path) -> Result<Figures> {
        let mut server = stage.server().await?;
        let empty = disk::used(&server.store)?;
        let connections: BTreeSet<usize> = self.connections.iter().copied().chain([ALONE, CROWD]).collect();
        let progress = Progress::new(self.rounds * (connections.len() as u64 * 4 + 3));
        let mut done = 0;
        let mut samples: BTreeMap<usize, [Vec<Sample>; 4]> = BTreeMap::new();
        let mut fsyncs = Vec::new();
        let mut ordinary_server = stage.ordinary_server().await?;
        let mut ordinary: [Vec<Sample>; 2] = Default::default();
        for round in 1..=self.rounds {
            progress.show(done, &format!("round {round}: append + fdatasync"));
            fsyncs.push(sync_once(directory)?);
            done += 1;
            for &connections in &connections {
                let taken = samples.entry(connections).or_default();
                for (target, taken) in
                    [LoadTarget::Echo, LoadTarget::Proxy, LoadTarget::Charge, LoadTarget::Replay]
                        .into_iter()
                        .zip(taken)
                {
                    progress.show(done, &format!("round {round}: {target:?} with {connections} connections"));
                    taken.push(stage.measure(&mut server, self.load(target, connections)).await?);
                    done += 1;
                }
            }
            for (target, taken) in
                [LoadTarget::OrdinaryProxy, LoadTarget::OrdinaryCharge].into_iter().zip(&mut ordinary)
            {
                progress.show(done, &format!("round {round}: {target:?} with {CROWD} connections"));
                taken.push(stage.measure(&mut ordinary_server, self.load(target, CROWD)).await?);
                done += 1;
            }
        }
        drop((progress, ordinary_server));
        let growth = self.growth(stage, &mut server).await?;
        let grown = disk::used(&server.store)?.saturating_sub(empty);
        let [proxy, charge] = ordinary.map(|samples| Sample::middle(&samples));
        Ok(Figures {
            levels: samples.iter().map(|(connections, taken)| (*connections, level(taken))).collect(),
            ordinary: Ordinary { proxy, charge },
            fsync: Fsync::middle(&fsyncs),
            growth,
            neighbours_percent: stage.neighbours.percent(),
            bytes_per_charge: number(grown) / number(server.charges.max(1)),
        })
    }

    fn load(&self, target: LoadTarget, connections: usize) -> Run {
        Run { target, connections, duration: Duration::from_secs(self.seconds) }
    }

    /// Fills the server's store, then measures new small stores and the large one in turns.
    async fn growth(&self, stage: &mut Stage, server: &mut Server) -> Result<Growth> {
        fill(stage, server, self.stored, FILLERS).await?;
        let (mut small_keys, large_keys) = (0, server.charges);
        let progress = Progress::new(self.rounds * 2);
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            progress.show(round * 2, "charges on a small store");
            let mut fresh = stage.server().await?;
            fill(stage, &mut fresh, SMALL, 1).await?;
            small_keys = fresh.charges;
            small.push(stage.measure(&mut fresh, self.load(LoadTarget::Charge, CROWD)).await?);
            drop(fresh);
            progress.show(round * 2 + 1, "charges on a large store");
            large.push(stage.measure(server, self.load(LoadTarget::Charge, CROWD)).await?);
        }
        let (small, large) = (Sample::middle(&small), Sample::middle(&large));
        Ok(Growth { small_keys, small, large_keys, large })
    }
}

/// Charges until `keys` are stored, in short loads so that the progress shows.
async fn fill(stage: &mut Stage, server: &mut Server, keys: u64, connections: usize) -> Result<()> {
    let progress = Progress::new(keys);
    let duration = Duration::from_millis(if keys > SMALL { 5_000 } else { 200 });
    while server.charges < keys {
        progress.show(server.charges, "keys stored");
        stage.measure(server, Run { target: LoadTarget::Charge, connections, duration }).await?;
    }
    Ok(())
}

/// Measures one durable write of the disk.
fn sync_once(directory: &Path) -> Result<FsyncReport> {
    fsync::run(directory, FSYNC_TIME).map_err(Failure::while_("measuring the disk"))
}

fn level(taken: &[Vec<Sample>; 4]) -> Level {
    let [echo, proxy, charge, replay] = taken.each_ref().map(|samples| Sample::middle(samples));
    Level { echo, proxy, charge, replay }
}

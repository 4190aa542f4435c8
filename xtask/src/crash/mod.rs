//! `crash`: kills real processes. Clients charge, capture, void, refund, pay out and transfer while
//! the server is killed at random instants, the provider fails at random, and its connections are
//! cut at random bytes. Then the judge compares clients' history, provider's effects, API, ledger
//! and store.

mod aftermath;
mod attempt;
mod board;
mod client;
mod clock;
mod database;
mod disk;
mod judge;
mod kill;
mod ledger;
mod matrix;
mod mix;
mod order;
mod provider;
mod proxy;
mod report;
mod scene;
mod served;
mod stop;

use crate::compile::{self, Profile};
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use aftermath::{note_answers, replay_all, settle};
use board::{Board, ORDERS_MAX};
use clap::Args;
use client::{Shared, lock};
use clock::Clock;
use counterfoil_prng::Prng;
use disk::Disk;
use judge::{EXAMPLES_MAX, Evidence, Wrong, judge, judge_ledger};
use kill::{FaultCounts, Plan};
use ledger::Watch;
use mix::Mix;
use proxy::Proxy;
use report::{Report, asked};
use scene::{Scene, SceneOptions, StoreKind};
use served::Parked;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::LocalSet;

/// Limit of orders in a campaign on a small disk.
const ORDERS_ON_A_SMALL_DISK: usize = 15_000;

/// Faults of the servers besides kills.
struct ExtraFaults {
    disk: Option<Disk>,
    clock: Option<Clock>,
}

/// Kills the server under load, again and again, and judges from outside what clients and provider
/// saw.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of a command line")]
pub(crate) struct Crash {
    /// The store. With `postgres`, two servers share a database and either may be killed.
    #[arg(long, value_enum, default_value = "embedded")]
    store: StoreKind,
    /// Number of kills.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// A kill comes at a random instant within this time after the server is ready.
    #[arg(long, default_value_t = 800, value_name = "MS")]
    within_ms: u64,
    /// With `--store postgres`: one of this many kills also kills the database.
    #[arg(long, default_value_t = 10, value_name = "KILLS", value_parser = clap::value_parser!(u64).range(1..))]
    database_every: u64,
    /// Percentage of orders that are transfers between guarded accounts; the others are charges.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=100))]
    transfers_percent: u8,
    /// Percentage of other orders that are payouts of earned money, some of them to a closed bank
    /// account.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(0..=50))]
    payouts_percent: u8,
    /// Percentage of charges that are authorized first, then captured or voided by competing
    /// clients. With 0, charges have no captures, voids or refunds.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u8).range(0..=50))]
    held_percent: u8,
    /// Percentage of charges that an account and a card pay together.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=50))]
    split_percent: u8,
    /// Number of concurrent clients.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// Odds, in thousandths, that the provider cuts a connection: this many before executing, this
    /// many after.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(0..=500))]
    drops: u16,
    /// Odds, in thousandths, that the provider answers 500: this many before executing, this many
    /// after.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=500))]
    errors: u16,
    /// Odds, in thousandths, that the provider executes and never answers.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=500))]
    hangs: u16,
    /// A connection to the provider is cut at a random byte, after at most this many; 0 for never.
    #[arg(long, default_value_t = 200_000, value_name = "BYTES")]
    cut_bytes: u64,
    /// Odds, in thousandths, that the provider itself executes twice: a lie that the judge has to
    /// find.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=500))]
    duplicates: u16,
    /// Longest wait for the last answers after the last kill. Unknown outcomes take minutes to
    /// resolve.
    #[arg(long, default_value_t = 300, value_name = "S")]
    settle_seconds: u64,
    /// Repeats an earlier campaign's choices (not its timing).
    #[arg(long)]
    seed: Option<u64>,
    /// The build of the server to kill.
    #[arg(long, value_enum, default_value = "release")]
    profile: Profile,
    /// Kills this binary instead of building one.
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    binary: Option<PathBuf>,
    /// Instead of killing: stops the server (SIGSTOP) for longer than its leases, while the
    /// provider is slow.
    #[arg(long)]
    stop: bool,
    /// Instead of killing only: fills the store's disk under load, again and again. Root mounts a
    /// small disk for it.
    #[arg(long, conflicts_with_all = ["stop", "store", "kills"])]
    disk: bool,
    /// Besides killing: moves the servers' wall clock by hours, back and forth.
    #[arg(long, conflicts_with_all = ["stop", "disk"])]
    clock: bool,
    /// Instead of one campaign: every provider contract with every fault and kills, each in its own
    /// cell.
    #[arg(long, conflicts_with_all = ["stop", "store", "kills", "disk", "clock"])]
    matrix: bool,
    /// With `--matrix`: limits the number of cells.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true, requires = "matrix")]
    cells: usize,
    /// With `--matrix`: tells the servers that their provider keeps every promise, a lie that the
    /// judge has to find.
    #[arg(long, requires = "matrix")]
    blind: bool,
    /// Prints a JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

impl Crash {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let binary = match &self.binary {
            Some(binary) => binary.clone(),
            None => compile::build(self.profile, &["counterfoil"]).await?.path("counterfoil")?.to_owned(),
        };
        let seed = self.seed.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::from(now.subsec_nanos())
        });
        if self.matrix {
            return self.matrix(&binary, seed).await;
        }
        let mut prng = Prng::new(seed);
        let mut extra = ExtraFaults {
            disk: if self.disk { Some(Disk::mount()?) } else { None },
            clock: if self.clock { Some(Clock::build()?) } else { None },
        };
        let options = SceneOptions {
            store: self.store,
            place: extra.disk.as_ref().map(Disk::store),
            lease_ms: self.stop.then_some(stop::LEASE_MS),
            cut_bytes: (self.cut_bytes > 0 && !self.stop).then_some(self.cut_bytes),
            settings: extra.clock.as_ref().map_or(Vec::new(), Clock::settings),
            prng: prng.fork(),
        };
        let mut scene = Scene::set(&binary, options).await?;
        let judged = if self.stop {
            stop::run(&mut scene, seed).await
        } else {
            self.campaign(&mut scene, &extra, seed, prng).await
        };
        let holds = judged.as_ref().is_ok_and(Report::holds);
        // Requested duplicates are no failure to investigate.
        if !holds && self.duplicates == 0 {
            let kept = scene.keep();
            eprintln!("xtask: the remaining files are in {}", kept.display());
            if let Some(disk) = &mut extra.disk {
                eprintln!("xtask: and in {}, which is still mounted", disk.keep().display());
            }
        }
        let report = judged?;
        if self.json {
            println!("{}", report.json());
        } else {
            println!("{}", report.table());
        }
        for example in &report.verdict.examples {
            eprintln!("xtask: {example}");
        }
        Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn matrix(&self, binary: &Path, seed: u64) -> Result<ExitCode> {
        let matrix = LocalSet::new().run_until(matrix::run(binary, self.cells, self.blind, seed)).await?;
        if self.json {
            println!("{}", matrix.json());
        } else {
            println!("{}", matrix.tables());
        }
        for example in matrix.examples().take(EXAMPLES_MAX) {
            eprintln!("xtask: {example}");
        }
        Ok(if matrix.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn campaign(
        &self,
        scene: &mut Scene,
        extra: &ExtraFaults,
        seed: u64,
        mut prng: Prng,
    ) -> Result<Report> {
        let begun = Instant::now();
        let wallets = ledger::open(&scene.address).await?;
        provider::set_faults(scene.provider, &self.faults(prng.next_u64())).await?;
        let mix = Mix {
            transfers: self.transfers_percent.into(),
            payouts: self.payouts_percent.into(),
            held: self.held_percent.into(),
            split: self.split_percent.into(),
            wallets,
        };
        // A small disk has no room for more.
        let made_max = if extra.disk.is_some() { ORDERS_ON_A_SMALL_DISK } else { ORDERS_MAX };
        let board: Shared = Arc::new(Mutex::new(Board::new(prng.fork(), mix, made_max)));
        let clients = client::start(usize::from(self.clients), &scene.address, &board, &mut prng);
        let watch = Watch::start(&scene.address);

        let counts = self.inflict_faults(scene, extra, &board, &mut prng).await?;
        provider::clear_faults(scene.provider).await?;
        lock(&board).close();
        settle(clients, &board, Duration::from_secs(self.settle_seconds)).await;
        let below = watch.end().await?;

        let (orders, differing, strange) = {
            let mut board = lock(&board);
            if extra.disk.is_some() && board.away == 0 {
                return Err(Failure::new(
                    "no answer said that the store was unavailable: nothing was tested",
                ));
            }
            (std::mem::take(&mut board.orders), board.differing.clone(), board.strange.clone())
        };
        let orders = Arc::new(orders);
        let replays = replay_all(&scene.address, &orders).await;
        let effects = provider::effects(scene.provider).await?;
        let evidence = Evidence {
            orders: &orders,
            effects: &effects,
            shown: &served::payments(&scene.address).await?,
            // This provider keeps its contract, so nothing may be parked.
            parked: &Parked::default(),
            by_itself: false,
        };
        let mut judged = judge(&evidence);
        let balances = ledger::balances(&scene.address, "available").await?;
        let of_ledger = judge_ledger(&orders, &judged, &balances);
        let verdict = &mut judged.verdict;
        verdict.join(of_ledger);
        note_answers(verdict, &orders, &differing, &strange, &replays);
        for seen in below {
            verdict.note(Wrong::Floor, seen);
        }
        let (drained, verified) = scene.close().await?;
        let mut figures = vec![
            ("kills", counts.kills),
            ("database kills", counts.database_kills),
            ("answers that the store was unavailable", lock(&board).away),
            ("full disks", counts.full),
            ("clock moves", counts.moves),
            ("cut connections", scene.line.as_ref().map_or(0, Proxy::cuts)),
        ];
        figures.extend(asked(&orders));
        figures.extend([("effects", effects.len() as u64), ("replays", replays.len() as u64)]);
        let FaultCounts { readiness, .. } = counts;
        let took = begun.elapsed();
        Ok(Report { seed, took, figures, readiness, verdict: judged.verdict, verified, drained })
    }

    async fn inflict_faults(
        &self,
        scene: &mut Scene,
        extra: &ExtraFaults,
        board: &Shared,
        prng: &mut Prng,
    ) -> Result<FaultCounts> {
        let progress = Progress::new(if extra.disk.is_some() { disk::turns() } else { self.kills });
        let within = Duration::from_millis(self.within_ms);
        let plan = Plan { kills: self.kills, within, database_every: self.database_every };
        let report_progress =
            |done| progress.show(done, &format!("times, {} requests", lock(board).orders.len()));
        if let Some(disk) = &extra.disk {
            return disk::fill_repeatedly(scene, disk, prng, report_progress).await;
        }
        if let Some(clock) = &extra.clock {
            return clock::move_repeatedly(scene, clock, &plan, prng, report_progress).await;
        }
        let Scene { launcher, servers, database, .. } = scene;
        launcher.kill_repeatedly(servers, database.as_mut(), &plan, prng, report_progress).await
    }

    /// The provider's faults as JSON for its control route.
    fn faults(&self, seed: u64) -> String {
        let (drops, errors, hangs, duplicates) = (self.drops, self.errors, self.hangs, self.duplicates);
        format!(
            r#"{{"drop_before":0.{drops:03},"drop_after":0.{drops:03},"error_before":0.{errors:03},"error_after":0.{errors:03},"hang_after":0.{hangs:03},"duplicate":0.{duplicates:03},"seed":{seed}}}"#
        )
    }
}

//! `crash`: real processes, real kills. Clients charge and transfer without pause while the server is killed at random
//! instants and the provider fails at random; then clients' history, provider's effects, the books and the store are
//! judged together.

mod aftermath;
mod board;
mod books;
mod client;
mod database;
mod judge;
mod kill;
mod order;
mod provider;
mod report;
mod scene;
mod stop;
mod told;

use crate::compile::{self, Profile};
use crate::dice::Dice;
use crate::failure::Result;
use crate::progress::Progress;
use aftermath::{note_answers, replay_all, settle};
use board::Board;
use books::Watch;
use clap::Args;
use client::{Shared, lock};
use judge::{Wrong, judge, judge_transfers};
use kill::{Plan, Toll};
use order::Order;
use report::Report;
use scene::{Kind, Scene};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Kills the server under load, again and again, and judges from outside what clients and provider saw.
#[derive(Args)]
pub(crate) struct Crash {
    /// The store: with `postgres`, two servers share a database and either may be killed.
    #[arg(long, value_enum, default_value = "embedded")]
    store: Kind,
    /// How often a server is killed.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// A kill comes at a random instant within this time after the server is ready.
    #[arg(long, default_value_t = 300, value_name = "MS")]
    within_ms: u64,
    /// With `--store postgres`: the database is killed too, once in so many kills of servers.
    #[arg(long, default_value_t = 10, value_name = "KILLS", value_parser = clap::value_parser!(u64).range(1..))]
    database_every: u64,
    /// So many of a hundred requests are transfers between guarded accounts; the others are charges.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u8).range(0..=100))]
    transfers_percent: u8,
    /// Clients that ask at the same time.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    clients: u16,
    /// Odds, in thousandths, that the provider cuts a connection: so many before executing, so many after.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(0..=500))]
    drops: u16,
    /// Odds, in thousandths, that the provider answers 500: so many before executing, so many after.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=500))]
    errors: u16,
    /// Odds, in thousandths, that the provider itself executes twice: a lie that the judge has to find.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=500))]
    duplicates: u16,
    /// How long the last answers may take after the last kill. Doubt is only cleared after minutes.
    #[arg(long, default_value_t = 300, value_name = "S")]
    settle_seconds: u64,
    /// Repeats an earlier campaign's choices (not its timing).
    #[arg(long)]
    seed: Option<u64>,
    /// Which build of the server is killed.
    #[arg(long, value_enum, default_value = "release")]
    profile: Profile,
    /// Instead of killing: stops the server (SIGSTOP) for longer than its leases, while the provider is slow.
    #[arg(long)]
    stop: bool,
    /// Prints one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

impl Crash {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let built = compile::build(self.profile, &["counterfoil"]).await?;
        let mut scene = Scene::set(built.path("counterfoil")?, self.store, self.stop).await?;
        let seed = self.seed.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::from(now.subsec_nanos())
        });
        let judged =
            if self.stop { stop::run(&mut scene, seed).await } else { self.campaign(&mut scene, seed).await };
        let holds = judged.as_ref().is_ok_and(Report::holds);
        // A failure that was asked for is nothing to look into.
        if !holds && self.duplicates == 0 {
            let kept = scene.keep();
            eprintln!("xtask: what is left on disk is kept in {}", kept.display());
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

    async fn campaign(&self, scene: &mut Scene, seed: u64) -> Result<Report> {
        let mut dice = Dice::new(seed);
        books::open(&scene.address).await?;
        provider::set_faults(scene.victim.gateway, &self.faults(dice.roll())).await?;
        let board: Shared = Arc::new(Mutex::new(Board::new(dice.fork(), u64::from(self.transfers_percent))));
        let clients = client::start(usize::from(self.clients), &scene.address, &board, &mut dice);
        let watch = Watch::start(&scene.address);

        let toll = self.torment(scene, &board, &mut dice).await?;
        provider::clear_faults(scene.victim.gateway).await?;
        lock(&board).close();
        settle(clients, &board, Duration::from_secs(self.settle_seconds)).await;
        let below = watch.end().await?;

        let (orders, differing, strange) = {
            let mut board = lock(&board);
            (std::mem::take(&mut board.orders), board.differing.clone(), board.strange.clone())
        };
        let orders = Arc::new(orders);
        let replays = replay_all(&scene.address, &orders).await;
        let effects = provider::effects(scene.victim.gateway).await?;
        let mut verdict = judge(&orders, &effects);
        verdict.join(judge_transfers(&orders, &books::balances(&scene.address).await?));
        note_answers(&mut verdict, &orders, &differing, &strange, &replays);
        for seen in below {
            verdict.note(Wrong::Floor, seen);
        }
        let (drained, verified) = scene.close().await?;
        Ok(Report {
            seed,
            kills: self.kills,
            stops: 0,
            database_kills: toll.database_kills,
            charges: count(&orders, |order| !order.is_transfer()),
            transfers: count(&orders, Order::is_transfer),
            transfers_refused: count(&orders, Order::is_refused_transfer),
            answered: count(&orders, |order| order.first.is_some()),
            effects: effects.len() as u64,
            replays: replays.len() as u64,
            readiness: toll.readiness,
            verdict,
            verified,
            drained,
        })
    }

    async fn torment(&self, scene: &mut Scene, board: &Shared, dice: &mut Dice) -> Result<Toll> {
        let progress = Progress::new(self.kills);
        let within = Duration::from_millis(self.within_ms);
        let plan = Plan { kills: self.kills, within, database_every: self.database_every };
        let told = |done| progress.show(done, &format!("kills, {} requests", lock(board).orders.len()));
        let Scene { victim, stands, database, .. } = scene;
        victim.torment(stands, database.as_mut(), &plan, dice, told).await
    }

    /// The provider's faults, as its control route reads them.
    fn faults(&self, seed: u64) -> String {
        let (drops, errors, duplicates) = (self.drops, self.errors, self.duplicates);
        format!(
            r#"{{"drop_before":0.{drops:03},"drop_after":0.{drops:03},"error_before":0.{errors:03},"error_after":0.{errors:03},"duplicate":0.{duplicates:03},"seed":{seed}}}"#
        )
    }
}

fn count(orders: &[Order], which: impl Fn(&Order) -> bool) -> u64 {
    orders.iter().filter(|order| which(order)).count() as u64
}

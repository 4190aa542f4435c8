//! `crash`: real processes, real kills. Clients charge without pause while the server is killed at random instants
//! and the provider fails at random; then clients' history, provider's effects and the store are judged together.

mod aftermath;
mod board;
mod client;
mod judge;
mod kill;
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
use clap::Args;
use client::{Shared, lock};
use judge::judge;
use report::Report;
use scene::Scene;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Kills the server under load, again and again, and judges from outside what clients and provider saw.
#[derive(Args)]
pub(crate) struct Crash {
    /// How often the server is killed.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// A kill comes at a random instant within this time after the server is ready.
    #[arg(long, default_value_t = 300, value_name = "MS")]
    within_ms: u64,
    /// Clients that charge at the same time.
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
        let mut scene = Scene::set(built.path("counterfoil")?, self.stop).await?;
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
            eprintln!("xtask: store and logs are kept in {}", kept.display());
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
        provider::set_faults(scene.victim.gateway, &self.faults(dice.roll())).await?;
        let board: Shared = Arc::new(Mutex::new(Board::new(dice.fork())));
        let clients = client::start(usize::from(self.clients), &scene.address, &board, &mut dice);

        let readiness = {
            let progress = Progress::new(self.kills);
            let within = Duration::from_millis(self.within_ms);
            let told = |done| progress.show(done, &format!("kills, {} charges", lock(&board).charges.len()));
            scene.victim.torment(&mut scene.server, self.kills, within, &mut dice, told).await?
        };
        provider::clear_faults(scene.victim.gateway).await?;
        lock(&board).close();
        settle(clients, &board, Duration::from_secs(self.settle_seconds)).await;

        let (charges, differing, strange) = {
            let mut board = lock(&board);
            (std::mem::take(&mut board.charges), board.differing.clone(), board.strange.clone())
        };
        let charges = Arc::new(charges);
        let replays = replay_all(&scene.address, &charges).await;
        let effects = provider::effects(scene.victim.gateway).await?;
        let mut verdict = judge(&charges, &effects);
        note_answers(&mut verdict, &charges, &differing, &strange, &replays);
        let (drained, verified) = scene.close().await?;
        Ok(Report {
            seed,
            kills: self.kills,
            stops: 0,
            charges: charges.len() as u64,
            answered: charges.iter().filter(|charge| charge.first.is_some()).count() as u64,
            effects: effects.len() as u64,
            replays: replays.len() as u64,
            readiness,
            verdict,
            verified,
            drained,
        })
    }

    /// The provider's faults, as its control route reads them.
    fn faults(&self, seed: u64) -> String {
        let (drops, errors, duplicates) = (self.drops, self.errors, self.duplicates);
        format!(
            r#"{{"drop_before":0.{drops:03},"drop_after":0.{drops:03},"error_before":0.{errors:03},"error_after":0.{errors:03},"duplicate":0.{duplicates:03},"seed":{seed}}}"#
        )
    }
}

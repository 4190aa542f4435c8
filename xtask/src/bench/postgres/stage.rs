//! The processes of a run: PostgreSQL, the provider, and the two servers that charge.

use super::database::Database;
use super::producers::{By, Produced};
use super::usual;
use crate::bench::Place;
use crate::bench::child::Order;
use crate::bench::neighbours::{Machine, Neighbours};
use crate::bench::sample::{Sample, number};
use crate::bench::scrape::Commits;
use crate::bench::server::Server;
use crate::bench::stage::{forget_payments, raw};
use crate::failure::{Failure, Result};
use crate::process::{Product, Running, captured, clean, cpu_of};
use counterfoil_load::child::Driven;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::process::Command;

/// Numbers reserved for one run, more than it uses.
const NUMBERS: i64 = 100_000_000;

/// The measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// Commits without HTTP.
    Commits,
    /// Charges over HTTP.
    Charges,
}

/// All processes. The servers come before the database, so they are dropped first.
pub(super) struct Stage {
    server: Server,
    usual: (Running, SocketAddr),
    simulator: (Running, SocketAddr),
    /// URLs of the producers' databases, by implementation.
    stored: String,
    usually: String,
    database: Database,
    xtask: PathBuf,
    runs: i64,
    pub(super) neighbours: Neighbours,
}

impl Stage {
    pub(super) async fn set(place: &Place<'_>) -> Result<Stage> {
        let database = Database::start().await?;
        let product = Product::new(place.counterfoil, place.directory);
        let simulator = product.simulator().await?;
        let (served, stored) = (database.create("served").await?, database.create("stored").await?);
        let usually = database.create("usual").await?;
        usual::make(&usually).await?;
        let made =
            counterfoil_store_postgres::migrate(&stored, counterfoil_store_postgres::Reach::Needed).await;
        made.map_err(Failure::while_("making the tables"))?;
        let server = Server::start(&product, simulator.1, served.into()).await?;
        let provider = simulator.1.to_string();
        let usual = raw(place.xtask, "usual", &["--provider", &provider, "--database", &usually]).await?;
        Ok(Stage {
            server,
            usual,
            simulator,
            stored,
            usually,
            database,
            xtask: place.xtask.to_owned(),
            runs: 0,
            neighbours: Neighbours::default(),
        })
    }

    pub(super) async fn measure(
        &mut self,
        what: What,
        by: By,
        level: usize,
        duration: Duration,
    ) -> Result<Sample> {
        self.runs += 1;
        forget_payments(self.simulator.1).await?;
        let before = (Machine::read()?, self.cpu()?);
        let (driven, sets_per_write) = match what {
            What::Commits => self.commits(by, level, duration).await?,
            What::Charges => self.charges(by, level, duration).await?,
        };
        let own = self.cpu()?.saturating_sub(before.1) + Duration::from_micros(driven.cpu_us);
        self.neighbours.add(before.0, Machine::read()?, own);
        Ok(Sample::of(&driven, own, sets_per_write))
    }

    /// CPU time of all processes except the load. Idle servers use next to nothing.
    fn cpu(&self) -> Result<Duration> {
        let servers = [self.server.pid(), self.usual.0.pid(), self.simulator.0.pid()];
        let servers: Duration = servers.map(cpu_of).into_iter().sum::<Result<Duration>>()?;
        Ok(servers + self.database.cpu()?)
    }

    async fn commits(&self, by: By, producers: usize, duration: Duration) -> Result<(Driven, f64)> {
        let database = match by {
            By::Store => &self.stored,
            By::Usual => &self.usually,
        };
        let mut command = Command::new(&self.xtask);
        clean(&mut command);
        command.args(["commits", "--by", by.word(), "--database", database]);
        command.args(["--producers", &producers.to_string()]);
        command.args(["--milliseconds", &duration.as_millis().to_string()]);
        command.args(["--first", &self.runs.saturating_mul(NUMBERS).to_string()]);
        let doing = format!("commits by {by:?} with {producers} producers");
        let output = captured(&mut command).await.map_err(Failure::while_(&doing))?;
        if !output.status.success() {
            return Err(Failure::new(format!("{doing} ended with {}; see above", output.status)));
        }
        let produced: Produced = serde_json::from_slice(&output.stdout).map_err(Failure::while_(&doing))?;
        let sets_per_write = number(produced.driven.answered) / number(produced.writes.max(1));
        Ok((produced.driven, sets_per_write))
    }

    async fn charges(&self, by: By, connections: usize, duration: Duration) -> Result<(Driven, f64)> {
        let (address, api_key) = match by {
            By::Store => (self.server.address, self.server.api_key.as_str()),
            By::Usual => (self.usual.1, usual::API_KEY),
        };
        let prefix = format!("bench-{}-{}", std::process::id(), self.runs);
        let order = Order { address, api_key, connections, duration, prefix: &prefix };
        let before = Commits::read(self.server.address).await?;
        let driven = order.drive(&self.xtask, &["load".as_ref()]).await?;
        let after = Commits::read(self.server.address).await?;
        let sets_per_write = match by {
            By::Store => after.per_write_since(before),
            By::Usual => 1.0,
        };
        Ok((driven, sets_per_write))
    }
}

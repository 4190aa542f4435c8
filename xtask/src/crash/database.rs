//! The database of a campaign: its own PostgreSQL server, killed and restarted while clients work.

use crate::failure::{Failure, Result};
use counterfoil_testkit::postgres::{Server, connect};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

const NAME: &str = "crash";

/// `None` while a thread kills or starts the server.
pub(super) struct Database {
    server: Option<Server>,
    url: String,
}

impl Database {
    /// Starts a server with an empty database.
    pub(super) async fn start() -> Result<Database> {
        let server = run_on_thread(|| Server::start(&[])).await?;
        let admin = connect(&format!("{}/postgres", server.address()))
            .await
            .map_err(Failure::while_("making the database"))?;
        admin
            .batch_execute(&format!("CREATE DATABASE {NAME}"))
            .await
            .map_err(Failure::while_("making the database"))?;
        let url = format!("{}/{NAME}", server.address());
        Ok(Database { server: Some(server), url })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Kills the server with `kill -9`, waits, and restarts it on its files.
    pub(super) async fn crash(&mut self, away: Duration) -> Result<()> {
        let mut server = self.server.take().ok_or_else(|| Failure::new("the database does not run"))?;
        let mut server = run_on_thread(move || server.kill().map(|()| server)).await?;
        sleep(away).await;
        self.server = Some(run_on_thread(move || server.restart().map(|()| server)).await?);
        Ok(())
    }
}

/// Runs on a separate thread, so that the clients go on.
async fn run_on_thread<T: Send + 'static>(
    work: impl FnOnce() -> counterfoil_testkit::failure::Result<T> + Send + 'static,
) -> Result<T> {
    spawn_blocking(work)
        .await
        .map_err(Failure::while_("waiting for PostgreSQL"))?
        .map_err(Failure::while_("the database of the campaign"))
}

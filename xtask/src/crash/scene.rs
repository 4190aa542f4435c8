//! The stage of a campaign: a store, the provider, and the servers that are going to suffer.

use super::client::Address;
use super::database::Database;
use super::kill::{Stand, Victim};
use super::stop;
use crate::failure::{Failure, Result};
use crate::process::{Product, Running, free_address};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The server promises to be gone 30 s after SIGTERM.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
/// Nobody but time tells a server that another one is dead: a campaign should not wait for that too long.
const SHARED_LEASE_MS: u64 = 2_000;
/// Servers on one database.
const SERVERS: usize = 2;

/// Which store the servers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// A directory, one server.
    Embedded,
    /// A PostgreSQL server of the campaign's own, two servers on one database.
    Postgres,
}

/// The servers, their provider and their store, started.
pub(super) struct Scene {
    pub(super) victim: Victim,
    pub(super) address: Address,
    pub(super) stands: Vec<Stand>,
    pub(super) database: Option<Database>,
    _simulator: Running,
    directory: Option<TempDir>,
}

impl Scene {
    /// `short_leases`: leases that end while the server is stopped.
    pub(super) async fn set(binary: &Path, kind: Kind, short_leases: bool) -> Result<Scene> {
        // Beside the build, which is on a disk: the system's directory for such things may be memory.
        let beside = binary.parent().unwrap_or(binary);
        let made = tempfile::Builder::new().prefix("crash-").tempdir_in(beside);
        let directory = made.map_err(Failure::while_("making a directory beside the build"))?;
        let product = Product::new(binary, directory.path());
        let (database, store, servers) = match kind {
            Kind::Embedded => (None, directory.path().join("store").to_string_lossy().into_owned(), 1),
            Kind::Postgres => {
                let database = Database::start().await?;
                let url = database.url().to_owned();
                (Some(database), url, SERVERS)
            }
        };
        let lease_ms = match kind {
            _ if short_leases => Some(stop::LEASE_MS),
            Kind::Embedded => None,
            Kind::Postgres => Some(SHARED_LEASE_MS),
        };
        let settings = lease_ms.map(|ms| ("COUNTERFOIL_IDEMPOTENCY__LEASE_MS", ms.to_string()));
        let api_key = product.tenant(&store).await?;
        let (simulator, gateway) = product.simulator().await?;
        let victim = Victim { product, store, gateway, settings: settings.into_iter().collect() };
        let mut stands = Vec::new();
        for _ in 0..servers {
            stands.push(victim.stand(free_address()?).await?);
        }
        let address = Address { servers: stands.iter().map(|stand| stand.address).collect(), api_key };
        Ok(Scene { victim, address, stands, database, _simulator: simulator, directory: Some(directory) })
    }

    /// Asks the servers to end and verifies what they leave behind.
    pub(super) async fn close(&mut self) -> Result<(bool, bool)> {
        let mut drained = true;
        for stand in &mut self.stands {
            drained &= stand.server.terminate(DRAIN_LIMIT).await?.success();
        }
        let (verified, told) = self.victim.product.verify(&self.victim.store).await?;
        if !verified {
            eprintln!("xtask: counterfoil verify: {told}");
        }
        Ok((drained, verified))
    }

    /// Keeps what is on disk for whoever looks into it; a database goes with its server.
    pub(super) fn keep(&mut self) -> PathBuf {
        self.directory.take().map(TempDir::keep).unwrap_or_default()
    }
}

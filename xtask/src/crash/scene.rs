//! The stage of a campaign: a store, the provider, and the servers that are going to suffer.

use super::client::Address;
use super::database::Database;
use super::kill::{Stand, Victim};
use super::proxy::Proxy;
use crate::failure::{Failure, Result};
use crate::process::{Product, Running, free_address};
use clap::ValueEnum;
use counterfoil_prng::Prng;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The server promises to be gone 30 s after SIGTERM.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
/// Nobody but time tells a server that another one is dead: a campaign should not wait for that too long.
const SHARED_LEASE_MS: u64 = 2_000;
/// Servers on one database.
const SERVERS: usize = 2;
/// Doubt is looked into soon and often, so that a campaign ends soon after its last kill.
const EAGER: [(&str, &str); 4] = [
    ("COUNTERFOIL_GATEWAY__TIMEOUT_MS", "2000"),
    ("COUNTERFOIL_OUTBOX__POLL_MS", "100"),
    ("COUNTERFOIL_OUTBOX__BACKOFF_BASE_MS", "50"),
    ("COUNTERFOIL_OUTBOX__BACKOFF_CAP_MS", "1000"),
];

/// Which store the servers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// A directory, one server.
    Embedded,
    /// A PostgreSQL server of the campaign's own, two servers on one database.
    Postgres,
}

/// What a scene is like.
pub(super) struct Plot {
    pub(super) store: Kind,
    /// Where the embedded store is, if not in a directory of its own.
    pub(super) place: Option<PathBuf>,
    /// Leases that end after so long; the store's usual ones if not given.
    pub(super) lease_ms: Option<u64>,
    /// Calls to the provider go over a line that is cut after at most so many bytes a connection.
    pub(super) cut_bytes: Option<u64>,
    /// Settings of the servers, after all others.
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) prng: Prng,
}

/// The servers, their provider and their store, started.
pub(super) struct Scene {
    pub(super) victim: Victim,
    pub(super) address: Address,
    pub(super) stands: Vec<Stand>,
    pub(super) database: Option<Database>,
    /// Where the provider itself listens.
    pub(super) provider: SocketAddr,
    pub(super) line: Option<Proxy>,
    _simulator: Running,
    directory: Option<TempDir>,
}

impl Scene {
    pub(super) async fn set(binary: &Path, plot: Plot) -> Result<Scene> {
        // SharedServices the build, which is on a disk: the system's directory for such things may be memory.
        let beside = binary.parent().unwrap_or(binary);
        let made = tempfile::Builder::new().prefix("crash-").tempdir_in(beside);
        let directory = made.map_err(Failure::while_("making a directory beside the build"))?;
        let product = Product::new(binary, directory.path());
        let (database, store, servers) = match plot.store {
            Kind::Embedded => {
                let place = plot.place.unwrap_or_else(|| directory.path().join("store"));
                (None, place.to_string_lossy().into_owned(), 1)
            }
            Kind::Postgres => {
                let database = Database::start().await?;
                let url = database.url().to_owned();
                (Some(database), url, SERVERS)
            }
        };
        let lease_ms = match plot.store {
            Kind::Embedded => plot.lease_ms,
            Kind::Postgres => plot.lease_ms.or(Some(SHARED_LEASE_MS)),
        };
        let mut settings: Vec<_> = EAGER.map(|(name, value)| (name, value.to_owned())).to_vec();
        settings.extend(lease_ms.map(|ms| ("COUNTERFOIL_IDEMPOTENCY__LEASE_MS", ms.to_string())));
        settings.extend(plot.settings);
        let api_key = product.tenant(&store).await?;
        let (simulator, provider) = product.simulator().await?;
        let line = match plot.cut_bytes {
            Some(bytes) => Some(Proxy::start(provider, bytes, plot.prng).await?),
            None => None,
        };
        let gateway = line.as_ref().map_or(provider, |line| line.address);
        let victim = Victim { product, store, gateway, settings };
        let mut stands = Vec::new();
        for _ in 0..servers {
            stands.push(victim.stand(free_address()?).await?);
        }
        let address = Address { servers: stands.iter().map(|stand| stand.address).collect(), api_key };
        let directory = Some(directory);
        Ok(Scene { victim, address, stands, database, provider, line, _simulator: simulator, directory })
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

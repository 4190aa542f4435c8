//! The processes of a campaign: a store, a provider, and the servers to be killed.

use super::client::Address;
use super::database::Database;
use super::kill::{RunningServer, ServerLauncher};
use super::proxy::Proxy;
use crate::failure::{Failure, Result};
use crate::process::{Product, Running, free_address};
use clap::ValueEnum;
use counterfoil_prng::Prng;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The server promises to exit within 30 s of SIGTERM.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);
/// Only an expired lease tells a server that another one is dead; a long lease would delay every
/// takeover.
const SHARED_LEASE_MS: u64 = 2_000;
/// Servers on one database.
const SERVERS: usize = 2;
/// Unknown outcomes are queried soon and often, so that a campaign ends soon after its last kill.
const EAGER: [(&str, &str); 4] = [
    ("COUNTERFOIL_GATEWAY__TIMEOUT_MS", "2000"),
    ("COUNTERFOIL_OUTBOX__POLL_MS", "100"),
    ("COUNTERFOIL_OUTBOX__BACKOFF_BASE_MS", "50"),
    ("COUNTERFOIL_OUTBOX__BACKOFF_CAP_MS", "1000"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StoreKind {
    /// A directory, one server.
    Embedded,
    /// PostgreSQL started for the campaign, two servers on one database.
    Postgres,
}

/// Parameters of a scene.
pub(super) struct SceneOptions {
    pub(super) store: StoreKind,
    /// Directory of the embedded store; a temporary one if not given.
    pub(super) place: Option<PathBuf>,
    /// Length of leases; the store's default if not given.
    pub(super) lease_ms: Option<u64>,
    /// Calls to the provider go through a proxy that cuts after at most this many bytes.
    pub(super) cut_bytes: Option<u64>,
    /// Settings of the servers; they override all others.
    pub(super) settings: Vec<(&'static str, String)>,
    pub(super) prng: Prng,
}

/// The running servers, their provider and their store.
pub(super) struct Scene {
    pub(super) launcher: ServerLauncher,
    pub(super) address: Address,
    pub(super) servers: Vec<RunningServer>,
    pub(super) database: Option<Database>,
    /// The provider's own address, without the proxy.
    pub(super) provider: SocketAddr,
    pub(super) line: Option<Proxy>,
    _simulator: Running,
    directory: Option<TempDir>,
}

impl Scene {
    pub(super) async fn set(binary: &Path, options: SceneOptions) -> Result<Scene> {
        // The build is on a disk; the system's temporary directory may be memory.
        let beside = binary.parent().unwrap_or(binary);
        let made = tempfile::Builder::new().prefix("crash-").tempdir_in(beside);
        let directory = made.map_err(Failure::while_("making a directory beside the build"))?;
        let product = Product::new(binary, directory.path());
        let (database, store, count) = match options.store {
            StoreKind::Embedded => {
                let place = options.place.unwrap_or_else(|| directory.path().join("store"));
                (None, place.to_string_lossy().into_owned(), 1)
            }
            StoreKind::Postgres => {
                let database = Database::start().await?;
                let url = database.url().to_owned();
                (Some(database), url, SERVERS)
            }
        };
        let lease_ms = match options.store {
            StoreKind::Embedded => options.lease_ms,
            StoreKind::Postgres => options.lease_ms.or(Some(SHARED_LEASE_MS)),
        };
        let mut settings: Vec<_> = EAGER.map(|(name, value)| (name, value.to_owned())).to_vec();
        settings.extend(lease_ms.map(|ms| ("COUNTERFOIL_IDEMPOTENCY__LEASE_MS", ms.to_string())));
        settings.extend(options.settings);
        let api_key = product.tenant(&store).await?;
        let (simulator, provider) = product.simulator().await?;
        let line = match options.cut_bytes {
            Some(bytes) => Some(Proxy::start(provider, bytes, options.prng).await?),
            None => None,
        };
        let gateway = line.as_ref().map_or(provider, |line| line.address);
        let launcher = ServerLauncher { product, store, gateway, settings };
        let mut servers = Vec::new();
        for _ in 0..count {
            servers.push(launcher.start_server(free_address()?).await?);
        }
        let address = Address { servers: servers.iter().map(|running| running.address).collect(), api_key };
        let directory = Some(directory);
        Ok(Scene { launcher, address, servers, database, provider, line, _simulator: simulator, directory })
    }

    /// Stops the servers and verifies the store they leave.
    pub(super) async fn close(&mut self) -> Result<(bool, bool)> {
        let mut drained = true;
        for running in &mut self.servers {
            drained &= running.server.terminate(DRAIN_LIMIT).await?.success();
        }
        let (verified, report) = self.launcher.product.verify(&self.launcher.store).await?;
        if !verified {
            eprintln!("xtask: counterfoil verify: {report}");
        }
        Ok((drained, verified))
    }

    /// Keeps the files for a person to inspect. A database disappears with its server.
    pub(super) fn keep(&mut self) -> PathBuf {
        self.directory.take().map(TempDir::keep).unwrap_or_default()
    }
}

//! The stage of a campaign: a store on disk, the provider, and the server that is going to suffer.

use super::client::Address;
use super::kill::Victim;
use super::stop;
use crate::failure::{Failure, Result};
use crate::process::{Product, Running, free_address};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The server promises to be gone 30 s after SIGTERM.
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// The server, its provider and its store, started.
pub(super) struct Scene {
    pub(super) victim: Victim,
    pub(super) address: Address,
    pub(super) server: Running,
    _simulator: Running,
    directory: Option<TempDir>,
}

impl Scene {
    /// `short_leases`: leases that end while the server is stopped.
    pub(super) async fn set(binary: &Path, short_leases: bool) -> Result<Scene> {
        // Beside the build, which is on a disk: the system's directory for such things may be memory.
        let beside = binary.parent().unwrap_or(binary);
        let made = tempfile::Builder::new().prefix("crash-").tempdir_in(beside);
        let directory = made.map_err(Failure::while_("making a directory beside the build"))?;
        let product = Product::new(binary, directory.path());
        let store = directory.path().join("store");
        let api_key = product.tenant(&store).await?;
        let (simulator, gateway) = product.simulator().await?;
        let server = free_address()?;
        let settings = if short_leases {
            vec![("COUNTERFOIL_IDEMPOTENCY__LEASE_MS", stop::LEASE_MS.to_string())]
        } else {
            Vec::new()
        };
        let victim = Victim { product, address: server, store, gateway, settings };
        let begun = Instant::now();
        let mut running = victim.start()?;
        running.ready(server, begun).await?;
        let address = Address { server, api_key };
        Ok(Scene { victim, address, server: running, _simulator: simulator, directory: Some(directory) })
    }

    /// Asks the server to end and verifies what it leaves behind.
    pub(super) async fn close(&mut self) -> Result<(bool, bool)> {
        let drained = self.server.terminate(DRAIN_LIMIT).await?.success();
        let (verified, told) = self.victim.product.verify(&self.victim.store).await?;
        if !verified {
            eprintln!("xtask: counterfoil verify: {told}");
        }
        Ok((drained, verified))
    }

    /// Keeps what is on disk for whoever looks into it.
    pub(super) fn keep(&mut self) -> PathBuf {
        self.directory.take().map(TempDir::keep).unwrap_or_default()
    }
}

//! A server of the product on a new store.

use crate::failure::Result;
use crate::process::{Product, Running, free_address};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

/// A server that is ready.
pub(super) struct Server {
    running: Running,
    pub(super) address: SocketAddr,
    pub(super) api_key: String,
    pub(super) store: PathBuf,
    /// Charges that the loads have made so far.
    pub(super) charges: u64,
}

impl Server {
    /// Starts a server on a new store.
    pub(super) async fn start(product: &Product, provider: SocketAddr, store: PathBuf) -> Result<Server> {
        let api_key = product.tenant(&store).await?;
        let address = free_address()?;
        let begun = Instant::now();
        let mut running = product.server(address, &store, provider, &[])?;
        running.ready(address, begun).await?;
        Ok(Server { running, address, api_key, store, charges: 0 })
    }

    pub(super) fn pid(&self) -> u32 {
        self.running.pid()
    }
}

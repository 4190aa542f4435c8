//! The runtime of the servers to compare with. They use the product's configuration, or the
//! comparison would be one of runtimes.

use crate::failure::{Failure, Result};
use std::num::NonZeroUsize;
use tokio::runtime::{Builder, Runtime};

/// As many threads as the server has by default: one less than the machine has cores, and at least
/// one.
pub(super) fn runtime_like_the_servers() -> Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let runtime =
        Builder::new_multi_thread().worker_threads(cores.saturating_sub(1).max(1)).enable_all().build();
    runtime.map_err(Failure::while_("starting the runtime"))
}

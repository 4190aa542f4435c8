//! The tokio runtimes of the commands.

use crate::exit::Exit;
use std::io;
use std::num::NonZeroUsize;
use tokio::runtime::{Builder, Runtime};

/// The runtime of servers, with `asked` threads; 0 leaves one core to the store.
pub(super) fn server_runtime(asked: usize) -> Result<Runtime, Exit> {
    // If the number of cores is unknown, assume one.
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads(asked, cores)).thread_name("requests").enable_all();
    builder.build().map_err(|error| cannot_start(&error))
}

/// The runtime of clients and the simulator, where a second thread costs more than it brings.
pub(super) fn client_runtime() -> Result<Runtime, Exit> {
    Builder::new_current_thread().enable_all().build().map_err(|error| cannot_start(&error))
}

/// The store works beside the requests, in its own threads or in a database, so a thread for every
/// core would compete with it. See docs/decisions/0019-one-thread-fewer-than-cores.md.
fn threads(asked: usize, cores: usize) -> usize {
    if asked == 0 { cores.saturating_sub(1).max(1) } else { asked }
}

fn cannot_start(error: &io::Error) -> Exit {
    Exit::failed(format!("threads or timers cannot be started: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_is_left_to_the_store_unless_threads_are_configured() {
        for (cores, by_default) in [(1, 1), (2, 1), (3, 2), (64, 63)] {
            assert_eq!(threads(0, cores), by_default, "{cores} cores");
            assert_eq!(threads(5, cores), 5);
        }
    }
}

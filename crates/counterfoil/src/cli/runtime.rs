//! The threads a command works with.

use crate::exit::Exit;
use std::io;
use std::num::NonZeroUsize;
use tokio::runtime::{Builder, Runtime};

/// For what serves many at once, with as many threads as asked for; 0 leaves a core to the store.
pub(super) fn many_threads(asked: usize) -> Result<Runtime, Exit> {
    // A machine that does not say how many cores it has is taken for a small one.
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads(asked, cores)).thread_name("requests").enable_all();
    builder.build().map_err(|error| no_runtime(&error))
}

/// For clients and the simulator: one thread costs less than its coordination with others.
pub(super) fn one_thread() -> Result<Runtime, Exit> {
    Builder::new_current_thread().enable_all().build().map_err(|error| no_runtime(&error))
}

/// The store works beside the requests, in threads of its own or in a database, so that with a thread for every core one would be in its
/// way. See docs/decisions/0019-one-thread-fewer-than-cores.md.
fn threads(asked: usize, cores: usize) -> usize {
    if asked == 0 { cores.saturating_sub(1).max(1) } else { asked }
}

fn no_runtime(error: &io::Error) -> Exit {
    Exit::failed(format!("the operating system gives no threads or timers: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_left_to_the_store_unless_threads_are_asked_for() {
        for (cores, by_default) in [(1, 1), (2, 1), (3, 2), (64, 63)] {
            assert_eq!(threads(0, cores), by_default, "{cores} cores");
            assert_eq!(threads(5, cores), 5);
        }
    }
}

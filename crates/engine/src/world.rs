//! Tasks, waiting, elapsed time and chance, as the engine sees them. The simulator brings its own world; the
//! program runs on [`TokioWorld`].

use std::cell::RefCell;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// What surrounds the engine besides store and gateway.
pub trait World: Send + Sync + 'static {
    /// Runs a task to its end, whoever waits for it or not.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Waits.
    fn sleep(&self, wait: Duration) -> impl Future<Output = ()> + Send;

    /// Time since some fixed moment, for measuring only; decisions use the store's clock.
    fn elapsed(&self) -> Duration;

    /// 128 unpredictable bits.
    fn chance(&self) -> u128;
}

/// The real world, on tokio's runtime and the operating system's chance.
#[derive(Clone, Copy, Debug)]
pub struct TokioWorld {
    start: Instant,
}

/// Bytes asked of the operating system at once: a system call for every id would cost more than the id.
const POOL_BYTES: usize = 4_096;

struct Pool {
    bytes: [u8; POOL_BYTES],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], used: POOL_BYTES }) };
}

#[expect(clippy::disallowed_methods, reason = "this is the port that hands these out")]
impl TokioWorld {
    /// A world that begins now.
    pub fn new() -> TokioWorld {
        TokioWorld { start: Instant::now() }
    }
}

impl Default for TokioWorld {
    fn default() -> TokioWorld {
        TokioWorld::new()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the port that hands these out")]
impl World for TokioWorld {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(task);
        } else {
            tracing::error!("a task was begun where no runtime is; it is left to recovery");
        }
    }

    async fn sleep(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn chance(&self) -> u128 {
        POOL.with_borrow_mut(|pool| {
            if let Some(chunk) = pool.take() {
                return chunk;
            }
            // Without chance no id may be made; the process cannot go on, and the request's task ends here.
            assert!(getrandom::fill(&mut pool.bytes).is_ok(), "the operating system gives no random bytes");
            pool.used = 0;
            pool.take().unwrap_or_default()
        })
    }
}

impl Pool {
    fn take(&mut self) -> Option<u128> {
        let chunk = self.bytes.get_mut(self.used..)?.first_chunk_mut::<16>()?;
        self.used = self.used.saturating_add(16);
        // Given out once: the pool must not remember it.
        Some(u128::from_ne_bytes(std::mem::take(chunk)))
    }
}

//! The port for tasks, sleep, elapsed time and randomness. The program runs on [`TokioWorld`], the
//! deterministic simulation on its own world.

use std::cell::RefCell;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// The engine's environment besides store and gateway.
pub trait World: Send + Sync + 'static {
    /// Runs a task to the end in the background.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    fn sleep(&self, wait: Duration) -> impl Future<Output = ()> + Send;

    /// Time since a fixed moment, for measuring only: decisions use the store's clock.
    fn elapsed(&self) -> Duration;

    /// 128 unpredictable bits.
    fn chance(&self) -> u128;
}

/// The real world: tokio's runtime and the operating system's random bytes.
#[derive(Clone, Copy, Debug)]
pub struct TokioWorld {
    start: Instant,
}

/// Random bytes read at once: a system call for every id would cost more than the id.
const POOL_BYTES: usize = 4_096;

struct Pool {
    bytes: [u8; POOL_BYTES],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], used: POOL_BYTES }) };
}

#[expect(clippy::disallowed_methods, reason = "this is the port that provides them")]
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

#[expect(clippy::disallowed_methods, reason = "this is the port that provides them")]
impl World for TokioWorld {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(task);
        } else {
            tracing::error!("a task was started without a runtime; its work is left to recovery");
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
            // Without random bytes no id may be made, so the request's task ends here.
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
        // The pool must not keep bytes that were handed out.
        Some(u128::from_ne_bytes(std::mem::take(chunk)))
    }
}

//! Tasks, waiting and chance, as the engine sees them. The simulator brings its own world; the program runs on
//! [`TokioWorld`].

use std::future::Future;
use std::time::Duration;

/// What surrounds the engine besides store and gateway.
pub trait World: Send + Sync + 'static {
    /// Runs a task to its end, whoever waits for it or not.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Waits.
    fn sleep(&self, wait: Duration) -> impl Future<Output = ()> + Send;

    /// 128 unpredictable bits.
    fn chance(&self) -> u128;
}

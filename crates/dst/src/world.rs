//! The engine's world in one simulated process: tasks, sleeps, a local clock and random numbers.

use crate::bank::Bug;
use crate::chance::Chance;
use crate::executor::{Executor, Group, lock};
use counterfoil_engine::world::World;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The world of an incarnation of a process.
#[derive(Clone)]
pub struct SimWorld {
    executor: Executor,
    group: Group,
    chance: Arc<Mutex<Chance>>,
    /// Speed of the process's local clock, in thousandths.
    pace: u64,
    bug: Option<Bug>,
}

impl SimWorld {
    pub fn new(executor: Executor, group: Group, chance: Chance, pace: u64, bug: Option<Bug>) -> SimWorld {
        SimWorld { executor, group, chance: Arc::new(Mutex::new(chance)), pace: pace.max(1), bug }
    }
}

impl World for SimWorld {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if self.bug == Some(Bug::SpawnLost) && lock(&self.chance).percent(10) {
            return;
        }
        self.executor.spawn(self.group, task);
    }

    async fn sleep(&self, wait: Duration) {
        if self.bug == Some(Bug::SleepForever) && wait >= Duration::from_millis(300) {
            std::future::pending::<()>().await;
        }
        // A fast clock ends a wait early in true time.
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.executor.sleep(ms.saturating_mul(1_000) / self.pace).await;
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.executor.now().saturating_mul(self.pace) / 1_000)
    }

    fn chance(&self) -> u128 {
        if self.bug == Some(Bug::ChanceStuck) {
            return 7;
        }
        lock(&self.chance).next_u128()
    }
}

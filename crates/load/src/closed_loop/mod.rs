//! The load: new requests, and replays of earlier ones, on many connections.
//!
//! A request counts as done only if it was new, and a replay only if its answer is the first answer
//! again. A request whose connection broke is counted and abandoned: the next request has a new
//! key.

mod earlier;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::report::{Progress, Report, Tally};
use crate::request::Work;
use crate::{LoadError, Plan};
use worker::{Live, Window, Worker};

/// Often enough for a smooth bar, too rare to cost anything.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Requests per connection, made before the warm-up if the load consists of replays only.
const SEEDS_FOR_REPLAYS_ONLY: usize = 16;

/// Runs the plan with `work` to its end; see [`crate::charge::run`].
pub(crate) async fn run(plan: Plan, work: Work, progress: impl Fn(Progress)) -> Result<Report, LoadError> {
    plan.check()?;
    let connections = plan.connections;
    let mut total = Tally::new(work.per_request());
    let workers = prepare(&Arc::new(plan.clone()), &Arc::new(work)).await?;
    let live: Vec<Arc<Live>> = workers.iter().map(Worker::live).collect();

    let window = Window::opening(Instant::now(), plan.warmup, plan.duration);
    let mut running = JoinSet::new();
    for worker in workers {
        running.spawn(worker.drive(window));
    }
    let mut ticks = interval(PROGRESS_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut last = window.end;
    loop {
        tokio::select! {
            _ = ticks.tick() => progress(window.progress(&live)),
            done = running.join_next() => match done {
                // An error drops the set, which stops the other connections.
                Some(done) => {
                    let (tally, ended) = done??;
                    total.merge(tally);
                    last = last.max(ended);
                }
                None => break,
            },
        }
    }
    progress(window.progress(&live));
    total.report(connections, last - window.start)
}

/// Opens all connections and makes the requests needed before the measurement.
async fn prepare(plan: &Arc<Plan>, work: &Arc<Work>) -> Result<Vec<Worker>, LoadError> {
    let mut opening = JoinSet::new();
    for number in 0..plan.connections {
        let seeds = match (plan.replay_percent, number) {
            (100, _) => SEEDS_FOR_REPLAYS_ONLY,
            (_, 0) => 1,
            (_, _) => 0,
        };
        opening.spawn(Worker::prepare(Arc::clone(plan), Arc::clone(work), number, seeds));
    }
    let mut workers = Vec::with_capacity(plan.connections);
    while let Some(worker) = opening.join_next().await {
        workers.push(worker??);
    }
    Ok(workers)
}

#[cfg(test)]
mod tests;

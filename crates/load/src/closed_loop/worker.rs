//! A connection of a run: sends, judges the answer, counts, and repeats until the window closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use counterfoil_prng::Prng;
use tokio::time::{sleep, timeout_at};

use super::earlier::Earlier;
use crate::client::{Answer, Connection, Failure};
use crate::report::{Outcome, Progress, Tally};
use crate::request::{Request, Work};
use crate::{LoadError, Plan};

/// Time limit of requests in flight at the end of the window, or in preparation.
const ANSWER_GRACE: Duration = Duration::from_secs(30);
/// A restarting server is back within `RECONNECTS_MAX` pauses; longer downtime ends the connection.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);
const RECONNECTS_MAX: u32 = 100;
/// Enough of a refusal to read its reason.
const REFUSAL_BYTES_MAX: usize = 300;

/// Start of the measurement, and start of the last request.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) opened: Instant,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

/// Counters for the progress bar. Only one task writes them.
#[derive(Default)]
pub(crate) struct Live {
    ok: AtomicU64,
    failed: AtomicU64,
}

pub(crate) struct Worker {
    plan: Arc<Plan>,
    work: Arc<Work>,
    request: Request,
    next_number: u64,
    connection: Option<Connection>,
    earlier: Earlier,
    /// Seeded with the connection's number, so every run makes the same choices.
    prng: Prng,
    live: Arc<Live>,
}

impl Window {
    pub(crate) fn opening(now: Instant, warmup: Duration, duration: Duration) -> Self {
        Self { opened: now, start: now + warmup, end: now + warmup + duration }
    }

    pub(crate) fn progress(&self, live: &[Arc<Live>]) -> Progress {
        let total = self.end - self.opened;
        Progress {
            elapsed: self.opened.elapsed().min(total),
            total,
            ok: live.iter().map(|one| one.ok.load(Ordering::Relaxed)).sum(),
            failed: live.iter().map(|one| one.failed.load(Ordering::Relaxed)).sum(),
        }
    }
}

impl Worker {
    /// Connects, and makes `seeds` requests that are not measured.
    pub(crate) async fn prepare(
        plan: Arc<Plan>,
        work: Arc<Work>,
        number: usize,
        seeds: usize,
    ) -> Result<Self, LoadError> {
        let addr = plan.addr;
        let connection =
            Connection::open(addr).await.map_err(|source| LoadError::Connect { addr, source })?;
        let mut worker = Self {
            request: Request::new(&plan, Arc::clone(&work), number),
            plan,
            work,
            next_number: 0,
            connection: Some(connection),
            earlier: Earlier::default(),
            prng: Prng::new(number as u64),
            live: Arc::default(),
        };
        let mut refused = None;
        let mut done = false;
        let deadline = tokio::time::Instant::now() + ANSWER_GRACE;
        for _ in 0..seeds {
            let outcome = timeout_at(deadline, worker.begin()).await;
            match outcome.unwrap_or_else(|late| Ok(Outcome::Lost(late.into())))? {
                Outcome::New { .. } | Outcome::Replayed | Outcome::Differs => done = true,
                Outcome::Refused(status) => refused = Some(status),
                Outcome::Lost(source) => return Err(LoadError::Broken { addr, source }),
            }
        }
        match refused {
            Some(status) if !done && worker.plan.replay_percent == 100 => {
                Err(LoadError::NothingToReplay { status })
            }
            Some(_) | None => Ok(worker),
        }
    }

    pub(crate) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }

    /// Works until the window closes. Counts every request started after the warm-up, even if its
    /// answer comes after the end. Leaving out late answers would flatter a slow server.
    pub(crate) async fn drive(mut self, window: Window) -> Result<(Tally, Instant), LoadError> {
        let mut tally = Tally::new(self.work.per_request());
        // One timer for the whole run instead of one per request; it ends the wait for a silent
        // server.
        let deadline = tokio::time::Instant::from_std(window.end + ANSWER_GRACE);
        match timeout_at(deadline, self.repeat(window, &mut tally)).await {
            Ok(ended) => ended?,
            Err(late) => tally.count(&Outcome::Lost(late.into()), Duration::ZERO),
        }
        Ok((tally, Instant::now()))
    }

    async fn repeat(&mut self, window: Window, tally: &mut Tally) -> Result<(), LoadError> {
        let mut failures_in_a_row = 0;
        let mut now = Instant::now();
        while now < window.end && failures_in_a_row < RECONNECTS_MAX {
            let outcome = self.once().await?;
            let answered = Instant::now();
            if now >= window.start {
                tally.count(&outcome, answered - now);
                tally.span(now, answered);
            }
            now = answered;
            let done = tally.done(&outcome);
            add(&self.live.ok, done);
            add(&self.live.failed, self.work.per_request() - done);
            if let Outcome::Lost(_) = outcome {
                failures_in_a_row += 1;
                sleep(RECONNECT_PAUSE).await;
                now = Instant::now();
            } else {
                failures_in_a_row = 0;
            }
        }
        Ok(())
    }

    async fn once(&mut self) -> Result<Outcome, LoadError> {
        let percent = u64::from(self.plan.replay_percent);
        if percent > 0 && self.prng.percent(percent) { self.replay().await } else { self.begin().await }
    }

    async fn begin(&mut self) -> Result<Outcome, LoadError> {
        let number = self.next_number;
        self.next_number += 1;
        let bytes = self.request.numbered(number);
        let answer = match call(&mut self.connection, &self.plan, bytes).await {
            Ok(answer) => answer,
            Err(failure) => return lost(&mut self.connection, failure),
        };
        if answer.head.replayed {
            return Err(LoadError::KeyUsedBefore { key: self.request.key() });
        }
        if number == 0 && is_final_refusal(answer.head.status) {
            return Err(refused(&answer));
        }
        let outcome = self.work.judge(&answer);
        if answer.is_success() && self.plan.replay_percent > 0 {
            self.earlier.keep(number, &answer, &mut self.prng);
        }
        let closes = answer.head.closes;
        self.end_call(closes);
        Ok(outcome)
    }

    async fn replay(&mut self) -> Result<Outcome, LoadError> {
        let Some(done) = self.earlier.pick(&mut self.prng) else {
            return self.begin().await;
        };
        let bytes = self.request.numbered(done.number);
        let answer = match call(&mut self.connection, &self.plan, bytes).await {
            Ok(answer) => answer,
            Err(failure) => return lost(&mut self.connection, failure),
        };
        let status = answer.head.status;
        let outcome = if answer.repeats(&done.answer()) {
            Outcome::Replayed
        } else if is_not_now(status) && !answer.head.replayed {
            Outcome::Refused(status)
        } else {
            Outcome::Differs
        };
        let closes = answer.head.closes;
        self.end_call(closes);
        Ok(outcome)
    }

    fn end_call(&mut self, closes: bool) {
        if closes {
            self.connection = None;
        }
    }
}

/// Sends on the open connection, or on a new one if the last was closed.
async fn call<'a>(
    connection: &'a mut Option<Connection>,
    plan: &Plan,
    bytes: &[u8],
) -> Result<Answer<'a>, Failure> {
    let open = match connection.take() {
        Some(open) => open,
        None => Connection::open(plan.addr).await.map_err(Failure::Transport)?,
    };
    connection.insert(open).call(bytes).await
}

/// A malformed answer ends the run: the next answer would be no better.
fn lost(connection: &mut Option<Connection>, failure: Failure) -> Result<Outcome, LoadError> {
    *connection = None;
    match failure {
        Failure::Transport(error) => Ok(Outcome::Lost(error)),
        Failure::Malformed(malformed) => Err(LoadError::Malformed(malformed)),
    }
}

/// Whether the server refused temporarily, without looking up the stored answer.
fn is_not_now(status: u16) -> bool {
    matches!(status, 409 | 429 | 500..=599)
}

/// A wrong key, path or body stays wrong; declines and temporary refusals belong in the report.
fn is_final_refusal(status: u16) -> bool {
    (300..500).contains(&status) && status != 402 && !is_not_now(status)
}

fn refused(answer: &Answer<'_>) -> LoadError {
    let body = answer.body();
    let body = String::from_utf8_lossy(&body[..body.len().min(REFUSAL_BYTES_MAX)]).into_owned();
    LoadError::Refused { status: answer.head.status, body }
}

fn add(counter: &AtomicU64, more: u64) {
    // With one writer, a plain read and write are enough and cheaper than a locked addition.
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

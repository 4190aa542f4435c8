//! Sends a command: finds the key, and retries under the same key until the answer is final.

use super::client::{Answer, Client};
use super::command::{Command, Recipe};
use bytes::Bytes;
use counterfoil_core::idempotency::derive::{Search, Step};
use counterfoil_core::types::time::Time;
use counterfoil_wire::problem::Code;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The request that closes a key: opening an account that moves no money. The first closing opens
/// the account, every later one is refused, and both use up their key. Importers recognize each
/// other's closings by these bytes, so the bytes never change.
const CLOSING_PATH: &str = "/v1/accounts";
const CLOSING_BODY: &[u8] =
    br#"{"asset":"USD","code":"import:closed","metadata":{"about":"closes derived keys of an earlier bucket; holds no money"}}"#;

/// The first pause between two attempts; doubled after every attempt.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Longest pause, even if the server asks for more.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// Sends commands.
pub(super) struct Sender {
    pub(super) client: Client,
    pub(super) recipe: Recipe,
    /// The time that selects buckets, if not the machine's.
    pub(super) as_of: Option<Time>,
    /// Longest time to try one command.
    pub(super) deadline: Duration,
    /// The server refuses the API key: nothing more is sent.
    pub(super) stopped: AtomicBool,
}

/// The result of a command, and the last key it was sent under.
#[derive(Debug)]
pub(super) struct Delivered {
    pub(super) key: String,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// The final answer.
    Answered(Answer),
    /// No final answer within the deadline; the command may have been executed. Holds the last
    /// status, if any, and a reason.
    Unresolved(Option<u16>, String),
    /// Nothing was sent.
    NotSent,
}

impl Sender {
    /// The key tried first. A command found under another key is reported with that key.
    pub(super) fn key(&self, command: &Command) -> String {
        command.identity.key(self.recipe.bucket(command, self.now()))
    }

    fn now(&self) -> Time {
        self.as_of.unwrap_or_else(machine_time)
    }

    /// Sends a command until it has a final answer or its deadline passes.
    pub(super) async fn deliver(&self, command: &Command) -> Delivered {
        let began = Instant::now();
        let path = format!("/v1/{}", self.recipe.route.name());
        let mut search = Search::from(self.recipe.bucket(command, self.now()));
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return Delivered { key: self.key(command), outcome: Outcome::NotSent };
            }
            let (bucket, path, body) = match search.step() {
                Step::Close(bucket) => (bucket, CLOSING_PATH, Bytes::from_static(CLOSING_BODY)),
                Step::Send(bucket) => (bucket, path.as_str(), Bytes::copy_from_slice(&command.body)),
            };
            let key = command.identity.key(bucket);
            let answer = match self.persist(path, &key, &body, began).await {
                Ok(answer) => answer,
                Err(outcome) => return Delivered { key, outcome },
            };
            let next = match search.step() {
                _ if is(&answer, Code::IdempotencyKeyFingerprintMismatch) => search.used_by_another(),
                Step::Close(_) if is_closed(&answer) => search.closed(),
                Step::Close(_) | Step::Send(_) => None,
            };
            match next {
                Some(next) => search = next,
                None => return Delivered { key, outcome: Outcome::Answered(answer) },
            }
        }
    }

    /// Repeats one request under the same key until its answer is final.
    async fn persist(&self, path: &str, key: &str, body: &Bytes, began: Instant) -> Result<Answer, Outcome> {
        let mut ceiling = PAUSE_FIRST;
        loop {
            let (status, why, wait) = match self.client.post(path, key, body.clone()).await {
                Ok(answer) if passes(&answer) => {
                    let why = answer.error.unwrap_or_else(|| format!("status {}", answer.status));
                    (Some(answer.status), why, answer.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX))
                }
                Ok(answer) => {
                    if matches!(answer.status, 401 | 403) {
                        self.stopped.store(true, Ordering::Relaxed);
                    }
                    return Ok(answer);
                }
                Err(why) => (None, why, Duration::ZERO),
            };
            let pause = wait + jitter(ceiling);
            if began.elapsed() + pause >= self.deadline {
                return Err(Outcome::Unresolved(status, why));
            }
            tokio::time::sleep(pause).await;
            ceiling = (ceiling * 2).min(PAUSE_MAX);
        }
    }
}

fn is(answer: &Answer, code: Code) -> bool {
    answer.error.as_deref() == Some(code.name())
}

/// Whether the answer shows that a closing holds the key. The closing was done, was refused because
/// of an earlier closing under another key, or is older than the replay window.
fn is_closed(answer: &Answer) -> bool {
    (200..300).contains(&answer.status)
        || is(answer, Code::AccountExists)
        || is(answer, Code::IdempotencyKeyExpired)
}

/// Whether a retry may get another answer. Stored refusals are final, even with a status of 5xx.
fn passes(answer: &Answer) -> bool {
    const PASSING: [Code; 8] = [
        Code::OutcomePending,
        Code::IdempotencyKeyInUse,
        Code::PaymentInProgress,
        Code::StoreUnavailable,
        Code::RateLimited,
        Code::RequestTimeout,
        Code::ShuttingDown,
        Code::InternalError,
    ];
    match Code::ALL.iter().find(|code| is(answer, **code)) {
        Some(code) => PASSING.contains(code),
        // A proxy answered, not the server.
        None => answer.status >= 500 || matches!(answer.status, 408 | 425 | 429),
    }
}

/// A random pause up to `ceiling`, so that clients that failed together do not retry together.
fn jitter(ceiling: Duration) -> Duration {
    let mut chance = [0; 4];
    // Without randomness the pause is the longest.
    let part = if getrandom::fill(&mut chance).is_ok() { u32::from_le_bytes(chance) >> 16 } else { 1 << 16 };
    ceiling * part / (1 << 16)
}

/// The machine's clock.
pub(super) fn machine_time() -> Time {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_ms(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;

//! The link to the server: one shared connection made on demand, one timeout, and a cooldown after
//! each failure.

use crate::target::Target;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_gateway::breaker::{Breaker, BreakerPolicy, BreakerState};
use counterfoil_gateway::fence::FenceFailure;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, RedisError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Cooldown after the first failure. A hanging server costs one timeout per second.
const COOLDOWN: BreakerPolicy = BreakerPolicy { failures: 1, open: Span::from_ms(1_000) };

/// An idle connection that broke says nothing about the server, so it is replaced once.
const ATTEMPTS_MAX: usize = 2;

pub(crate) struct Link {
    target: Target,
    timeout: Duration,
    started: Instant,
    breaker: Mutex<Breaker>,
    current: Mutex<CurrentConnection>,
    /// Held while connecting, so that many callers make one connection.
    connecting: tokio::sync::Mutex<()>,
}

/// The current connection, numbered to tell it from its successor.
#[derive(Default)]
struct CurrentConnection {
    number: u64,
    connection: Option<MultiplexedConnection>,
}

/// The result of one attempt.
enum Attempt<T> {
    Answered(T),
    /// The server refused this key only.
    Declined(FenceFailure),
    Failed(FenceFailure),
    /// The connection broke before any answer arrived.
    Broken(FenceFailure),
}

impl Link {
    pub(crate) fn new(target: Target, timeout: Duration) -> Link {
        Link {
            target,
            timeout,
            started: Instant::now(),
            breaker: Mutex::new(Breaker::new(COOLDOWN)),
            current: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    /// Sends a command, unless the server is in its cooldown. The command must be harmless when
    /// repeated.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, FenceFailure> {
        if self.breaker().permit(self.now()).is_err() {
            return Err(FenceFailure::Resting);
        }
        let deadline = Instant::now() + self.timeout;
        let mut broken = None;
        for _ in 0..ATTEMPTS_MAX {
            match self.try_once(command, deadline).await {
                Attempt::Answered(answer) => {
                    self.note_success();
                    return Ok(answer);
                }
                Attempt::Declined(failure) => {
                    self.note_success();
                    return Err(failure);
                }
                Attempt::Failed(failure) => return Err(self.note_failure(failure)),
                Attempt::Broken(failure) => broken = Some(failure),
            }
        }
        Err(self.note_failure(broken.unwrap_or(FenceFailure::Resting)))
    }

    async fn try_once<T: FromRedisValue>(&self, command: &Cmd, deadline: Instant) -> Attempt<T> {
        let (number, mut connection) = match timeout_at(deadline, self.connection()).await {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Attempt::Failed(FenceFailure::Unreachable(self.error_text(&error))),
            Err(_) => return Attempt::Failed(FenceFailure::Unreachable(self.timeout_text())),
        };
        match timeout_at(deadline, command.query_async(&mut connection)).await {
            Ok(Ok(answer)) => Attempt::Answered(answer),
            Ok(Err(error)) if is_wrong_type(&error) => {
                Attempt::Declined(FenceFailure::Refused(error.to_string()))
            }
            // Other errors concern the server itself: loading, full, or demoted to a replica. The
            // next connection may reach another server.
            Ok(Err(error)) => {
                self.forget(number);
                let text = self.error_text(&error);
                match error.code() {
                    Some(_) => Attempt::Failed(FenceFailure::Refused(text)),
                    None if error.is_connection_dropped() => Attempt::Broken(FenceFailure::Unheard(text)),
                    None => Attempt::Failed(FenceFailure::Unheard(text)),
                }
            }
            // A silent connection may be dead.
            Err(_) => {
                self.forget(number);
                Attempt::Failed(FenceFailure::Unheard(self.timeout_text()))
            }
        }
    }

    async fn connection(&self) -> Result<(u64, MultiplexedConnection), RedisError> {
        if let Some(connected) = self.current().connected() {
            return Ok(connected);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(connected) = self.current().connected() {
            return Ok(connected);
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout));
        let connection = self.target.client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut current = self.current();
        current.number = current.number.wrapping_add(1);
        current.connection = Some(connection.clone());
        Ok((current.number, connection))
    }

    /// Drops the connection unless it was already replaced.
    fn forget(&self, number: u64) {
        let mut current = self.current();
        if current.number == number {
            current.connection = None;
        }
    }

    fn note_success(&self) {
        let mut breaker = self.breaker();
        let was_closed = matches!(breaker.state(), BreakerState::Closed { .. });
        breaker.worked();
        drop(breaker);
        if !was_closed {
            tracing::info!("Redis answers again");
        }
    }

    fn note_failure(&self, failure: FenceFailure) -> FenceFailure {
        let now = self.now();
        let mut breaker = self.breaker();
        let was_closed = matches!(breaker.state(), BreakerState::Closed { .. });
        breaker.failed(now);
        drop(breaker);
        if was_closed {
            tracing::warn!(%failure, "Redis is unreachable; payments continue without the gateway fence and shared answers");
        }
        failure
    }

    /// The client's own timeouts equal ours and may fire first.
    fn error_text(&self, error: &RedisError) -> String {
        if error.is_timeout() { self.timeout_text() } else { error.to_string() }
    }

    fn timeout_text(&self) -> String {
        format!("no answer within {} ms", self.timeout.as_millis())
    }

    fn now(&self) -> Time {
        Time::from_ms(i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> MutexGuard<'_, CurrentConnection> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CurrentConnection {
    fn connected(&self) -> Option<(u64, MultiplexedConnection)> {
        Some((self.number, self.connection.clone()?))
    }
}

/// Whether the key holds a value of another type. Old servers wrap the code in a message about the
/// script.
fn is_wrong_type(error: &RedisError) -> bool {
    const CODE: &str = "WRONGTYPE";
    error.code() == Some(CODE) || error.detail().is_some_and(|detail| detail.contains(CODE))
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

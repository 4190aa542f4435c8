//! The way to the server: one connection, shared and made when needed, one timeout, and a rest after each failure.

use crate::target::Target;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_gateway::breaker::{Breaker, BreakerPolicy, BreakerState};
use counterfoil_gateway::fence::FenceFailure;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, RedisError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The first failure starts the rest; a second of it keeps the price of a server that hangs at one timeout a second.
const REST: BreakerPolicy = BreakerPolicy { failures: 1, open: Span::from_ms(1_000) };

/// A connection that broke while nobody used it says nothing about the server: it is made anew once.
const TRIES: usize = 2;

pub(crate) struct Link {
    target: Target,
    timeout: Duration,
    begun: Instant,
    breaker: Mutex<Breaker>,
    line: Mutex<Line>,
    /// Held while connecting, so that many callers make one connection.
    connecting: tokio::sync::Mutex<()>,
}

/// The connection of the moment, with a number to tell it from the next.
#[derive(Default)]
struct Line {
    number: u64,
    connection: Option<MultiplexedConnection>,
}

/// What came of one try.
enum Tried<T> {
    Answered(T),
    /// The server's own word that it cannot, about this name alone.
    Declined(FenceFailure),
    Failed(FenceFailure),
    /// The connection was broken before anything was heard on it.
    Broken(FenceFailure),
}

impl Link {
    pub(crate) fn new(target: Target, timeout: Duration) -> Link {
        Link {
            target,
            timeout,
            begun: Instant::now(),
            breaker: Mutex::new(Breaker::new(REST)),
            line: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
        }
    }

    /// Asks the server, unless it rests. The command must do no harm if it arrives twice.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, FenceFailure> {
        if self.breaker().permit(self.now()).is_err() {
            return Err(FenceFailure::Resting);
        }
        let deadline = Instant::now() + self.timeout;
        let mut broken = None;
        for _ in 0..TRIES {
            match self.try_once(command, deadline).await {
                Tried::Answered(answer) => {
                    self.worked();
                    return Ok(answer);
                }
                Tried::Declined(failure) => {
                    self.worked();
                    return Err(failure);
                }
                Tried::Failed(failure) => return Err(self.failed(failure)),
                Tried::Broken(failure) => broken = Some(failure),
            }
        }
        Err(self.failed(broken.unwrap_or(FenceFailure::Resting)))
    }

    async fn try_once<T: FromRedisValue>(&self, command: &Cmd, deadline: Instant) -> Tried<T> {
        let (number, mut connection) = match timeout_at(deadline, self.connection()).await {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Tried::Failed(FenceFailure::Unreachable(self.words(&error))),
            Err(_) => return Tried::Failed(FenceFailure::Unreachable(self.late())),
        };
        match timeout_at(deadline, command.query_async(&mut connection)).await {
            Ok(Ok(answer)) => Tried::Answered(answer),
            Ok(Err(error)) if concerns_the_name_alone(&error) => {
                Tried::Declined(FenceFailure::Refused(error.to_string()))
            }
            // What else the server says is about itself: it loads, it is full, it became a replica. The next connection
            // may reach another.
            Ok(Err(error)) => {
                self.forget(number);
                let words = self.words(&error);
                match error.code() {
                    Some(_) => Tried::Failed(FenceFailure::Refused(words)),
                    None if error.is_connection_dropped() => Tried::Broken(FenceFailure::Unheard(words)),
                    None => Tried::Failed(FenceFailure::Unheard(words)),
                }
            }
            // A connection on which nothing is heard may be dead without a word.
            Err(_) => {
                self.forget(number);
                Tried::Failed(FenceFailure::Unheard(self.late()))
            }
        }
    }

    async fn connection(&self) -> Result<(u64, MultiplexedConnection), RedisError> {
        if let Some(connected) = self.line().connected() {
            return Ok(connected);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(connected) = self.line().connected() {
            return Ok(connected);
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout));
        let connection = self.target.client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut line = self.line();
        line.number = line.number.wrapping_add(1);
        line.connection = Some(connection.clone());
        Ok((line.number, connection))
    }

    /// Lets go of a connection, unless it was replaced already.
    fn forget(&self, number: u64) {
        let mut line = self.line();
        if line.number == number {
            line.connection = None;
        }
    }

    fn worked(&self) {
        let mut breaker = self.breaker();
        let was_closed = matches!(breaker.state(), BreakerState::Closed { .. });
        breaker.worked();
        drop(breaker);
        if !was_closed {
            tracing::info!("Redis answers again");
        }
    }

    fn failed(&self, failure: FenceFailure) -> FenceFailure {
        let now = self.now();
        let mut breaker = self.breaker();
        let was_closed = matches!(breaker.state(), BreakerState::Closed { .. });
        breaker.failed(now);
        drop(breaker);
        if was_closed {
            tracing::warn!(%failure, "Redis is away; payments go on without the gateway fence and shared answers");
        }
        failure
    }

    /// The client's own timeouts are as long as ours, and may end first.
    fn words(&self, error: &RedisError) -> String {
        if error.is_timeout() { self.late() } else { error.to_string() }
    }

    fn late(&self) -> String {
        format!("nothing within {} ms", self.timeout.as_millis())
    }

    fn now(&self) -> Time {
        Time::from_ms(i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn connected(&self) -> Option<(u64, MultiplexedConnection)> {
        Some((self.number, self.connection.clone()?))
    }
}

/// Something of another kind stands under the name. Old servers wrap the word in what they say about the script.
fn concerns_the_name_alone(error: &RedisError) -> bool {
    const WORD: &str = "WRONGTYPE";
    error.code() == Some(WORD) || error.detail().is_some_and(|detail| detail.contains(WORD))
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

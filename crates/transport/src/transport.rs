//! Exchanges with one server: pooled connections, one deadline per exchange.

use crate::deadline::Deadline;
use crate::letter::{Letter, SendReceipt};
use crate::pool::{Connect, Pool};
use bytes::Bytes;
use counterfoil_core::payments::provider::{Cause, ProviderOutcome};
use counterfoil_core::types::time::Span;
use http::header::RETRY_AFTER;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{timeout, timeout_at};

/// Longest time to connect. At most half the deadline is used, which leaves the rest for the
/// answer.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Largest response body; a hundred times the size of a payment.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Limits for draining an unread body so that its connection can be reused.
const DRAIN_BYTES_MAX: usize = 16 * 1024;
const DRAIN_MAX: Duration = Duration::from_millis(50);

/// Concurrent requests to a host; more do not raise its throughput.
const CONNECTIONS_MAX: usize = 10_000;
/// Longest deadline of one call. No lease is renewed for longer.
const TIMEOUT_MAX: Duration = Duration::from_mins(10);

/// Limits of one connector.
#[derive(Clone, Copy, Debug)]
pub struct TransportLimits {
    /// Longest time for one call: connecting, sending and reading the whole response.
    pub timeout: Duration,
    /// Concurrent requests; also the number of connections kept open.
    pub connections_max: usize,
}

/// A transport cannot be made from these limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportConfigError {
    /// The timeout is zero or above ten minutes.
    Timeout,
    /// Not between 1 and 10,000 connections.
    Connections,
    /// The TLS library could not be set up.
    Tls(String),
}

/// The HTTP transport to one server.
pub struct Transport {
    pool: SchemePool,
    slots: Semaphore,
    timeout: Duration,
    reads_body: fn(StatusCode) -> bool,
}

/// Each pool refuses requests for the other scheme. A key meant for TLS never travels in clear text
/// to the endpoint of an older payment.
enum SchemePool {
    Plain(Pool<HttpConnector>),
    Tls(Pool<HttpsConnector<HttpConnector>>),
}

/// A complete response.
pub struct HttpAnswer {
    pub status: StatusCode,
    /// The `Retry-After` header as sent.
    pub retry_after: Option<String>,
    /// Empty if the status alone decides.
    pub body: Bytes,
}

/// Longest accepted `Retry-After`; larger values are a mistake of the server.
const RETRY_AFTER_SECONDS_MAX: u64 = 300;

impl HttpAnswer {
    /// The requested pause. Only whole seconds are understood; dates and other text count as no
    /// pause.
    pub fn pause(&self) -> Option<Span> {
        let seconds: u64 = self.retry_after.as_deref()?.trim().parse().ok()?;
        Some(Span::from_ms(seconds.min(RETRY_AFTER_SECONDS_MAX) * 1_000))
    }
}

/// A failed exchange. The receipt tells whether the request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportFailure {
    /// No free connection slot in time.
    Full,
    Timeout,
    /// No connection, or a connection cut off.
    Cut,
    /// The body exceeds the size limit.
    TooLarge,
}

impl TransportFailure {
    /// The cause to report for a request that may have been sent.
    pub const fn cause(self) -> Cause {
        match self {
            TransportFailure::Full => Cause::InProgress,
            TransportFailure::Timeout => Cause::Timeout,
            TransportFailure::Cut => Cause::Cut,
            TransportFailure::TooLarge => Cause::Unreadable,
        }
    }
}

impl Transport {
    /// A transport that connects on demand. `reads_body` selects the statuses whose body is read.
    pub fn new(
        limits: TransportLimits,
        is_https: bool,
        reads_body: fn(StatusCode) -> bool,
    ) -> Result<Transport, TransportConfigError> {
        let TransportLimits { timeout, connections_max } = limits;
        if timeout.is_zero() || timeout > TIMEOUT_MAX {
            return Err(TransportConfigError::Timeout);
        }
        if !(1..=CONNECTIONS_MAX).contains(&connections_max) {
            return Err(TransportConfigError::Connections);
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_MAX.min(timeout / 2)));
        connector.enforce_http(!is_https);
        let pool = if is_https {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let tls = HttpsConnectorBuilder::new()
                .with_provider_and_webpki_roots(provider)
                .map_err(|error| TransportConfigError::Tls(error.to_string()))?
                .https_only()
                .enable_http1()
                .wrap_connector(connector);
            SchemePool::Tls(Pool::new(tls))
        } else {
            SchemePool::Plain(Pool::new(connector))
        };
        Ok(Transport { pool, slots: Semaphore::new(connections_max), timeout, reads_body })
    }

    /// The deadline of an exchange that begins now.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }

    /// Longest time until a request is sent. Rounded up to whole milliseconds, because rules
    /// compare it with leases.
    pub fn send_within(&self) -> Span {
        Span::from_ms(u64::try_from(self.timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// Runs [`exchange`](Transport::exchange) and maps a failure to the outcome it means for the
    /// call.
    pub async fn deliver(
        &self,
        request: Request<Letter>,
        receipt: &SendReceipt,
    ) -> Result<HttpAnswer, ProviderOutcome> {
        let failure = match self.exchange(request).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        // Only the receipt knows, and withdrawing makes its answer final.
        let never_left = receipt.withdraw();
        Err(match failure {
            TransportFailure::Full => ProviderOutcome::Busy { retry_after: None },
            TransportFailure::Timeout | TransportFailure::Cut if never_left => ProviderOutcome::NotSent,
            TransportFailure::Timeout | TransportFailure::Cut | TransportFailure::TooLarge => {
                ProviderOutcome::Unknown(failure.cause())
            }
        })
    }

    /// Sends one request and reads its response, both before the letter's deadline.
    pub async fn exchange(&self, request: Request<Letter>) -> Result<HttpAnswer, TransportFailure> {
        let deadline = request.body().not_after();
        // Half the deadline: a request sent just before the deadline would only produce an unknown
        // outcome.
        let Ok(Ok(_slot)) = timeout(self.timeout / 2, self.slots.acquire()).await else {
            return Err(TransportFailure::Full);
        };
        match &self.pool {
            SchemePool::Plain(pool) => self.exchange_on(pool, request, deadline).await,
            SchemePool::Tls(pool) => self.exchange_on(pool, request, deadline).await,
        }
    }

    async fn exchange_on<C: Connect>(
        &self,
        pool: &Pool<C>,
        request: Request<Letter>,
        deadline: Deadline,
    ) -> Result<HttpAnswer, TransportFailure> {
        let (response, mut connection, server) = match timeout_at(deadline.timer(), pool.send(request)).await
        {
            Ok(Ok(answered)) => answered,
            Ok(Err(error)) => {
                // Log the reason here, as it is lost further up: DNS, certificate, reset.
                tracing::warn!(?error, "the request was not answered");
                return Err(TransportFailure::Cut);
            }
            Err(_) => return Err(TransportFailure::Timeout),
        };
        let answer = connection.drive_until(read(response, deadline, self.reads_body)).await?;
        pool.put_back(server, connection).await;
        Ok(answer)
    }
}

async fn read(
    response: Response<Incoming>,
    deadline: Deadline,
    reads_body: fn(StatusCode) -> bool,
) -> Result<HttpAnswer, TransportFailure> {
    let status = response.status();
    let retry_after =
        response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = response.into_body();
    let body = if reads_body(status) {
        match timeout_at(deadline.timer(), Limited::new(body, BODY_BYTES_MAX).collect()).await {
            Ok(Ok(whole)) => whole.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(TransportFailure::TooLarge),
            Ok(Err(error)) => {
                tracing::warn!(?error, "the answer was cut off");
                return Err(TransportFailure::Cut);
            }
            Err(_) => return Err(TransportFailure::Timeout),
        }
    } else {
        // The body does not matter here: the status is the answer.
        let _ = timeout(DRAIN_MAX, Limited::new(body, DRAIN_BYTES_MAX).collect()).await;
        Bytes::new()
    };
    Ok(HttpAnswer { status, retry_after, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_bounded_and_malformed_values_are_ignored() {
        for (header, seconds) in [
            ("0", Some(0)),
            ("7", Some(7)),
            (" 7 ", Some(7)),
            ("300", Some(300)),
            ("301", Some(300)),
            ("18446744073709551615", Some(300)),
            ("18446744073709551616", None),
            ("-1", None),
            ("1.5", None),
            ("", None),
            ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ] {
            let retry_after = Some(header.to_owned());
            let answer = HttpAnswer { status: StatusCode::OK, retry_after, body: Bytes::new() };
            assert_eq!(answer.pause(), seconds.map(|s| Span::from_ms(s * 1_000)), "{header}");
        }
    }

    #[test]
    fn limits_out_of_range_give_no_transport() {
        let second = Duration::from_secs(1);
        for (timeout, connections_max, why) in [
            (Duration::ZERO, 1, TransportConfigError::Timeout),
            (TIMEOUT_MAX + second, 1, TransportConfigError::Timeout),
            (second, 0, TransportConfigError::Connections),
            (second, 10_001, TransportConfigError::Connections),
        ] {
            let limits = TransportLimits { timeout, connections_max };
            assert_eq!(Transport::new(limits, false, |_| true).err(), Some(why));
        }
    }
}

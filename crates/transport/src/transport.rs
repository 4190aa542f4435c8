//! Pooled connections to one server, and one exchange on them under one deadline.

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

/// Connecting takes at most this long, and at most half the deadline, so that what is left is enough to answer.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Bytes of an answer that is read: a hundred times what a payment takes.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes and time spent on a body nobody reads, so that its connection can be used again.
const DRAIN_BYTES_MAX: usize = 16 * 1024;
const DRAIN_MAX: Duration = Duration::from_millis(50);

/// Requests under way at once: beyond this one host is not helped by more.
const CONNECTIONS_MAX: usize = 10_000;
/// Longest deadline of one call: longer than any lease would be renewed for.
const TIMEOUT_MAX: Duration = Duration::from_mins(10);

/// What one connector may take.
#[derive(Clone, Copy, Debug)]
pub struct TransportLimits {
    /// How long one call may take: connecting, sending and reading the whole answer.
    pub timeout: Duration,
    /// Requests that may be under way at once, and connections kept open between them.
    pub connections_max: usize,
}

/// Why there is no road.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportConfigError {
    /// A deadline of zero or beyond ten minutes.
    Timeout,
    /// No connections at all, or more than 10,000.
    Connections,
    /// The TLS library could not be set up.
    Tls(String),
}

/// The road to one server.
pub struct Transport {
    pool: SchemePool,
    slots: Semaphore,
    timeout: Duration,
    is_worded: fn(StatusCode) -> bool,
}

/// Without TLS only where the URL says so: neither carries requests for the other's scheme, so a key meant for
/// TLS never travels in the clear to the endpoint of an older payment.
enum SchemePool {
    Plain(Pool<HttpConnector>),
    Tls(Pool<HttpsConnector<HttpConnector>>),
}

/// A whole answer.
pub struct HttpAnswer {
    /// Its status.
    pub status: StatusCode,
    /// The `Retry-After` header, as sent.
    pub retry_after: Option<String>,
    /// Empty where the status alone decides.
    pub body: Bytes,
}

/// Longest pause a server can ask for: more than this is a mistake on its side.
const RETRY_AFTER_SECONDS_MAX: u64 = 300;

impl HttpAnswer {
    /// The pause the server asks for, in whole seconds; a date or any other text is no wish at all.
    pub fn pause(&self) -> Option<Span> {
        let seconds: u64 = self.retry_after.as_deref()?.trim().parse().ok()?;
        Some(Span::from_ms(seconds.min(RETRY_AFTER_SECONDS_MAX) * 1_000))
    }
}

/// Why there is no answer. Whether the request left is for its receipt to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportFailure {
    /// Every slot was taken.
    Full,
    /// The deadline passed.
    Timeout,
    /// No connection, or a cut one.
    Cut,
    /// An answer without a reasonable end.
    TooLarge,
}

impl TransportFailure {
    /// Why nothing is known of a request that may have left.
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
    /// A road; connections are made when they are needed. `is_worded` says of which answers the body is read.
    pub fn new(
        limits: TransportLimits,
        is_https: bool,
        is_worded: fn(StatusCode) -> bool,
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
        Ok(Transport { pool, slots: Semaphore::new(connections_max), timeout, is_worded })
    }

    /// The end of an exchange that begins now.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }

    /// How long an exchange may take, in whole milliseconds. Rounded up: a promise may be kept early.
    pub fn send_within(&self) -> Span {
        Span::from_ms(u64::try_from(self.timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// As [`exchange`](Transport::exchange); where there is no answer, what that means for what was asked.
    pub async fn deliver(
        &self,
        request: Request<Letter>,
        receipt: &SendReceipt,
    ) -> Result<HttpAnswer, ProviderOutcome> {
        let failure = match self.exchange(request).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        // Only the receipt knows, and asking it makes it final.
        let never_left = receipt.withdraw();
        Err(match failure {
            TransportFailure::Full => ProviderOutcome::Busy { retry_after: None },
            TransportFailure::Timeout | TransportFailure::Cut if never_left => ProviderOutcome::NotSent,
            TransportFailure::Timeout | TransportFailure::Cut | TransportFailure::TooLarge => {
                ProviderOutcome::Unknown(failure.cause())
            }
        })
    }

    /// Sends one request and reads its answer, both before the letter's deadline.
    pub async fn exchange(&self, request: Request<Letter>) -> Result<HttpAnswer, TransportFailure> {
        let deadline = request.body().not_after();
        // Half the deadline: a request sent with hardly any time left would only produce an unknown outcome.
        let Ok(Ok(_slot)) = timeout(self.timeout / 2, self.slots.acquire()).await else {
            return Err(TransportFailure::Full);
        };
        match &self.pool {
            SchemePool::Plain(pool) => self.over(pool, request, deadline).await,
            SchemePool::Tls(pool) => self.over(pool, request, deadline).await,
        }
    }

    async fn over<C: Connect>(
        &self,
        pool: &Pool<C>,
        request: Request<Letter>,
        deadline: Deadline,
    ) -> Result<HttpAnswer, TransportFailure> {
        let (response, mut line, server) = match timeout_at(deadline.timer(), pool.ask(request)).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(error)) => {
                // The only place that still knows why: a name that does not resolve, a certificate, a reset.
                tracing::warn!(?error, "no answer from the provider");
                return Err(TransportFailure::Cut);
            }
            Err(_) => return Err(TransportFailure::Timeout),
        };
        let answer = line.carry(read(response, deadline, self.is_worded)).await?;
        pool.put_back(server, line).await;
        Ok(answer)
    }
}

async fn read(
    response: Response<Incoming>,
    deadline: Deadline,
    is_worded: fn(StatusCode) -> bool,
) -> Result<HttpAnswer, TransportFailure> {
    let status = response.status();
    let retry_after =
        response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = response.into_body();
    let body = if is_worded(status) {
        match timeout_at(deadline.timer(), Limited::new(body, BODY_BYTES_MAX).collect()).await {
            Ok(Ok(whole)) => whole.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(TransportFailure::TooLarge),
            Ok(Err(error)) => {
                tracing::warn!(?error, "the provider's answer broke off");
                return Err(TransportFailure::Cut);
            }
            Err(_) => return Err(TransportFailure::Timeout),
        }
    } else {
        // What comes of it does not matter: the answer is its status.
        let _ = timeout(DRAIN_MAX, Limited::new(body, DRAIN_BYTES_MAX).collect()).await;
        Bytes::new()
    };
    Ok(HttpAnswer { status, retry_after, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_bounded_and_nonsense_is_ignored() {
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
    fn limits_beyond_reason_give_no_road() {
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

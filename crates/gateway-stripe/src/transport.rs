//! Pooled connections to the provider, and one exchange on them under one deadline.

use crate::deadline::Deadline;
use crate::letter::Letter;
use crate::settings::SettingsError;
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{timeout, timeout_at};

/// Servers close idle connections after a minute or more; leaving first avoids sending into a closing connection.
const IDLE_MAX: Duration = Duration::from_secs(50);
/// Connecting takes at most this long, and at most half the deadline, so that what is left is enough to answer.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Bytes of a head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an answer that is read: a hundred times what a payment takes.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes and time spent on a body nobody reads, so that its connection can be used again.
const DRAIN_BYTES_MAX: usize = 16 * 1024;
const DRAIN_MAX: Duration = Duration::from_millis(50);

/// The road to the provider.
pub(crate) struct Transport {
    client: Road,
    slots: Semaphore,
    timeout: Duration,
}

/// Without TLS only where the URL says so: neither carries requests for the other's scheme, so a key meant for
/// TLS never travels in the clear to the endpoint of an older payment.
enum Road {
    Plain(Client<HttpConnector, Letter>),
    Tls(Client<HttpsConnector<HttpConnector>, Letter>),
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// The `Retry-After` header, as sent.
    pub(crate) retry_after: Option<String>,
    /// Empty where the status alone decides.
    pub(crate) body: Bytes,
}

/// Why there is no answer. Whether the request left is for its receipt to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Every slot was taken.
    Full,
    /// The deadline passed.
    Timeout,
    /// No connection, or a cut one.
    Cut,
    /// An answer without a reasonable end.
    TooLarge,
}

impl Transport {
    pub(crate) fn new(
        timeout: Duration,
        connections_max: usize,
        is_https: bool,
    ) -> Result<Transport, SettingsError> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_MAX.min(timeout / 2)));
        connector.enforce_http(!is_https);
        let builder = pool(connections_max);
        let client = if is_https {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let tls = HttpsConnectorBuilder::new()
                .with_provider_and_webpki_roots(provider)
                .map_err(|error| SettingsError::Tls(error.to_string()))?
                .https_only()
                .enable_http1()
                .wrap_connector(connector);
            Road::Tls(builder.build(tls))
        } else {
            Road::Plain(builder.build(connector))
        };
        Ok(Transport { client, slots: Semaphore::new(connections_max), timeout })
    }

    /// The end of an exchange that begins now.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout)
    }

    /// How long an exchange may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends one request and reads its answer, both before the letter's deadline.
    pub(crate) async fn exchange(&self, request: Request<Letter>) -> Result<Answer, Failure> {
        let deadline = request.body().not_after();
        // Half the deadline: a request sent with hardly any time left would only produce an unknown outcome.
        let Ok(Ok(_slot)) = timeout(self.timeout / 2, self.slots.acquire()).await else {
            return Err(Failure::Full);
        };
        let sent = match &self.client {
            Road::Plain(client) => client.request(request),
            Road::Tls(client) => client.request(request),
        };
        let response = match timeout_at(deadline.timer(), sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                // The only place that still knows why: a name that does not resolve, a certificate, a reset.
                tracing::warn!(?error, "no answer from the provider");
                return Err(Failure::Cut);
            }
            Err(_) => return Err(Failure::Timeout),
        };
        read(response, deadline).await
    }
}

/// One pool for all endpoints. Its retries are left on: they apply to a request that a dying connection gave back
/// unwritten, and a [`Letter`] that was written has no body left to be written again.
fn pool(connections_max: usize) -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_MAX)
        .pool_max_idle_per_host(connections_max)
        .http1_max_buf_size(HEAD_BYTES_MAX)
        .retry_canceled_requests(true);
    builder
}

async fn read(response: Response<Incoming>, deadline: Deadline) -> Result<Answer, Failure> {
    let status = response.status();
    let retry_after =
        response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = response.into_body();
    let body = if is_worded(status) {
        match timeout_at(deadline.timer(), Limited::new(body, BODY_BYTES_MAX).collect()).await {
            Ok(Ok(whole)) => whole.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(Failure::TooLarge),
            Ok(Err(error)) => {
                tracing::warn!(?error, "the provider's answer broke off");
                return Err(Failure::Cut);
            }
            Err(_) => return Err(Failure::Timeout),
        }
    } else {
        // What comes of it does not matter: the answer is its status.
        let _ = timeout(DRAIN_MAX, Limited::new(body, DRAIN_BYTES_MAX).collect()).await;
        Bytes::new()
    };
    Ok(Answer { status, retry_after, body })
}

/// Whether the meaning of an answer depends on its body.
fn is_worded(status: StatusCode) -> bool {
    status.is_success() || matches!(status.as_u16(), 400..=404)
}

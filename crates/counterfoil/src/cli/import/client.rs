//! HTTP and HTTPS client: one request and its complete response.

use crate::exit::Exit;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Longer than a server holds a request by default.
const ANSWER_MAX: Duration = Duration::from_mins(1);
/// Largest response body; a hundred times the size of a charge.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// A client with a tenant's API key.
pub(super) struct Client {
    pool: Pool<HttpsConnector<HttpConnector>, Full<Bytes>>,
    scheme: Scheme,
    authority: Authority,
    authorization: HeaderValue,
}

/// The parts of a response that an import needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The code of a problem response.
    pub(super) error: Option<String>,
    /// The id of the created object, or of the charge named by a problem.
    pub(super) resource: Option<String>,
    pub(super) replayed: bool,
    pub(super) retry_after: Option<Duration>,
}

impl Client {
    pub(super) fn new(url: &str, api_key: &str, connections: usize) -> Result<Client, Exit> {
        let (scheme, authority) = parse(url)?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {api_key}"))
            .map_err(|_| Exit::refused("--api-key has characters that no key has; copy it again"))?;
        authorization.set_sensitive(true);
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_MAX));
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(Arc::new(rustls::crypto::ring::default_provider()))
            .map_err(|error| Exit::failed(format!("TLS cannot be set up: {error}")))?
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(connections)
            .build(connector);
        Ok(Client { pool, scheme, authority, authorization })
    }

    /// Posts `body` to `path` under `key`. The error explains the missing response.
    pub(super) async fn post(&self, path: &str, key: &str, body: Bytes) -> Result<Answer, String> {
        let request = self.request(path, key, body).map_err(|error| error.to_string())?;
        match timeout(ANSWER_MAX, self.exchange(request)).await {
            Ok(answered) => answered,
            Err(_) => Err(format!("no answer within {} seconds", ANSWER_MAX.as_secs())),
        }
    }

    fn request(&self, path: &str, key: &str, body: Bytes) -> Result<Request<Full<Bytes>>, http::Error> {
        let uri = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
        Request::builder()
            .method(Method::POST)
            .uri(uri.path_and_query(path).build()?)
            .header(AUTHORIZATION, self.authorization.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("idempotency-key", key)
            .body(Full::new(body))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer, String> {
        let response = self.pool.request(request).await.map_err(|error| innermost(&error))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| format!("the answer broke off: {error}"))?.to_bytes();
        Ok(read(head.status.as_u16(), &head.headers, &body))
    }
}

fn read(status: u16, headers: &HeaderMap, body: &[u8]) -> Answer {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let word = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    Answer {
        status,
        error: word("error"),
        resource: word("id").or_else(|| word("charge")),
        replayed: header("idempotent-replayed") == Some("true"),
        retry_after: header(RETRY_AFTER.as_str()).and_then(|text| text.parse().ok()).map(Duration::from_secs),
    }
}

/// The innermost cause; the outer errors only say that a request failed.
fn innermost(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

fn parse(url: &str) -> Result<(Scheme, Authority), Exit> {
    let refuse = |why: &str| Exit::refused(format!("--url: {why}; write it like https://pay.example.com"));
    let parts = url.parse::<Uri>().map_err(|_| refuse("it is no URL"))?.into_parts();
    let scheme = parts.scheme.filter(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme));
    let scheme = scheme.ok_or_else(|| refuse("it must begin with http:// or https://"))?;
    let authority = parts.authority.ok_or_else(|| refuse("it names no server"))?;
    if authority.as_str().contains('@') {
        return Err(refuse("give the key with --api-key, not inside the URL"));
    }
    if parts.path_and_query.is_some_and(|path| path != "/") {
        return Err(refuse("give the server's address only, without a path"));
    }
    Ok((scheme, authority))
}

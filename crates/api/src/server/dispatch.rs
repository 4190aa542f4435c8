//! The layer around every route. The layer issues the request id, refuses malformed requests,
//! bounds the time, turns problems and panics into answers, and counts and logs each answer once.
//!
//! The log holds the id, the route's template, the status, the time and the tenant's name: nothing
//! a client sent.

use crate::answer::{self, Answer, REQUEST_ID, store_unavailable};
use crate::app::App;
use crate::request::Exchange;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use bytes::Bytes;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_wire::problem::{Code, Problem};
use http::header::{CONNECTION, HOST, HeaderValue};
use http::uri::Authority;
use http::{Method, Response, Version};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

/// Most headers of one request.
const HEADERS_MAX: usize = 64;
/// How much longer the whole request may take than its handler. A write then always answers by its
/// own deadline, which says that the work goes on.
const GRACE: Duration = Duration::from_secs(1);

/// Answers a request that the HTTP library could parse.
pub(crate) async fn dispatch(State(app): State<Arc<App>>, request: Request, next: Next) -> Answer {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let exchange = Arc::new(Exchange::new(app.service.request_id(), route));
    let mut answer = handle(&app, &exchange, request, next).await;
    if let Some(problem) = answer.extensions_mut().remove::<Problem>() {
        answer = write_problem(&exchange, &problem);
    }
    answer.headers_mut().insert(REQUEST_ID, answer::request_id(exchange.id));
    record(&app, &exchange, answer.status().as_u16());
    answer
}

/// Answers a request that the HTTP library could not parse.
pub(super) fn refuse_unparsed(app: &App, code: Code) -> (Ulid, Response<Bytes>) {
    let exchange = Exchange::new(app.service.request_id(), None);
    record(app, &exchange, code.status());
    (exchange.id, answer::problem(&Problem::new(code), exchange.id))
}

async fn handle(app: &App, exchange: &Arc<Exchange>, mut request: Request, next: Next) -> Answer {
    if request.headers().len() > HEADERS_MAX {
        return write_problem(exchange, &Problem::new(Code::HeadersTooLarge));
    }
    if !has_one_target(&request) {
        let problem = Problem::new(Code::MalformedRequest)
            .detail("Send a path that begins with a slash, and one Host header with the name and port the request is for.");
        let mut answer = write_problem(exchange, &problem);
        // The client may disagree about where its next request begins.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return answer;
    }
    request.extensions_mut().insert(Arc::clone(exchange));
    match catch_panic(timeout(app.settings.request_timeout.saturating_add(GRACE), next.run(request))).await {
        Ok(Ok(answer)) => answer,
        // Writes and bodies have earlier deadlines; only a read of the store takes so long.
        Ok(Err(_)) => write_problem(exchange, &store_unavailable()),
        Err(Panicked) => {
            // The panic message is not logged, because a client's data may be part of the message.
            tracing::error!(request = %RequestId(exchange.id), route = exchange.route(), "a handler panicked");
            write_problem(exchange, &Problem::new(Code::InternalError))
        }
    }
}

fn write_problem(exchange: &Exchange, problem: &Problem) -> Answer {
    answer::problem(problem, exchange.id).map(Body::from)
}

/// Counts and logs an answer.
fn record(app: &App, exchange: &Exchange, status: u16) {
    let took = exchange.started.elapsed();
    app.metrics.count_request(exchange.route(), status, took);
    if app.settings.request_log.wants(status) {
        tracing::info!(
            target: "counterfoil::request",
            request = %RequestId(exchange.id),
            route = exchange.route(),
            status,
            ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            tenant = exchange.principal.get().map(|principal| principal.name.as_str()),
        );
    }
}

/// Whether the request names one host, and a target that is a path or a URL (RFC 9112, section
/// 3.2). Servers and proxies could disagree about the recipient of any other request.
fn has_one_target(request: &Request) -> bool {
    let path = request.uri().path();
    if !path.starts_with('/') && path != "*" && request.method() != Method::CONNECT {
        return false;
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => request.version() < Version::HTTP_11,
        (Some(host), None) => {
            let host = host.as_bytes();
            let is_authority = || !host.contains(&b'@') && Authority::try_from(host).is_ok();
            host.is_empty() || is_plain(host) || is_authority()
        }
        (Some(_), Some(_)) => false,
    }
}

/// Whether `host` is a name with or without a port. Recognizes the usual header without copying it.
fn is_plain(host: &[u8]) -> bool {
    let is_name =
        |name: &[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    let is_port = |port: &[u8]| matches!(port.len(), 1..=5) && port.iter().all(u8::is_ascii_digit);
    let mut parts = host.split(|byte| *byte == b':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(name), port, None) => !name.is_empty() && is_name(name) && port.is_none_or(is_port),
        _ => false,
    }
}

/// Displays a request id in the public form.
struct RequestId(Ulid);

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "req_{}", self.0)
    }
}

struct Panicked;

/// Runs `work`. A panic ends the request, not the connection's task.
async fn catch_panic<F: Future>(work: F) -> Result<F::Output, Panicked> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        // Unwind safety: after a panic the future is never polled again, so its broken state stays
        // unseen.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}

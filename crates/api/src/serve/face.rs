//! What stands before every route: the request's id, the straight way for charges and transfers, the router for the rest, and
//! whatever happens an answer with its `Request-Id`, counted and logged once.
//!
//! Logged are the id, the route's template, the status, the time and the tenant's name: nothing a client sent.

use super::content::Content;
use crate::answer::{self, Answer, REQUEST_ID, store_unavailable};
use crate::app::App;
use crate::charges;
use crate::exchange::Exchange;
use crate::route::Route;
use crate::transfers;
use axum::Router;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_wire::problem::{Code, Problem};
use http::header::{CONNECTION, HOST, HeaderValue};
use http::uri::Authority;
use http::{Method, Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tower::ServiceExt as _;

/// Headers of one request.
const HEADERS_MAX: usize = 64;

pub(super) struct Face {
    app: Arc<App>,
    router: Router,
}

impl Face {
    pub(super) const fn new(app: Arc<App>, router: Router) -> Face {
        Face { app, router }
    }

    /// How long a client may take nothing of an answer.
    pub(super) fn patience(&self) -> Duration {
        self.app.settings.request_timeout
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Content> {
        let (route, _) = Route::of(request.uri().path());
        let mut exchange = Exchange::new(self.app.service.request_id());
        let worked = guarded(self.dispatch(route, request, &mut exchange)).await;
        let mut response = worked.unwrap_or_else(|Panicked| {
            // The panic's own words may hold a client's, so they stay out.
            tracing::error!(request = %Id(exchange.id), route = route.template(), "a handler panicked");
            whole(answer::problem(&Problem::new(Code::InternalError), exchange.id))
        });
        response.headers_mut().insert(REQUEST_ID, answer::request_id(exchange.id));
        self.note(route, response.status().as_u16(), &exchange);
        response
    }

    /// The answer to a request that never became one; only its problem is known.
    pub(super) fn refuse(&self, code: Code) -> (Ulid, Answer) {
        let exchange = Exchange::new(self.app.service.request_id());
        self.note(Route::Unmatched, code.status(), &exchange);
        (exchange.id, answer::problem(&Problem::new(code), exchange.id))
    }

    async fn dispatch(
        &self,
        route: Route,
        request: Request<Incoming>,
        exchange: &mut Exchange,
    ) -> Response<Content> {
        if request.headers().len() > HEADERS_MAX {
            let problem = Problem::new(Code::HeadersTooLarge);
            return whole(answer::problem(&problem, exchange.id));
        }
        if !has_one_target(&request) {
            let problem = Problem::new(Code::MalformedRequest)
                .detail("Send a path that begins with a slash, and one Host header with the name and port the request is for.");
            let mut answer = answer::problem(&problem, exchange.id);
            // Whoever sent it may be of another opinion about what follows.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            return whole(answer);
        }
        let straight = matches!(route, Route::Charges | Route::Transfers) && request.method() == Method::POST;
        if !straight {
            return self.routed(request, exchange).await;
        }
        let (head, body) = request.into_parts();
        let worked = if route == Route::Charges {
            charges::create::run(&self.app, &head, body, exchange).await
        } else {
            transfers::create::run(&self.app, &head, body, exchange).await
        };
        whole(exchange.answer(worked))
    }

    async fn routed(&self, mut request: Request<Incoming>, exchange: &mut Exchange) -> Response<Content> {
        request.extensions_mut().insert(exchange.clone());
        let routed = self.router.clone().oneshot(request);
        match timeout(self.app.settings.request_timeout, routed).await {
            Ok(Ok(mut response)) => {
                if let Some(back) = response.extensions_mut().remove::<Exchange>() {
                    *exchange = back;
                }
                response.map(Content::Routed)
            }
            Ok(Err(never)) => match never {},
            // Only the store can keep a route waiting.
            Err(_) => whole(answer::problem(&store_unavailable(), exchange.id)),
        }
    }

    fn note(&self, route: Route, status: u16, exchange: &Exchange) {
        let took = exchange.started.elapsed();
        self.app.metrics.answered(route, status, took);
        if self.app.settings.request_log.wants(status) {
            tracing::info!(
                target: "counterfoil::request",
                request = %Id(exchange.id),
                route = route.template(),
                status,
                ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                tenant = exchange.principal.as_ref().map(|principal| principal.name.as_str()),
            );
        }
    }
}

/// RFC 9112, section 3.2: a request without a host, with two, or with one that is none is refused, lest two readers of
/// it disagree about whom it is for; so is a target that is neither a path nor a URL.
fn has_one_target(request: &Request<Incoming>) -> bool {
    let path = request.uri().path();
    if !path.starts_with('/') && path != "*" && request.method() != Method::CONNECT {
        return false;
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => request.version() < Version::HTTP_11,
        (Some(host), None) => {
            let bare = |host: &[u8]| !host.contains(&b'@') && Authority::try_from(host).is_ok();
            host.is_empty() || is_plain(host.as_bytes()) || bare(host.as_bytes())
        }
        (Some(_), Some(_)) => false,
    }
}

/// A name with or without a port: what nearly every request says, known without a copy.
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

/// A request's id as clients see it.
struct Id(Ulid);

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "req_{}", self.0)
    }
}

struct Panicked;

/// Runs `work`; a panic in it ends this request, not the connection's task.
async fn guarded<F: Future>(work: F) -> Result<F::Output, Panicked> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        // After a panic the work is never polled again, so no broken state of its own is seen.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => std::task::Poll::Ready(Err(Panicked)),
        }
    })
    .await
}

fn whole(answer: Answer) -> Response<Content> {
    answer.map(|bytes| Content::Whole(Full::new(bytes)))
}

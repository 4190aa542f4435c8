//! One request and its answer: the id they share, and whose request it was.

use crate::answer::{self, Answer};
use crate::app::App;
use axum::body::Body;
use axum::extract::Request;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::service::Principal;
use counterfoil_wire::problem::Problem;
use http::request::Parts;
use http::{Extensions, Response};
use std::sync::Arc;
use tokio::time::Instant;

/// The request's id, when it came, and its principal once it is known.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) id: Ulid,
    pub(crate) started: Instant,
    pub(crate) principal: Option<Arc<Principal>>,
}

impl Exchange {
    pub(crate) fn new(id: Ulid) -> Exchange {
        Exchange { id, started: Instant::now(), principal: None }
    }

    /// The exchange the face has begun, or a fresh one where the router is used without it.
    pub(crate) fn of(app: &App, extensions: &Extensions) -> Exchange {
        extensions.get::<Exchange>().cloned().unwrap_or_else(|| Exchange::new(app.service.request_id()))
    }

    /// The answer, whatever came of the work.
    pub(crate) fn answer(&self, worked: Result<Answer, Problem>) -> Answer {
        worked.unwrap_or_else(|problem| answer::problem(&problem, self.id))
    }

    /// The same for the router; it carries the exchange back to the face.
    pub(crate) fn finish(self, worked: Result<Answer, Problem>) -> Response<Body> {
        let mut response = self.answer(worked).map(Body::from);
        response.extensions_mut().insert(self);
        response
    }
}

/// The exchange of a route that writes.
pub(crate) async fn write(
    app: &App,
    request: Request,
    work: impl AsyncFnOnce(&App, &Parts, Body, &mut Exchange) -> Result<Answer, Problem>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut exchange = Exchange::of(app, &head.extensions);
    let worked = work(app, &head, body, &mut exchange).await;
    exchange.finish(worked)
}

/// The exchange of a route that reads.
pub(crate) async fn read(
    app: &App,
    request: Request,
    work: impl AsyncFnOnce(&App, &Parts, &mut Exchange) -> Result<Answer, Problem>,
) -> Response<Body> {
    let (head, _) = request.into_parts();
    let mut exchange = Exchange::of(app, &head.extensions);
    let worked = work(app, &head, &mut exchange).await;
    exchange.finish(worked)
}

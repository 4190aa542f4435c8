//! `/healthz`: the process answers. `/readyz`: it should be sent work.

use crate::answer;
use crate::app::App;
use crate::exchange::Exchange;
use axum::extract::{Request, State};
use counterfoil_wire::json;
use http::{Response, StatusCode};
use std::sync::Arc;

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", tag = "Operation", responses((status = 200, description = "It does.")))]
pub(crate) async fn healthz(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    Exchange::of(&app, request.extensions()).finish(Ok(answer::json(&br#"{"status":"ok"}"#[..])))
}

/// Whether new requests should be sent here.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "Operation",
    responses(
        (status = 200, description = "They should."),
        (status = 503, description = "They should not; `reason` says why."),
    )
)]
pub(crate) async fn readyz(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    let exchange = Exchange::of(&app, request.extensions());
    let answer = match app.service.ready().await {
        Ok(()) => answer::json(&br#"{"status":"ready"}"#[..]),
        Err(reason) => {
            let mut body = Vec::new();
            json::object(&mut body, |all| {
                all.string("status", "unavailable").string("reason", &reason);
            });
            answer::typed(StatusCode::SERVICE_UNAVAILABLE, "application/json", body.into())
        }
    };
    exchange.finish(Ok(answer))
}

//! `GET /v1/idempotency-keys/{key}`: where a key stands, and whether a new one is safe.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::describe::Problems;
use crate::exchange::{self, Exchange};
use crate::query;
use crate::route::Route;
use axum::extract::{Request, State};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::idempotency::key::IdempotencyKey;
use counterfoil_core::tenancy::Scope;
use counterfoil_wire::form::{self, Plus};
use counterfoil_wire::key;
use counterfoil_wire::problem::{Code, Problem};
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// The record of an idempotency key.
#[utoipa::path(
    get,
    path = "/v1/idempotency-keys/{key}",
    tag = "Idempotency keys",
    security(("api_key" = [])),
    params(("key" = String, Path, description = "The key, percent-encoded where a path needs it")),
    responses(
        (status = 200, description = "Where it stands.", body = key::Record),
        (status = 404, description = "`not_found`: never used, or free again", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        Problems,
    )
)]
pub(crate) async fn get(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    query::must_be_empty(head)?;
    let (_, segment) = Route::of(head.uri.path());
    let invalid = |why: &str| {
        Problem::new(Code::IdempotencyKeyInvalid)
            .detail(format!("The key in the path is not usable: {why}. Percent-encode the key you sent."))
    };
    let text = form::decode(segment.as_bytes(), Plus::Plus).map_err(|error| invalid(&error.message))?;
    let key = IdempotencyKey::from_text(text.as_bytes()).map_err(|error| invalid(error.sentence()))?;
    let found = app.service.claim(principal.tenant, ClaimId::new(principal.tenant, &key)).await;
    let view = found.map_err(|_| store_unavailable())?.ok_or(Problem::new(Code::NotFound))?;
    key::write(&view, app.service.references(), app.service.now())
        .map(answer::json)
        .ok_or(Problem::new(Code::NotFound))
}

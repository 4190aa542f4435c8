//! `GET /v1/accounts/{id}`.

use crate::answer::{self, Answer};
use crate::app::App;
use crate::auth;
use crate::describe::AbsentProblems;
use crate::exchange::{self, Exchange};
use crate::path;
use crate::query;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::tenancy::Scope;
use counterfoil_wire::account;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// One account.
#[utoipa::path(
    get,
    path = "/v1/accounts/{id}",
    tag = "Accounts",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ac_…`, or the account's code, percent-encoded where a path needs it")),
    responses(
        (status = 200, description = "The account.", body = account::schema::Account),
        AbsentProblems,
    )
)]
pub(crate) async fn get(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    query::must_be_empty(head)?;
    let found = path::account(app, head, principal.tenant).await?;
    let mut body = Vec::with_capacity(256);
    account::write(&mut body, &found, app.service.references());
    Ok(answer::json(body))
}

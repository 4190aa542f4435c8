//! `GET /v1/accounts/{id}/balance`.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::describe::AbsentProblems;
use crate::exchange::{self, Exchange};
use crate::path;
use crate::query;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::tenancy::Scope;
use counterfoil_wire::balance as form;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// The balance of an account, now or as it was.
#[utoipa::path(
    get,
    path = "/v1/accounts/{id}/balance",
    tag = "Accounts",
    security(("api_key" = [])),
    params(
        ("id" = String, Path, description = "`ac_…`, or the account's code, percent-encoded where a path needs it"),
        ("at" = Option<String>, Query, description = "Up to where: a position of an earlier answer, or an RFC 3339 time. Now if absent"),
    ),
    responses((status = 200, description = "The balance.", body = form::Balance), AbsentProblems)
)]
pub(crate) async fn balance(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    let upto = query::upto(head.uri.query())?;
    let account = path::account(app, head, principal.tenant).await?;
    let balance = app.service.balance(Arc::clone(&account), upto).await.map_err(|_| store_unavailable())?;
    Ok(answer::json(form::write(&account, &balance, app.service.references())))
}

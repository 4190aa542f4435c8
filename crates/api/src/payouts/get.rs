//! `GET /v1/payouts/{id}`.

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
use counterfoil_core::types::id::PayoutId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::payout;
use counterfoil_wire::problem::{Code, Problem};
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// One payout.
#[utoipa::path(
    get,
    path = "/v1/payouts/{id}",
    tag = "Payouts",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`po_…`")),
    responses(
        (status = 200, description = "The payout as it stands.", body = payout::schema::Payout),
        AbsentProblems,
    )
)]
pub(crate) async fn get(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    query::must_be_empty(head)?;
    let id = PayoutId::from_i64(path::number(app, head, ReferenceKind::Payout)?);
    let found = app.service.payout(principal.tenant, id).await.map_err(|_| store_unavailable())?;
    let found = found.ok_or(Problem::new(Code::NotFound))?;
    let mut body = Vec::with_capacity(384);
    payout::write(&mut body, &found, app.service.references());
    Ok(answer::json(body))
}

//! `GET /v1/charges/{id}`.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::describe::AbsentProblems;
use crate::exchange::{self, Exchange};
use crate::path;
use crate::query;
use axum::extract::{Request, State};
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::charge;
use counterfoil_wire::problem::{Code, Problem};
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// One charge.
#[utoipa::path(
    get,
    path = "/v1/charges/{id}",
    tag = "Charges",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ch_…`")),
    responses(
        (status = 200, description = "The charge as it stands.", body = charge::schema::Charge),
        AbsentProblems,
    )
)]
pub(crate) async fn get(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    query::must_be_empty(head)?;
    let id = ChargeId::from_i64(path::number(app, head, ReferenceKind::Charge)?);
    let found = app.service.charge(principal.tenant, id).await.map_err(|_| store_unavailable())?;
    let found = found.ok_or(Problem::new(Code::NotFound))?;
    let mut body = Vec::with_capacity(512);
    charge::write::write(&mut body, &found, app.service.references());
    Ok(answer::json(body))
}

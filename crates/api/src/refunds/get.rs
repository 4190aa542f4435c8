//! `GET /v1/refunds/{id}`.

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
use counterfoil_core::types::id::OperationId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::refund;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// One refund.
#[utoipa::path(
    get,
    path = "/v1/refunds/{id}",
    tag = "Refunds",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`re_…`")),
    responses(
        (status = 200, description = "The refund as it stands.", body = refund::schema::Refund),
        AbsentProblems,
    )
)]
pub(crate) async fn get(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    query::must_be_empty(head)?;
    let id = OperationId::from_i64(path::number(app, head, ReferenceKind::Refund)?);
    let found = app.service.refund(principal.tenant, id).await.map_err(|_| store_unavailable())?;
    let (refund, charge) = found.ok_or(Problem::new(Code::NotFound))?;
    let mut body = Vec::with_capacity(384);
    refund::write(&mut body, &refund, &charge, app.service.references());
    Ok(answer::json(body))
}

//! `GET /v1/dead-letters/{id}`.

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
use counterfoil_core::types::id::SubjectId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::dead_letter;
use counterfoil_wire::problem::{Code, Problem};
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// One dead letter, with its evidence. One that was resolved is not found.
#[utoipa::path(
    get,
    path = "/v1/dead-letters/{id}",
    tag = "Dead letters",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`dl_…`")),
    responses(
        (status = 200, description = "The dead letter as it stands.", body = dead_letter::schema::DeadLetter),
        AbsentProblems,
    )
)]
pub(crate) async fn get(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Admin, exchange).await?;
    query::must_be_empty(head)?;
    let id = SubjectId::from_i64(path::number(app, head, ReferenceKind::DeadLetter)?);
    let found = app.service.dead_letter(principal.tenant, id).await.map_err(|_| store_unavailable())?;
    let found = found.ok_or(Problem::new(Code::NotFound))?;
    let mut body = Vec::with_capacity(1_024);
    dead_letter::write(&mut body, &found, app.service.references());
    Ok(answer::json(body))
}

//! `GET /v1/transfers/{id}`.

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
use counterfoil_core::types::id::TransactionId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_engine::service::TransferView;
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::transfer;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// One transfer.
#[utoipa::path(
    get,
    path = "/v1/transfers/{id}",
    tag = "Transfers",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`tr_…`")),
    responses(
        (status = 200, description = "The transfer as it stands.", body = transfer::schema::Transfer),
        AbsentProblems,
    )
)]
pub(crate) async fn get(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    query::must_be_empty(head)?;
    let id = TransactionId::from_i64(path::number(app, head, ReferenceKind::Transfer)?);
    let found = app.service.transfer(principal.tenant, id).await.map_err(|_| store_unavailable())?;
    let references = app.service.references();
    let mut body = Vec::with_capacity(512);
    match found.ok_or(Problem::new(Code::NotFound))? {
        TransferView::Done(posted) => transfer::write_done(&mut body, &posted, references),
        TransferView::Held(hold) => transfer::write_held(&mut body, &hold, app.service.now(), references),
    }
    Ok(answer::json(body))
}

//! `GET /v1/transactions/{id}`.

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
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::transaction;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// One transaction.
#[utoipa::path(
    get,
    path = "/v1/transactions/{id}",
    tag = "Transactions",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`tx_…`")),
    responses(
        (status = 200, description = "The transaction, and what undid it.", body = transaction::schema::Transaction),
        AbsentProblems,
    )
)]
pub(crate) async fn get(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    query::must_be_empty(head)?;
    let id = TransactionId::from_i64(path::number(app, head, ReferenceKind::Transaction)?);
    let found = app.service.transaction(principal.tenant, id).await.map_err(|_| store_unavailable())?;
    let (found, reversal) = found.ok_or(Problem::new(Code::NotFound))?;
    let mut body = Vec::with_capacity(512);
    let reversed_by = reversal.map(|reversal| reversal.by);
    transaction::write(&mut body, &found, reversed_by, app.service.references());
    Ok(answer::json(body))
}

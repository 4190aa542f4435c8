//! `POST /v1/transactions/{id}/reverse`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, LedgerProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::path;
use crate::route::Route;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::payments::ledger::LedgerCommand;
use counterfoil_core::types::id::TransactionId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::problem::Problem;
use counterfoil_wire::transaction;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::optional(Route::Reverse, transaction::REVERSE_LAYOUT);

/// Undoes a transaction, at most once, by a transaction with its sides swapped.
#[utoipa::path(
    post,
    path = "/v1/transactions/{id}/reverse",
    tag = "Transactions",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`tx_…`"), KeyHeader),
    responses(
        (status = 201, description = "The transaction that undoes it.", body = transaction::schema::Transaction),
        LedgerProblems,
    )
)]
pub(crate) async fn reverse(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::write(&app, request, run).await
}

async fn run(app: &App, head: &Parts, body: Body, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let read = |body: &_, _: &_| transaction::read_reverse(body);
    let (request, ()) = INTAKE.take(app, head, body, exchange, read).await?;
    let transaction = TransactionId::from_i64(path::number(app, head, ReferenceKind::Transaction)?);
    conclude(app, head, exchange, app.service.keep(request, LedgerCommand::Reverse { transaction })).await
}

//! `POST /v1/transactions`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, LedgerProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::route::Route;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::payments::ledger::LedgerCommand;
use counterfoil_wire::problem::Problem;
use counterfoil_wire::transaction;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::new(Route::Transactions, transaction::LAYOUT);

/// Posts a transaction: debits and credits that add up to zero.
#[utoipa::path(
    post,
    path = "/v1/transactions",
    tag = "Transactions",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (transaction::schema::CreateTransaction = "application/json"),
            (transaction::schema::CreateTransaction = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "The transaction is posted.", body = transaction::schema::Transaction),
        LedgerProblems,
    )
)]
pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::write(&app, request, run).await
}

async fn run(app: &App, head: &Parts, body: Body, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let (request, order) = INTAKE.take(app, head, body, exchange, transaction::read).await?;
    conclude(app, head, exchange, app.service.keep(request, LedgerCommand::Post(order))).await
}

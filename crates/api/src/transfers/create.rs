//! `POST /v1/transfers`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, LedgerProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::route::Route;
use axum::extract::{Request, State};
use bytes::Bytes;
use counterfoil_core::payments::ledger::LedgerCommand;
use counterfoil_wire::problem::Problem;
use counterfoil_wire::transfer;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::new(Route::Transfers, transfer::LAYOUT);

/// Moves money from one account to another, or reserves it.
#[utoipa::path(
    post,
    path = "/v1/transfers",
    tag = "Transfers",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (transfer::schema::CreateTransfer = "application/json"),
            (transfer::schema::CreateTransfer = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "The money was moved, or is held.", body = transfer::schema::Transfer),
        LedgerProblems,
    )
)]
pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    exchange::write(&app, request, run).await
}

/// The same without the router: the face calls it directly, since many requests are these.
pub(crate) async fn run<B>(
    app: &App,
    head: &Parts,
    body: B,
    exchange: &mut Exchange,
) -> Result<Answer, Problem>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let (request, order) = INTAKE.take(app, head, body, exchange, transfer::read).await?;
    conclude(app, head, exchange, app.service.keep(request, LedgerCommand::Transfer(order))).await
}

//! `POST /v1/conversions`.

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
use counterfoil_wire::{conversion, transaction};
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::new(Route::Conversions, conversion::LAYOUT);

/// Changes one asset for another at an exact rate; what rounding leaves is booked, not lost.
#[utoipa::path(
    post,
    path = "/v1/conversions",
    tag = "Transactions",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (conversion::CreateConversion = "application/json"),
            (conversion::CreateConversion = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "A transaction of the kind `conversion`.", body = transaction::schema::Transaction),
        LedgerProblems,
    )
)]
pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::write(&app, request, run).await
}

async fn run(app: &App, head: &Parts, body: Body, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let (request, order) = INTAKE.take(app, head, body, exchange, conversion::read).await?;
    conclude(app, head, exchange, app.service.keep(request, LedgerCommand::Convert(order))).await
}

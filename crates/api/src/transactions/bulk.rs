//! `POST /v1/transactions/bulk`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, LedgerProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::route::Route;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_wire::bulk as form;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::new(Route::Bulk, form::LAYOUT);

/// Posts up to 1000 transactions under one key, each on its own: one that is refused does not hold up the others.
#[utoipa::path(
    post,
    path = "/v1/transactions/bulk",
    tag = "Transactions",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (form::schema::CreateBulk = "application/json"),
            (form::schema::CreateBulk = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 200, description = "What came of each.", body = form::schema::Bulk),
        LedgerProblems,
    )
)]
pub(crate) async fn bulk(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::write(&app, request, run).await
}

async fn run(app: &App, head: &Parts, body: Body, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let (request, items) = INTAKE.take(app, head, body, exchange, form::read).await?;
    conclude(app, head, exchange, app.service.bulk(request, items)).await
}

//! `POST /v1/refunds`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, OperationProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::route::Route;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::operation::launch::Operate;
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::refund;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::new(Route::Refunds, refund::LAYOUT);

/// Gives back what a charge took, all that is left of it or a part, at most once per key.
#[utoipa::path(
    post,
    path = "/v1/refunds",
    tag = "Refunds",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (refund::schema::CreateRefund = "application/json"),
            (refund::schema::CreateRefund = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "The money was given back.", body = refund::schema::Refund),
        OperationProblems,
    )
)]
pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::write(&app, request, run).await
}

async fn run(app: &App, head: &Parts, body: Body, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let (request, wanted) = INTAKE.take(app, head, body, exchange, refund::read).await?;
    let charge = wanted.charge.ok_or(Problem::new(Code::NotFound))?;
    let command = Operate { request, charge, kind: OperationKind::Refund, amount: wanted.amount };
    conclude(app, head, exchange, app.service.operate(command)).await
}

//! `POST /v1/charges/{id}/capture` and `POST /v1/charges/{id}/void`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, OperationProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::path;
use crate::route::Route;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::operation::launch::Operate;
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::charge;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const CAPTURE: Intake = Intake::optional(Route::Capture, charge::CAPTURE_LAYOUT);
const VOID: Intake = Intake::optional(Route::Void, charge::VOID_LAYOUT);

/// Takes what a charge holds, all of it or a part; the rest is free again.
#[utoipa::path(
    post,
    path = "/v1/charges/{id}/capture",
    tag = "Charges",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ch_…`"), KeyHeader),
    request_body(
        content(
            (charge::schema::CaptureCharge = "application/json"),
            (charge::schema::CaptureCharge = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 200, description = "The money was taken.", body = charge::schema::Charge),
        OperationProblems,
    )
)]
pub(crate) async fn capture(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let work = async |app: &App, head: &Parts, body: Body, exchange: &mut Exchange| {
        let read = |body: &_, _: &_| charge::read_capture(body);
        let (request, amount) = CAPTURE.take(app, head, body, exchange, read).await?;
        run(app, head, exchange, request, OperationKind::Capture, amount).await
    };
    exchange::write(&app, request, work).await
}

/// Gives up what a charge holds; the money is free again.
#[utoipa::path(
    post,
    path = "/v1/charges/{id}/void",
    tag = "Charges",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ch_…`"), KeyHeader),
    responses(
        (status = 200, description = "The money is free again.", body = charge::schema::Charge),
        OperationProblems,
    )
)]
pub(crate) async fn void(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let work = async |app: &App, head: &Parts, body: Body, exchange: &mut Exchange| {
        let read = |body: &_, _: &_| charge::read_void(body);
        let (request, ()) = VOID.take(app, head, body, exchange, read).await?;
        run(app, head, exchange, request, OperationKind::Void, None).await
    };
    exchange::write(&app, request, work).await
}

async fn run(
    app: &App,
    head: &Parts,
    exchange: &Exchange,
    request: counterfoil_core::idempotency::request::Request,
    kind: OperationKind,
    amount: Option<i64>,
) -> Result<Answer, Problem> {
    let charge = ChargeId::from_i64(path::number(app, head, ReferenceKind::Charge)?);
    conclude(app, head, exchange, app.service.operate(Operate { request, charge, kind, amount })).await
}

//! `POST /v1/payouts`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, PayoutProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::route::Route;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::payments::payout::create::CreatePayout;
use counterfoil_wire::payout;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::new(Route::Payouts, payout::LAYOUT);

/// Pays out what an account has, to a bank account or to an account at a peer, at most once per key.
#[utoipa::path(
    post,
    path = "/v1/payouts",
    tag = "Payouts",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (payout::schema::CreatePayout = "application/json"),
            (payout::schema::CreatePayout = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "The provider has taken it on, or it is in the peer's ledger.", body = payout::schema::Payout),
        PayoutProblems,
    )
)]
pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::write(&app, request, run).await
}

async fn run(app: &App, head: &Parts, body: Body, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let (request, wanted) = INTAKE.take(app, head, body, exchange, payout::read).await?;
    conclude(app, head, exchange, app.service.pay_out(CreatePayout { request, wanted })).await
}

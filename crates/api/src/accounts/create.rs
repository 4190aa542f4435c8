//! `POST /v1/accounts`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, LedgerProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::route::Route;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::payments::ledger::LedgerCommand;
use counterfoil_wire::account;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::new(Route::Accounts, account::LAYOUT);

/// Opens an account.
#[utoipa::path(
    post,
    path = "/v1/accounts",
    tag = "Accounts",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (account::schema::CreateAccount = "application/json"),
            (account::schema::CreateAccount = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "The account is open.", body = account::schema::Account),
        LedgerProblems,
    )
)]
pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::write(&app, request, run).await
}

async fn run(app: &App, head: &Parts, body: Body, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let (request, open) = INTAKE.take(app, head, body, exchange, |body, _| account::read(body)).await?;
    conclude(app, head, exchange, app.service.keep(request, LedgerCommand::Open(open))).await
}

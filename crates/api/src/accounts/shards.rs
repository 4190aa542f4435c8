//! `POST /v1/accounts/{id}/shards`.

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
use counterfoil_wire::account;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::new(Route::AccountShards, account::SHARDS_LAYOUT);

/// Spreads an account's guarded balance over another number of rows, so that more writes fit at once.
#[utoipa::path(
    post,
    path = "/v1/accounts/{id}/shards",
    tag = "Accounts",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ac_…`, or the account's code, percent-encoded where a path needs it"), KeyHeader),
    request_body(
        content(
            (account::schema::SpreadAccount = "application/json"),
            (account::schema::SpreadAccount = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 200, description = "The account with its new spread.", body = account::schema::Account),
        LedgerProblems,
    )
)]
pub(crate) async fn spread(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::write(&app, request, run).await
}

async fn run(app: &App, head: &Parts, body: Body, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let read = |body: &_, _: &_| account::read_shards(body);
    let (request, shards) = INTAKE.take(app, head, body, exchange, read).await?;
    let account = path::named(app, head)?;
    conclude(app, head, exchange, app.service.keep(request, LedgerCommand::Reshard { account, shards })).await
}

//! `POST /v1/transfers/{id}/post` and `POST /v1/transfers/{id}/void`.

use crate::answer::Answer;
use crate::app::App;
use crate::describe::{KeyHeader, LedgerProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::path;
use crate::route::Route;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::payments::ledger::{End, LedgerCommand};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::HoldId;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::problem::Problem;
use counterfoil_wire::transfer;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const POST: Intake = Intake::optional(Route::TransferPost, transfer::POST_LAYOUT);
const VOID: Intake = Intake::optional(Route::TransferVoid, transfer::VOID_LAYOUT);

/// Moves the money of a held transfer, all of it or a part; the rest is free again.
#[utoipa::path(
    post,
    path = "/v1/transfers/{id}/post",
    tag = "Transfers",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`tr_…`"), KeyHeader),
    request_body(
        content(
            (transfer::schema::PostTransfer = "application/json"),
            (transfer::schema::PostTransfer = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 200, description = "The money was moved.", body = transfer::schema::Transfer),
        LedgerProblems,
    )
)]
pub(crate) async fn post(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let work = async |app: &App, head: &Parts, body: Body, exchange: &mut Exchange| {
        run(app, head, body, exchange, &POST, transfer::read_post).await
    };
    exchange::write(&app, request, work).await
}

/// Gives a held transfer up; the money is free again.
#[utoipa::path(
    post,
    path = "/v1/transfers/{id}/void",
    tag = "Transfers",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`tr_…`"), KeyHeader),
    responses(
        (status = 200, description = "The money is free again.", body = transfer::schema::Transfer),
        LedgerProblems,
    )
)]
pub(crate) async fn void(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let work = async |app: &App, head: &Parts, body: Body, exchange: &mut Exchange| {
        run(app, head, body, exchange, &VOID, transfer::read_void).await
    };
    exchange::write(&app, request, work).await
}

async fn run(
    app: &App,
    head: &Parts,
    body: Body,
    exchange: &mut Exchange,
    intake: &Intake,
    read: fn(&Json) -> Result<End, Vec<Flaw>>,
) -> Result<Answer, Problem> {
    let (request, how) = intake.take(app, head, body, exchange, |body, _| read(body)).await?;
    let hold = HoldId::from_i64(path::number(app, head, ReferenceKind::Transfer)?);
    conclude(app, head, exchange, app.service.keep(request, LedgerCommand::End { hold, how })).await
}

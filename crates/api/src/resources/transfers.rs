//! Transfers: creation, posting and voiding of held transfers, reading, timelines.

use crate::answer::Answered;
use crate::openapi::shared::{AbsentProblems, KeyHeader, LedgerProblems, PageQuery};
use crate::request::Call;
use crate::request::intake::Intake;
use axum::body::Body;
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::payments::ledger::{End, LedgerCommand};
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::{HoldId, TransactionId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_engine::service::TransferView;
use counterfoil_wire::timeline::Timeline;
use counterfoil_wire::transfer;

/// Moves money between two accounts, or reserves it.
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
pub(crate) async fn create(call: Call, body: Body) -> Answered {
    let (request, order) = call.accept(body, &Intake::new(transfer::LAYOUT), transfer::read).await?;
    call.respond(call.app.service.execute(request, LedgerCommand::Transfer(order))).await
}

/// Posts a held transfer, fully or in part; the rest is released.
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
pub(crate) async fn post(call: Call, body: Body) -> Answered {
    let intake = Intake::optional(transfer::POST_LAYOUT);
    let (request, how) = call.accept(body, &intake, |body, _| transfer::read_post(body)).await?;
    end(&call, request, how).await
}

/// Voids a held transfer; the money is released.
#[utoipa::path(
    post,
    path = "/v1/transfers/{id}/void",
    tag = "Transfers",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`tr_…`"), KeyHeader),
    responses(
        (status = 200, description = "The money is released.", body = transfer::schema::Transfer),
        LedgerProblems,
    )
)]
pub(crate) async fn void(call: Call, body: Body) -> Answered {
    let intake = Intake::optional(transfer::VOID_LAYOUT);
    let (request, how) = call.accept(body, &intake, |body, _| transfer::read_void(body)).await?;
    end(&call, request, how).await
}

async fn end(call: &Call, request: Request, how: End) -> Answered {
    let hold = HoldId::from_i64(call.id(ReferenceKind::Transfer)?);
    call.respond(call.app.service.execute(request, LedgerCommand::End { hold, how })).await
}

/// A transfer.
#[utoipa::path(
    get,
    path = "/v1/transfers/{id}",
    tag = "Transfers",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`tr_…`")),
    responses(
        (status = 200, description = "The transfer in its current state.", body = transfer::schema::Transfer),
        AbsentProblems,
    )
)]
pub(crate) async fn get(call: Call) -> Answered {
    call.fetch_one(
        Scope::Read,
        ReferenceKind::Transfer,
        |service, tenant, id| service.transfer(tenant, TransactionId::from_i64(id)),
        |out, found, references| match found {
            TransferView::Done(posted) => transfer::write_done(out, posted, references),
            TransferView::Held(hold) => transfer::write_held(out, hold, call.app.service.now(), references),
        },
    )
    .await
}

/// The audited steps of a transfer, in order.
#[utoipa::path(
    get,
    path = "/v1/transfers/{id}/timeline",
    tag = "Transfers",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`tr_…`"), PageQuery),
    responses((status = 200, description = "One page.", body = Timeline), AbsentProblems)
)]
pub(crate) async fn timeline(call: Call) -> Answered {
    call.fetch_timeline(ReferenceKind::Transfer).await
}

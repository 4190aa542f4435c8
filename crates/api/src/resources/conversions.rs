//! Conversions between assets.

use crate::answer::Answered;
use crate::openapi::shared::{KeyHeader, LedgerProblems};
use crate::request::Call;
use crate::request::intake::Intake;
use axum::body::Body;
use counterfoil_core::payments::ledger::LedgerCommand;
use counterfoil_wire::{conversion, transaction};

/// Converts an amount into another asset at an exact rate. The remainder from rounding is booked as
/// well.
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
pub(crate) async fn create(call: Call, body: Body) -> Answered {
    let (request, order) = call.accept(body, &Intake::new(conversion::LAYOUT), conversion::read).await?;
    call.respond(call.app.service.execute(request, LedgerCommand::Convert(order))).await
}

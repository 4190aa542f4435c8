//! Charges: creation, capture, void, reading, timelines.

use crate::answer::Answered;
use crate::openapi::shared::{
    AbsentProblems, KeyHeader, OperationProblems, PageQuery, QueryProblems, WriteProblems,
};
use crate::request::Call;
use crate::request::fetch::Found;
use crate::request::intake::Intake;
use axum::body::Body;
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::operation::launch::Operate;
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::{ChargeId, TenantId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_engine::service::Service;
use counterfoil_wire::charge;
use counterfoil_wire::timeline::Timeline;

/// Creates a charge, at most once per key.
#[utoipa::path(
    post,
    path = "/v1/charges",
    tag = "Charges",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (charge::schema::CreateCharge = "application/json"),
            (charge::schema::CreateCharge = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "The charge succeeded or is held for capture.", body = charge::schema::Charge),
        WriteProblems,
    )
)]
pub(crate) async fn create(call: Call, body: Body) -> Answered {
    let (request, wanted) = call.accept(body, &Intake::new(charge::LAYOUT), charge::read).await?;
    call.respond(call.app.service.submit(CreateCharge { request, wanted })).await
}

/// Captures the held amount of a charge, or a part of it; the rest is released.
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
        (status = 200, description = "The amount was captured.", body = charge::schema::Charge),
        OperationProblems,
    )
)]
pub(crate) async fn capture(call: Call, body: Body) -> Answered {
    let intake = Intake::optional(charge::CAPTURE_LAYOUT);
    let (request, amount) = call.accept(body, &intake, |body, _| charge::read_capture(body)).await?;
    operate(&call, request, OperationKind::Capture, amount).await
}

/// Releases the held amount of a charge.
#[utoipa::path(
    post,
    path = "/v1/charges/{id}/void",
    tag = "Charges",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ch_…`"), KeyHeader),
    responses(
        (status = 200, description = "The amount is released.", body = charge::schema::Charge),
        OperationProblems,
    )
)]
pub(crate) async fn void(call: Call, body: Body) -> Answered {
    let intake = Intake::optional(charge::VOID_LAYOUT);
    let (request, ()) = call.accept(body, &intake, |body, _| charge::read_void(body)).await?;
    operate(&call, request, OperationKind::Void, None).await
}

async fn operate(call: &Call, request: Request, kind: OperationKind, amount: Option<i64>) -> Answered {
    let charge = ChargeId::from_i64(call.id(ReferenceKind::Charge)?);
    call.respond(call.app.service.operate(Operate { request, charge, kind, amount })).await
}

/// A charge.
#[utoipa::path(
    get,
    path = "/v1/charges/{id}",
    tag = "Charges",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ch_…`")),
    responses(
        (status = 200, description = "The charge in its current state.", body = charge::schema::Charge),
        AbsentProblems,
    )
)]
pub(crate) async fn get(call: Call) -> Answered {
    call.fetch_one(Scope::Read, ReferenceKind::Charge, find, charge::write::write).await
}

/// The tenant's charges, newest first.
#[utoipa::path(
    get,
    path = "/v1/charges",
    tag = "Charges",
    security(("api_key" = [])),
    params(PageQuery),
    responses((status = 200, description = "One page.", body = charge::schema::ChargeList), QueryProblems)
)]
pub(crate) async fn list(call: Call) -> Answered {
    call.fetch_page(
        ReferenceKind::Charge,
        find,
        |service, tenant, before, limit| service.charges(tenant, before.map(ChargeId::from_i64), limit),
        charge::write::write,
    )
    .await
}

/// The audited steps of a charge, in order.
#[utoipa::path(
    get,
    path = "/v1/charges/{id}/timeline",
    tag = "Charges",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ch_…`"), PageQuery),
    responses((status = 200, description = "One page.", body = Timeline), AbsentProblems)
)]
pub(crate) async fn timeline(call: Call) -> Answered {
    call.fetch_timeline(ReferenceKind::Charge).await
}

fn find(service: &dyn Service, tenant: TenantId, id: i64) -> Found<'_, Option<Charge>> {
    service.charge(tenant, ChargeId::from_i64(id))
}

//! Refunds: creation and reading.

use crate::answer::Answered;
use crate::openapi::shared::{AbsentProblems, KeyHeader, OperationProblems, PageQuery, QueryProblems};
use crate::request::Call;
use crate::request::fetch::Found;
use crate::request::intake::Intake;
use axum::body::Body;
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::operation::launch::Operate;
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::{OperationId, TenantId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_core::types::reference::References;
use counterfoil_engine::service::{RefundView, Service};
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::refund;

/// Refunds a charge, fully or in part, at most once per key.
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
        (status = 201, description = "The amount was refunded.", body = refund::schema::Refund),
        OperationProblems,
    )
)]
pub(crate) async fn create(call: Call, body: Body) -> Answered {
    let (request, wanted) = call.accept(body, &Intake::new(refund::LAYOUT), refund::read).await?;
    let charge = wanted.charge.ok_or(Problem::new(Code::NotFound))?;
    let command = Operate { request, charge, kind: OperationKind::Refund, amount: wanted.amount };
    call.respond(call.app.service.operate(command)).await
}

/// A refund.
#[utoipa::path(
    get,
    path = "/v1/refunds/{id}",
    tag = "Refunds",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`re_…`")),
    responses(
        (status = 200, description = "The refund in its current state.", body = refund::schema::Refund),
        AbsentProblems,
    )
)]
pub(crate) async fn get(call: Call) -> Answered {
    call.fetch_one(Scope::Read, ReferenceKind::Refund, find, write).await
}

/// The tenant's refunds, newest first.
#[utoipa::path(
    get,
    path = "/v1/refunds",
    tag = "Refunds",
    security(("api_key" = [])),
    params(PageQuery),
    responses((status = 200, description = "One page.", body = refund::schema::RefundList), QueryProblems)
)]
pub(crate) async fn list(call: Call) -> Answered {
    call.fetch_page(
        ReferenceKind::Refund,
        find,
        |service, tenant, before, limit| service.refunds(tenant, before.map(OperationId::from_i64), limit),
        write,
    )
    .await
}

fn find(service: &dyn Service, tenant: TenantId, id: i64) -> Found<'_, Option<RefundView>> {
    service.refund(tenant, OperationId::from_i64(id))
}

fn write(out: &mut Vec<u8>, (one, charge): &RefundView, references: &References) {
    refund::write(out, one, charge, references);
}

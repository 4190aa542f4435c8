//! Payouts: creation, reading, timelines.

use crate::answer::Answered;
use crate::openapi::shared::{AbsentProblems, KeyHeader, PageQuery, PayoutProblems, QueryProblems};
use crate::request::Call;
use crate::request::fetch::Found;
use crate::request::intake::Intake;
use axum::body::Body;
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::payments::payout::create::CreatePayout;
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::{PayoutId, TenantId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_engine::service::Service;
use counterfoil_wire::payout;
use counterfoil_wire::timeline::Timeline;

/// Pays out from an account, to a bank account or to an account at a peer, at most once per key.
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
        (status = 201, description = "The provider has accepted the payout, or the peer has booked it.", body = payout::schema::Payout),
        PayoutProblems,
    )
)]
pub(crate) async fn create(call: Call, body: Body) -> Answered {
    let (request, wanted) = call.accept(body, &Intake::new(payout::LAYOUT), payout::read).await?;
    call.respond(call.app.service.pay_out(CreatePayout { request, wanted })).await
}

/// A payout.
#[utoipa::path(
    get,
    path = "/v1/payouts/{id}",
    tag = "Payouts",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`po_…`")),
    responses(
        (status = 200, description = "The payout in its current state.", body = payout::schema::Payout),
        AbsentProblems,
    )
)]
pub(crate) async fn get(call: Call) -> Answered {
    call.fetch_one(Scope::Read, ReferenceKind::Payout, find, payout::write).await
}

/// The tenant's payouts, newest first.
#[utoipa::path(
    get,
    path = "/v1/payouts",
    tag = "Payouts",
    security(("api_key" = [])),
    params(PageQuery),
    responses((status = 200, description = "One page.", body = payout::schema::PayoutList), QueryProblems)
)]
pub(crate) async fn list(call: Call) -> Answered {
    call.fetch_page(
        ReferenceKind::Payout,
        find,
        |service, tenant, before, limit| service.payouts(tenant, before.map(PayoutId::from_i64), limit),
        payout::write,
    )
    .await
}

/// The audited steps of a payout, in order.
#[utoipa::path(
    get,
    path = "/v1/payouts/{id}/timeline",
    tag = "Payouts",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`po_…`"), PageQuery),
    responses((status = 200, description = "One page.", body = Timeline), AbsentProblems)
)]
pub(crate) async fn timeline(call: Call) -> Answered {
    call.fetch_timeline(ReferenceKind::Payout).await
}

fn find(service: &dyn Service, tenant: TenantId, id: i64) -> Found<'_, Option<Payout>> {
    service.payout(tenant, PayoutId::from_i64(id))
}

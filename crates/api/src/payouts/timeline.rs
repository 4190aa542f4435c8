//! `GET /v1/payouts/{id}/timeline`.

use crate::app::App;
use crate::describe::{AbsentProblems, PageQuery};
use crate::exchange::{self, Exchange};
use crate::timeline;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::timeline as entry;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// Every audited step of a payout, in order.
#[utoipa::path(
    get,
    path = "/v1/payouts/{id}/timeline",
    tag = "Payouts",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`po_…`"), PageQuery),
    responses((status = 200, description = "One page.", body = entry::List), AbsentProblems)
)]
pub(crate) async fn timeline(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let work = async |app: &App, head: &Parts, exchange: &mut Exchange| {
        timeline::page(app, head, exchange, ReferenceKind::Payout).await
    };
    exchange::read(&app, request, work).await
}

//! `GET /v1/payouts`.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::describe::{PageQuery, QueryProblems};
use crate::exchange::{self, Exchange};
use crate::query::Page;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::PayoutId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::payout;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// The tenant's payouts, newest first.
#[utoipa::path(
    get,
    path = "/v1/payouts",
    tag = "Payouts",
    security(("api_key" = [])),
    params(PageQuery),
    responses((status = 200, description = "One page.", body = payout::schema::PayoutList), QueryProblems)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    let page = Page::read(head.uri.query())?;
    let references = app.service.references();
    let before = match page.cursor(references, ReferenceKind::Payout)? {
        None => None,
        Some(number) => {
            // Another tenant's payout is no more a place to start from than an absent one.
            let own = app.service.payout(principal.tenant, PayoutId::from_i64(number)).await;
            Some(own.map_err(|_| store_unavailable())?.ok_or_else(Page::bad_cursor)?.id)
        }
    };
    let found = app.service.payouts(principal.tenant, before, page.limit + 1).await;
    let found = found.map_err(|_| store_unavailable())?;
    Ok(answer::list(&page, &found, |out, one| payout::write(out, one, references)))
}

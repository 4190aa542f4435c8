//! `GET /v1/charges/{id}/timeline`.

use super::get::charge_id;
use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::exchange::Exchange;
use crate::query::Page;
use axum::extract::{Request, State};
use counterfoil_core::tenancy::Scope;
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::{list as envelope, timeline as entry};
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// Every audited step of a charge, in order.
#[utoipa::path(
    get,
    path = "/v1/charges/{id}/timeline",
    tag = "Charges",
    security(("api_key" = [])),
    params(
        ("id" = String, Path, description = "`ch_…`"),
        ("limit" = Option<u8>, Query, description = "1 to 100; 20 if absent"),
        ("starting_after" = Option<String>, Query, description = "Id of the last entry of the page before"),
    ),
    responses(
        (status = 200, description = "One page.", body = entry::List),
        (status = 404, description = "`not_found`: absent, or another tenant's", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        (status = "default", description = "Any other error: `unauthorized`, `forbidden`, `rate_limited`, … as `error` says", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn timeline(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    let (head, _) = request.into_parts();
    let mut exchange = Exchange::of(&app, &head.extensions);
    let worked = run(&app, &head, &mut exchange).await;
    exchange.finish(worked)
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    let page = Page::read(head.uri.query())?;
    let after = match &page.starting_after {
        None => None,
        Some(text) => Some(entry::read_id(text).ok_or_else(Page::bad_cursor)?),
    };
    let id = charge_id(app, head)?;
    let found = app.service.timeline(principal.tenant, id, after, page.limit + 1).await;
    let found = found.map_err(|_| store_unavailable())?.ok_or(Problem::new(Code::NotFound))?;
    let has_more = found.len() > page.limit;
    let body = envelope::write(found.iter().take(page.limit), has_more, entry::write);
    Ok(answer::json(body))
}

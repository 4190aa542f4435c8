//! `GET /v1/charges`.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::exchange::Exchange;
use crate::query::Page;
use axum::extract::{Request, State};
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::reference::Kind;
use counterfoil_wire::problem::Problem;
use counterfoil_wire::{charge, list as envelope};
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// The tenant's charges, newest first.
#[utoipa::path(
    get,
    path = "/v1/charges",
    tag = "Charges",
    security(("api_key" = [])),
    params(
        ("limit" = Option<u8>, Query, description = "1 to 100; 20 if absent"),
        ("starting_after" = Option<String>, Query, description = "Id of the last charge of the page before"),
    ),
    responses(
        (status = 200, description = "One page.", body = charge::schema::ChargeList),
        (status = 400, description = "`invalid_request`", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        (status = "default", description = "Any other error: `unauthorized`, `forbidden`, `rate_limited`, … as `error` says", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    let (head, _) = request.into_parts();
    let mut exchange = Exchange::of(&app, &head.extensions);
    let worked = run(&app, &head, &mut exchange).await;
    exchange.finish(worked)
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    let page = Page::read(head.uri.query())?;
    let references = app.service.references();
    let before = match &page.starting_after {
        None => None,
        Some(text) => {
            let id =
                references.open(Kind::Charge, text).map(ChargeId::from_i64).ok_or_else(Page::bad_cursor)?;
            // Another tenant's charge is no more a place to start from than an absent one.
            let own = app.service.charge(principal.tenant, id).await.map_err(|_| store_unavailable())?;
            Some(own.map(|charge| charge.id).ok_or_else(Page::bad_cursor)?)
        }
    };
    // One more than asked for says whether there are more.
    let found = app.service.charges(principal.tenant, before, page.limit + 1).await;
    let found = found.map_err(|_| store_unavailable())?;
    let has_more = found.len() > page.limit;
    let body = envelope::write(found.iter().take(page.limit), has_more, |out, one| {
        charge::write::write(out, one, references);
    });
    Ok(answer::json(body))
}

//! `GET /v1/charges/{id}`.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::exchange::Exchange;
use crate::query;
use crate::route::Route;
use axum::extract::{Request, State};
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::reference::Kind;
use counterfoil_wire::charge;
use counterfoil_wire::problem::{Code, Problem};
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// One charge.
#[utoipa::path(
    get,
    path = "/v1/charges/{id}",
    tag = "Charges",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ch_…`")),
    responses(
        (status = 200, description = "The charge as it stands.", body = charge::schema::Charge),
        (status = 404, description = "`not_found`: absent, or another tenant's", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
        (status = "default", description = "Any other error: `unauthorized`, `forbidden`, `rate_limited`, … as `error` says", body = counterfoil_wire::problem::schema::Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get(State(app): State<Arc<App>>, request: Request) -> Response<axum::body::Body> {
    let (head, _) = request.into_parts();
    let mut exchange = Exchange::of(&app, &head.extensions);
    let worked = run(&app, &head, &mut exchange).await;
    exchange.finish(worked)
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    let errors = query::none(head.uri.query());
    if !errors.is_empty() {
        return Err(query::invalid(errors));
    }
    let id = charge_id(app, head)?;
    match app.service.charge(principal.tenant, id).await {
        Ok(Some(found)) => {
            let mut body = Vec::with_capacity(512);
            charge::write::write(&mut body, &found, app.service.references());
            Ok(answer::json(body))
        }
        Ok(None) => Err(Problem::new(Code::NotFound)),
        Err(_) => Err(store_unavailable()),
    }
}

/// The id in the path. A reference this instance never made is as absent as a charge that does not exist.
pub(super) fn charge_id(app: &App, head: &Parts) -> Result<ChargeId, Problem> {
    let (_, reference) = Route::of(head.uri.path());
    app.service
        .references()
        .open(Kind::Charge, reference)
        .map(ChargeId::from_i64)
        .ok_or(Problem::new(Code::NotFound))
}

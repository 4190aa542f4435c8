//! `POST /v1/assets` and `GET /v1/assets`.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::describe::{KeyHeader, LedgerProblems, PageQuery, QueryProblems};
use crate::exchange::{self, Exchange};
use crate::intake::{Intake, conclude};
use crate::query::Page;
use crate::route::Route;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::tenancy::Scope;
use counterfoil_wire::asset;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

const INTAKE: Intake = Intake::new(Route::Assets, asset::LAYOUT);

/// Defines an asset of the tenant's own.
#[utoipa::path(
    post,
    path = "/v1/assets",
    tag = "Assets",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (asset::CreateAsset = "application/json"),
            (asset::CreateAsset = "application/x-www-form-urlencoded"),
        )
    ),
    responses((status = 201, description = "The asset is defined.", body = asset::Asset), LedgerProblems)
)]
pub(crate) async fn create(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::write(&app, request, define).await
}

async fn define(app: &App, head: &Parts, body: Body, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let (request, act) = INTAKE.take(app, head, body, exchange, |body, _| asset::read(body)).await?;
    conclude(app, head, exchange, app.service.keep(request, act)).await
}

/// The assets the tenant has defined, by code. Currencies need no definition.
#[utoipa::path(
    get,
    path = "/v1/assets",
    tag = "Assets",
    security(("api_key" = [])),
    params(PageQuery),
    responses((status = 200, description = "One page.", body = asset::AssetList), QueryProblems)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, look).await
}

async fn look(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    let page = Page::read(head.uri.query())?;
    let found = app.service.assets(principal.tenant).await.map_err(|_| store_unavailable())?;
    let after = match &page.starting_after {
        None => 0,
        Some(code) => {
            let place = found.iter().position(|one| one.asset.code() == code);
            place.ok_or_else(Page::bad_cursor)? + 1
        }
    };
    Ok(answer::list(&page, found.get(after..).unwrap_or_default(), asset::write))
}

//! Every route on one screen.

use crate::app::App;
use crate::exchange::Exchange;
use crate::{
    accounts, assets, charges, conversions, dead_letters, health, keys, metrics, pages, payouts, refunds,
    transactions, transfers, webhooks,
};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_wire::problem::{Code, Problem};
use http::Response;
use std::sync::Arc;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The router, and what it serves as OpenAPI.
pub fn router(app: Arc<App>) -> (Router, OpenApi) {
    let (router, mut openapi) = OpenApiRouter::with_openapi(pages::openapi::Description::openapi())
        .routes(routes!(charges::create::create, charges::list::list))
        .routes(routes!(charges::get::get))
        .routes(routes!(charges::operate::capture))
        .routes(routes!(charges::operate::void))
        .routes(routes!(charges::timeline::timeline))
        .routes(routes!(refunds::create::create, refunds::list::list))
        .routes(routes!(refunds::get::get))
        .routes(routes!(payouts::create::create, payouts::list::list))
        .routes(routes!(payouts::get::get))
        .routes(routes!(payouts::timeline::timeline))
        .routes(routes!(accounts::create::create, accounts::list::list))
        .routes(routes!(accounts::get::get))
        .routes(routes!(accounts::balance::balance))
        .routes(routes!(accounts::entries::entries))
        .routes(routes!(accounts::shards::spread))
        .routes(routes!(transfers::create::create))
        .routes(routes!(transfers::get::get))
        .routes(routes!(transfers::end::post))
        .routes(routes!(transfers::end::void))
        .routes(routes!(transfers::timeline::timeline))
        .routes(routes!(transactions::create::create, transactions::list::list))
        .routes(routes!(transactions::bulk::bulk))
        .routes(routes!(transactions::get::get))
        .routes(routes!(transactions::reverse::reverse))
        .routes(routes!(conversions::create))
        .routes(routes!(assets::create, assets::list))
        .routes(routes!(keys::get))
        .routes(routes!(dead_letters::list::list))
        .routes(routes!(dead_letters::get::get))
        .routes(routes!(dead_letters::resolve::resolve))
        .routes(routes!(webhooks::receive))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::scrape::scrape))
        .routes(routes!(pages::openapi::openapi))
        .routes(routes!(pages::docs::docs))
        .routes(routes!(pages::errors::index))
        .routes(routes!(pages::errors::page))
        .split_for_parts();
    pages::openapi::complete(&mut openapi);
    // The description is made of constants; should it ever not be JSON, the route says so with a 404.
    if let Ok(text) = openapi.to_json() {
        let _ = app.openapi.set(text.into());
    }
    let router = router.method_not_allowed_fallback(method_not_allowed).fallback(not_found).with_state(app);
    (router, openapi)
}

async fn not_found(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    Exchange::of(&app, request.extensions()).finish(Err(Problem::new(Code::NotFound)))
}

async fn method_not_allowed(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    Exchange::of(&app, request.extensions()).finish(Err(Problem::new(Code::MethodNotAllowed)))
}

//! All routes, on one screen.

use crate::answer::Failure;
use crate::app::App;
use crate::resources::{
    accounts, assets, charges, conversions, dead_letters, keys, payouts, refunds, transactions, transfers,
    webhooks,
};
use crate::{metrics, openapi, pages, server};
use axum::{Router, middleware};
use counterfoil_wire::problem::{Code, Problem};
use std::sync::Arc;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The router, and the description it serves as `/openapi.json`.
pub fn router(app: Arc<App>) -> (Router, OpenApi) {
    let (router, mut openapi) = OpenApiRouter::with_openapi(openapi::Description::openapi())
        .routes(routes!(charges::create, charges::list))
        .routes(routes!(charges::get))
        .routes(routes!(charges::capture))
        .routes(routes!(charges::void))
        .routes(routes!(charges::timeline))
        .routes(routes!(refunds::create, refunds::list))
        .routes(routes!(refunds::get))
        .routes(routes!(payouts::create, payouts::list))
        .routes(routes!(payouts::get))
        .routes(routes!(payouts::timeline))
        .routes(routes!(accounts::create, accounts::list))
        .routes(routes!(accounts::get))
        .routes(routes!(accounts::balance))
        .routes(routes!(accounts::entries))
        .routes(routes!(accounts::spread))
        .routes(routes!(transfers::create))
        .routes(routes!(transfers::get))
        .routes(routes!(transfers::post))
        .routes(routes!(transfers::void))
        .routes(routes!(transfers::timeline))
        .routes(routes!(transactions::create, transactions::list))
        .routes(routes!(transactions::bulk))
        .routes(routes!(transactions::get))
        .routes(routes!(transactions::reverse))
        .routes(routes!(conversions::create))
        .routes(routes!(assets::create, assets::list))
        .routes(routes!(keys::get))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::get))
        .routes(routes!(dead_letters::resolve))
        .routes(routes!(webhooks::receive))
        .routes(routes!(pages::health::healthz))
        .routes(routes!(pages::health::readyz))
        .routes(routes!(metrics::scrape::scrape))
        .routes(routes!(openapi::openapi))
        .routes(routes!(pages::docs::docs))
        .routes(routes!(pages::errors::index))
        .routes(routes!(pages::errors::page))
        .split_for_parts();
    openapi::complete(&mut openapi);
    // Without a text, which would be a bug in the descriptions, the route answers 404.
    if let Ok(text) = openapi.to_json() {
        let _ = app.openapi.set(text.into());
    }
    let router = router
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        .layer(middleware::from_fn_with_state(Arc::clone(&app), server::dispatch::dispatch))
        .with_state(app);
    (router, openapi)
}

async fn not_found() -> Failure {
    Problem::new(Code::NotFound).into()
}

async fn method_not_allowed() -> Failure {
    Problem::new(Code::MethodNotAllowed).into()
}

//! Assets defined by tenants.

use crate::answer::{self, Answered, store_unavailable};
use crate::openapi::shared::{KeyHeader, LedgerProblems, PageQuery, QueryProblems};
use crate::request::Call;
use crate::request::intake::Intake;
use crate::request::query::Page;
use axum::body::Body;
use counterfoil_core::tenancy::Scope;
use counterfoil_wire::asset;

/// Defines an asset of your own.
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
pub(crate) async fn create(call: Call, body: Body) -> Answered {
    let (request, define) =
        call.accept(body, &Intake::new(asset::LAYOUT), |body, _| asset::read(body)).await?;
    call.respond(call.app.service.execute(request, define)).await
}

/// The tenant's own assets, ordered by code. Currencies need no definition.
#[utoipa::path(
    get,
    path = "/v1/assets",
    tag = "Assets",
    security(("api_key" = [])),
    params(PageQuery),
    responses((status = 200, description = "One page.", body = asset::AssetList), QueryProblems)
)]
pub(crate) async fn list(call: Call) -> Answered {
    let principal = call.admit(Scope::Read).await?;
    let page = Page::read(call.uri.query())?;
    let found = call.app.service.assets(principal.tenant).await.map_err(|_| store_unavailable())?;
    let start = match &page.starting_after {
        None => 0,
        Some(code) => {
            let after = found.iter().position(|one| one.asset.code() == code);
            after.ok_or_else(Page::bad_cursor)? + 1
        }
    };
    Ok(answer::list(&page, found.get(start..).unwrap_or_default(), asset::write))
}

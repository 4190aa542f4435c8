//! `GET /v1/accounts`.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::describe::{PageQuery, QueryProblems};
use crate::exchange::{self, Exchange};
use crate::query::Page;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::payments::ledger::AccountSelector;
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::account;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// The tenant's accounts, newest first.
#[utoipa::path(
    get,
    path = "/v1/accounts",
    tag = "Accounts",
    security(("api_key" = [])),
    params(PageQuery),
    responses((status = 200, description = "One page.", body = account::schema::AccountList), QueryProblems)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    let page = Page::read(head.uri.query())?;
    let references = app.service.references();
    let before = match page.cursor(references, ReferenceKind::Account)? {
        None => None,
        Some(number) => {
            let named = AccountSelector::Id(AccountId::from_i64(number));
            let own = app.service.account(principal.tenant, named).await;
            Some(own.map_err(|_| store_unavailable())?.ok_or_else(Page::bad_cursor)?.id)
        }
    };
    let found = app.service.accounts(principal.tenant, before, page.limit + 1).await;
    let found = found.map_err(|_| store_unavailable())?;
    Ok(answer::list(&page, &found, |out, one| account::write(out, one, references)))
}

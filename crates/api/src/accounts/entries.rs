//! `GET /v1/accounts/{id}/entries`.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::describe::{AbsentProblems, PageQuery};
use crate::exchange::{self, Exchange};
use crate::path;
use crate::query::Page;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::ledger::account::Account;
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::TransactionId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::entry;
use counterfoil_wire::problem::Problem;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// The entries of an account, newest first.
#[utoipa::path(
    get,
    path = "/v1/accounts/{id}/entries",
    tag = "Accounts",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ac_…`, or the account's code, percent-encoded where a path needs it"), PageQuery),
    responses((status = 200, description = "One page.", body = entry::List), AbsentProblems)
)]
pub(crate) async fn entries(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    let page = Page::read(head.uri.query())?;
    let account = path::account(app, head, principal.tenant).await?;
    let before = match &page.starting_after {
        None => None,
        Some(text) => Some(own_entry(app, &account, text).await?),
    };
    let found = app.service.entries(account.tenant, account.id, before, page.limit + 1).await;
    let found = found.map_err(|_| store_unavailable())?;
    let references = app.service.references();
    let of = references.seal(ReferenceKind::Account, account.id.to_i64());
    Ok(answer::list(&page, &found, |out, one| entry::write(out, one, of.as_str(), references)))
}

/// The entry a cursor stands for. An entry of another account is no more a place to start from than an absent one.
async fn own_entry(app: &App, account: &Account, text: &str) -> Result<(TransactionId, u16), Problem> {
    let (id, leg) = entry::read_id(text, app.service.references()).ok_or_else(Page::bad_cursor)?;
    let found = app.service.transaction(account.tenant, id).await.map_err(|_| store_unavailable())?;
    let (transaction, _) = found.ok_or_else(Page::bad_cursor)?;
    let own = transaction.legs.as_slice().get(usize::from(leg)).is_some_and(|leg| leg.account == account.id);
    if own { Ok((id, leg)) } else { Err(Page::bad_cursor()) }
}

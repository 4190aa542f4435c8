//! `GET /v1/transactions`.

use crate::answer::{self, Answer, store_unavailable};
use crate::app::App;
use crate::auth;
use crate::describe::{PageQuery, QueryProblems};
use crate::exchange::{self, Exchange};
use crate::query::Page;
use axum::body::Body;
use axum::extract::{Request, State};
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::payments::ledger::decide::is_reversible;
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::TransactionId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::problem::Problem;
use counterfoil_wire::transaction;
use http::Response;
use http::request::Parts;
use std::sync::Arc;

/// The tenant's transactions, newest first.
#[utoipa::path(
    get,
    path = "/v1/transactions",
    tag = "Transactions",
    security(("api_key" = [])),
    params(PageQuery),
    responses((status = 200, description = "One page.", body = transaction::schema::TransactionList), QueryProblems)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    exchange::read(&app, request, run).await
}

async fn run(app: &App, head: &Parts, exchange: &mut Exchange) -> Result<Answer, Problem> {
    let principal = auth::admit(app, &head.headers, Scope::Read, exchange).await?;
    let page = Page::read(head.uri.query())?;
    let references = app.service.references();
    let before = match page.cursor(references, ReferenceKind::Transaction)? {
        None => None,
        Some(number) => {
            let own = app.service.transaction(principal.tenant, TransactionId::from_i64(number)).await;
            Some(own.map_err(|_| store_unavailable())?.ok_or_else(Page::bad_cursor)?.0.id)
        }
    };
    let found = app.service.transactions(principal.tenant, before, page.limit + 1).await;
    let mut shown = Vec::with_capacity(page.limit + 1);
    for one in found.map_err(|_| store_unavailable())? {
        let reversed_by = if shown.len() < page.limit { reversed_by(app, &one).await? } else { None };
        shown.push((one, reversed_by));
    }
    Ok(answer::list(&page, &shown, |out, (one, by)| transaction::write(out, one, *by, references)))
}

/// What undid a transaction; only some kinds can have been undone.
async fn reversed_by(app: &App, one: &Transaction) -> Result<Option<TransactionId>, Problem> {
    if !is_reversible(one.kind) {
        return Ok(None);
    }
    let found = app.service.transaction(one.tenant, one.id).await.map_err(|_| store_unavailable())?;
    Ok(found.and_then(|(_, reversal)| reversal).map(|reversal| reversal.by))
}

//! Transactions: posting, bulk posting, reversal, reading.

use crate::answer::{self, Answered, store_unavailable};
use crate::openapi::shared::{AbsentProblems, KeyHeader, LedgerProblems, PageQuery, QueryProblems};
use crate::request::Call;
use crate::request::fetch::{Found, PageStart};
use crate::request::intake::Intake;
use axum::body::Body;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::payments::ledger::LedgerCommand;
use counterfoil_core::payments::ledger::decide::is_reversible;
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::{TenantId, TransactionId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_engine::service::{Service, TransactionView};
use counterfoil_wire::problem::Problem;
use counterfoil_wire::{bulk as bulk_form, transaction};

/// Posts a transaction: debits and credits that add up to zero.
#[utoipa::path(
    post,
    path = "/v1/transactions",
    tag = "Transactions",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (transaction::schema::CreateTransaction = "application/json"),
            (transaction::schema::CreateTransaction = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "The transaction is posted.", body = transaction::schema::Transaction),
        LedgerProblems,
    )
)]
pub(crate) async fn create(call: Call, body: Body) -> Answered {
    let (request, order) = call.accept(body, &Intake::new(transaction::LAYOUT), transaction::read).await?;
    call.respond(call.app.service.execute(request, LedgerCommand::Post(order))).await
}

/// Posts up to 1000 transactions under one key. Each is posted or refused independently of the
/// others.
#[utoipa::path(
    post,
    path = "/v1/transactions/bulk",
    tag = "Transactions",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (bulk_form::schema::CreateBulk = "application/json"),
            (bulk_form::schema::CreateBulk = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 200, description = "The result of each transaction.", body = bulk_form::schema::Bulk),
        LedgerProblems,
    )
)]
pub(crate) async fn bulk(call: Call, body: Body) -> Answered {
    let (request, items) = call.accept(body, &Intake::new(bulk_form::LAYOUT), bulk_form::read).await?;
    call.respond(call.app.service.bulk(request, items)).await
}

/// Reverses a transaction, at most once, with a transaction whose sides are swapped.
#[utoipa::path(
    post,
    path = "/v1/transactions/{id}/reverse",
    tag = "Transactions",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`tx_…`"), KeyHeader),
    responses(
        (status = 201, description = "The reversing transaction.", body = transaction::schema::Transaction),
        LedgerProblems,
    )
)]
pub(crate) async fn reverse(call: Call, body: Body) -> Answered {
    let intake = Intake::optional(transaction::REVERSE_LAYOUT);
    let (request, ()) = call.accept(body, &intake, |body, _| transaction::read_reverse(body)).await?;
    let transaction = TransactionId::from_i64(call.id(ReferenceKind::Transaction)?);
    call.respond(call.app.service.execute(request, LedgerCommand::Reverse { transaction })).await
}

/// A transaction.
#[utoipa::path(
    get,
    path = "/v1/transactions/{id}",
    tag = "Transactions",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`tx_…`")),
    responses(
        (status = 200, description = "The transaction, with its reversal if there is one.", body = transaction::schema::Transaction),
        AbsentProblems,
    )
)]
pub(crate) async fn get(call: Call) -> Answered {
    call.fetch_one(
        Scope::Read,
        ReferenceKind::Transaction,
        find,
        |out, (found, reversal): &TransactionView, references| {
            transaction::write(out, found, reversal.as_ref().map(|reversal| reversal.by), references);
        },
    )
    .await
}

/// The tenant's transactions, newest first.
#[utoipa::path(
    get,
    path = "/v1/transactions",
    tag = "Transactions",
    security(("api_key" = [])),
    params(PageQuery),
    responses((status = 200, description = "One page.", body = transaction::schema::TransactionList), QueryProblems)
)]
pub(crate) async fn list(call: Call) -> Answered {
    let PageStart { principal, page, before } = call.page_start(ReferenceKind::Transaction, find).await?;
    let before = before.map(TransactionId::from_i64);
    let found = call.app.service.transactions(principal.tenant, before, page.limit + 1).await;
    let mut rows = Vec::with_capacity(page.limit + 1);
    for one in found.map_err(|_| store_unavailable())? {
        let reversed_by = if rows.len() < page.limit { reversed_by(&call, &one).await? } else { None };
        rows.push((one, reversed_by));
    }
    let references = call.app.service.references();
    Ok(answer::list(&page, &rows, |out, (one, by)| transaction::write(out, one, *by, references)))
}

/// The transaction that reversed `one`. Only some kinds can be reversed.
async fn reversed_by(call: &Call, one: &Transaction) -> Result<Option<TransactionId>, Problem> {
    if !is_reversible(one.kind) {
        return Ok(None);
    }
    let found = call.app.service.transaction(one.tenant, one.id).await.map_err(|_| store_unavailable())?;
    Ok(found.and_then(|(_, reversal)| reversal).map(|reversal| reversal.by))
}

fn find(service: &dyn Service, tenant: TenantId, id: i64) -> Found<'_, Option<TransactionView>> {
    service.transaction(tenant, TransactionId::from_i64(id))
}

//! Accounts: opening and spreading, accounts, balances and entries.

use crate::answer::{self, Answered, store_unavailable};
use crate::openapi::shared::{AbsentProblems, KeyHeader, LedgerProblems, PageQuery, QueryProblems};
use crate::request::Call;
use crate::request::fetch::Found;
use crate::request::intake::Intake;
use crate::request::query::{self, Page};
use axum::body::Body;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::payments::ledger::{AccountSelector, LedgerCommand};
use counterfoil_core::tenancy::Scope;
use counterfoil_core::types::id::{AccountId, TenantId, TransactionId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_engine::service::Service;
use counterfoil_wire::fields::Accounts;
use counterfoil_wire::form::{self, Plus};
use counterfoil_wire::problem::{Code, Problem};
use counterfoil_wire::{account, balance as balance_form, entry};
use std::sync::Arc;

/// Opens an account.
#[utoipa::path(
    post,
    path = "/v1/accounts",
    tag = "Accounts",
    security(("api_key" = [])),
    params(KeyHeader),
    request_body(
        content(
            (account::schema::CreateAccount = "application/json"),
            (account::schema::CreateAccount = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 201, description = "The account is open.", body = account::schema::Account),
        LedgerProblems,
    )
)]
pub(crate) async fn create(call: Call, body: Body) -> Answered {
    let intake = Intake::new(account::LAYOUT);
    let (request, open) = call.accept(body, &intake, |body, _| account::read(body)).await?;
    call.respond(call.app.service.execute(request, LedgerCommand::Open(open))).await
}

/// Spreads an account's guarded balance over another number of rows, so that more writes fit at
/// once.
#[utoipa::path(
    post,
    path = "/v1/accounts/{id}/shards",
    tag = "Accounts",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ac_…`, or the account's code, percent-encoded where a path needs it"), KeyHeader),
    request_body(
        content(
            (account::schema::SpreadAccount = "application/json"),
            (account::schema::SpreadAccount = "application/x-www-form-urlencoded"),
        )
    ),
    responses(
        (status = 200, description = "The account with its new spread.", body = account::schema::Account),
        LedgerProblems,
    )
)]
pub(crate) async fn spread(call: Call, body: Body) -> Answered {
    let intake = Intake::new(account::SHARDS_LAYOUT);
    let (request, shards) = call.accept(body, &intake, |body, _| account::read_shards(body)).await?;
    let account = account_in_path(&call)?;
    call.respond(call.app.service.execute(request, LedgerCommand::Reshard { account, shards })).await
}

/// An account.
#[utoipa::path(
    get,
    path = "/v1/accounts/{id}",
    tag = "Accounts",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ac_…`, or the account's code, percent-encoded where a path needs it")),
    responses(
        (status = 200, description = "The account.", body = account::schema::Account),
        AbsentProblems,
    )
)]
pub(crate) async fn get(call: Call) -> Answered {
    let principal = call.admit(Scope::Read).await?;
    query::must_be_empty(&call.uri)?;
    let found = find_in_path(&call, principal.tenant).await?;
    let mut body = Vec::with_capacity(256);
    account::write(&mut body, &found, call.app.service.references());
    Ok(answer::json(body))
}

/// The tenant's accounts, newest first.
#[utoipa::path(
    get,
    path = "/v1/accounts",
    tag = "Accounts",
    security(("api_key" = [])),
    params(PageQuery),
    responses((status = 200, description = "One page.", body = account::schema::AccountList), QueryProblems)
)]
pub(crate) async fn list(call: Call) -> Answered {
    call.fetch_page(
        ReferenceKind::Account,
        find,
        |service, tenant, before, limit| service.accounts(tenant, before.map(AccountId::from_i64), limit),
        account::write,
    )
    .await
}

/// The balance of an account, at present or in the past.
#[utoipa::path(
    get,
    path = "/v1/accounts/{id}/balance",
    tag = "Accounts",
    security(("api_key" = [])),
    params(
        ("id" = String, Path, description = "`ac_…`, or the account's code, percent-encoded where a path needs it"),
        ("at" = Option<String>, Query, description = "The end of the balance: a position from an earlier answer, or an RFC 3339 time. Now if absent"),
    ),
    responses((status = 200, description = "The balance.", body = balance_form::Balance), AbsentProblems)
)]
pub(crate) async fn balance(call: Call) -> Answered {
    let principal = call.admit(Scope::Read).await?;
    let upto = query::upto(call.uri.query())?;
    let account = find_in_path(&call, principal.tenant).await?;
    let balance = call.app.service.balance(Arc::clone(&account), upto).await;
    let balance = balance.map_err(|_| store_unavailable())?;
    Ok(answer::json(balance_form::write(&account, &balance, call.app.service.references())))
}

/// The entries of an account, newest first.
#[utoipa::path(
    get,
    path = "/v1/accounts/{id}/entries",
    tag = "Accounts",
    security(("api_key" = [])),
    params(("id" = String, Path, description = "`ac_…`, or the account's code, percent-encoded where a path needs it"), PageQuery),
    responses((status = 200, description = "One page.", body = entry::EntryList), AbsentProblems)
)]
pub(crate) async fn entries(call: Call) -> Answered {
    let principal = call.admit(Scope::Read).await?;
    let page = Page::read(call.uri.query())?;
    let account = find_in_path(&call, principal.tenant).await?;
    let before = match &page.starting_after {
        None => None,
        Some(text) => Some(own_entry(&call, &account, text).await?),
    };
    let found = call.app.service.entries(account.tenant, account.id, before, page.limit + 1).await;
    let found = found.map_err(|_| store_unavailable())?;
    let references = call.app.service.references();
    let of = references.seal(ReferenceKind::Account, account.id.to_i64());
    Ok(answer::list(&page, &found, |out, one| entry::write(out, one, of.as_str(), references)))
}

/// The entry a cursor stands for. An entry of another account is refused exactly as an absent one.
async fn own_entry(call: &Call, account: &Account, text: &str) -> Result<(TransactionId, u16), Problem> {
    let service = &call.app.service;
    let (id, leg) = entry::read_id(text, service.references()).ok_or_else(Page::bad_cursor)?;
    let found = service.transaction(account.tenant, id).await.map_err(|_| store_unavailable())?;
    let (transaction, _) = found.ok_or_else(Page::bad_cursor)?;
    let own = transaction.legs.as_slice().get(usize::from(leg)).is_some_and(|leg| leg.account == account.id);
    if own { Ok((id, leg)) } else { Err(Page::bad_cursor()) }
}

fn find(service: &dyn Service, tenant: TenantId, id: i64) -> Found<'_, Option<Arc<Account>>> {
    service.account(tenant, AccountSelector::Id(AccountId::from_i64(id)))
}

/// The account named in the path, by id or code.
fn account_in_path(call: &Call) -> Result<AccountSelector, Problem> {
    let text = form::decode(call.parameter().as_bytes(), Plus::Plus);
    let text = text.map_err(|_| Problem::new(Code::NotFound))?;
    Accounts::new(call.app.service.references()).named(&text).ok_or(Problem::new(Code::NotFound))
}

async fn find_in_path(call: &Call, tenant: TenantId) -> Result<Arc<Account>, Problem> {
    let found = call.app.service.account(tenant, account_in_path(call)?).await;
    found.map_err(|_| store_unavailable())?.ok_or(Problem::new(Code::NotFound))
}

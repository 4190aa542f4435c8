//! What a path is about. Something this instance never named is as absent as something that does not exist.

use crate::answer::store_unavailable;
use crate::app::App;
use crate::route::Route;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::payments::ledger::AccountSelector;
use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_wire::fields::Accounts;
use counterfoil_wire::form::{self, Plus};
use counterfoil_wire::problem::{Code, Problem};
use http::request::Parts;
use std::sync::Arc;

/// The number behind the reference in the path.
pub(crate) fn number(app: &App, head: &Parts, kind: ReferenceKind) -> Result<i64, Problem> {
    let (_, reference) = Route::of(head.uri.path());
    app.service.references().open(kind, reference).ok_or(Problem::new(Code::NotFound))
}

/// The account the path names, by its id or by its code.
pub(crate) fn named(app: &App, head: &Parts) -> Result<AccountSelector, Problem> {
    let (_, segment) = Route::of(head.uri.path());
    let text = form::decode(segment.as_bytes(), Plus::Plus).map_err(|_| Problem::new(Code::NotFound))?;
    Accounts::new(app.service.references()).named(&text).ok_or(Problem::new(Code::NotFound))
}

/// The account the path names, if the tenant has it.
pub(crate) async fn account(app: &App, head: &Parts, tenant: TenantId) -> Result<Arc<Account>, Problem> {
    let found = app.service.account(tenant, named(app, head)?).await;
    found.map_err(|_| store_unavailable())?.ok_or(Problem::new(Code::NotFound))
}

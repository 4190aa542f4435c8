//! Account codes.

use super::super::report::VerifyReport;
use super::super::rows::Rows;
use counterfoil_core::ledger::account::{Account, AccountCode};
use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_store::{ReadError, RowKey, Store};

/// Checks that a used code names an account with that code.
pub(super) fn see(rows: &Rows, tenant: TenantId, code: &AccountCode, report: &mut VerifyReport) {
    let account = rows.named(tenant, code).and_then(|name| rows.account(name.account));
    let right = account.is_some_and(|account| account.tenant == tenant && account.code == *code);
    report.note("account_names", (!right).then(|| format!("`{code}` names no account of that code")));
}

/// Checks that every account's code names that account.
pub(super) async fn check<S: Store>(
    store: &S,
    accounts: &[Account],
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    for accounts in accounts.chunks(SCAN_MAX) {
        let keys =
            accounts.iter().map(|account| RowKey::Name(account.tenant, account.code.clone())).collect();
        let rows = Rows::read(store, keys).await?;
        for account in accounts {
            let named = rows.named(account.tenant, &account.code).map(|name| name.account);
            let broken =
                (named != Some(account.id)).then(|| format!("`{}` does not name its account", account.code));
            report.note("account_names", broken);
        }
    }
    Ok(())
}

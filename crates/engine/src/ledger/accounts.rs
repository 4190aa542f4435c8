//! Accounts and assets by name, cached where immutable.

use crate::engine::Inner;
use crate::world::World;
use counterfoil_core::ledger::account::{Account, AccountCode};
use counterfoil_core::ledger::chart::{ROLES, Role, peer_code};
use counterfoil_core::payments::ledger::decide::{KnownAccounts, chart_account, open, peer_account};
use counterfoil_core::payments::ledger::{AccountSelector, Open};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::peer::PeerName;
use counterfoil_gateway::Gateway;
use counterfoil_store::{ChangeSet, ReadError, Row, RowKey, Store};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Entries of each cache. A full cache is cleared.
const CACHED_MAX: usize = 100_000;

/// The caches. Only an account's number of shards can change. An outdated number is harmless: a
/// write to a shard that is no longer used still counts.
#[derive(Default)]
pub(crate) struct Accounts(RwLock<Caches>);

#[derive(Default)]
struct Caches {
    accounts: HashMap<AccountId, Arc<Account>>,
    codes: HashMap<TenantId, HashMap<AccountCode, AccountId>>,
    exponents: HashMap<(TenantId, Asset), u8>,
    chart: HashMap<(TenantId, Asset, Role), Arc<Account>>,
}

impl Accounts {
    fn named(&self, tenant: TenantId, named: &AccountSelector) -> Option<Arc<Account>> {
        let caches = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let id = match named {
            AccountSelector::Id(id) => id,
            AccountSelector::Code(code) => caches.codes.get(&tenant)?.get(code)?,
        };
        caches.accounts.get(id).cloned()
    }

    /// Caches an account as committed.
    pub(crate) fn learn(&self, account: &Arc<Account>) {
        let mut caches = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if caches.accounts.len() >= CACHED_MAX {
            caches.accounts.clear();
            caches.codes.clear();
        }
        caches.codes.entry(account.tenant).or_default().insert(account.code.clone(), account.id);
        caches.accounts.insert(account.id, Arc::clone(account));
    }

    fn charted(&self, place: (TenantId, Asset, Role)) -> Option<Arc<Account>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).chart.get(&place).cloned()
    }

    fn learn_charted(&self, place: (TenantId, Asset, Role), account: &Arc<Account>) {
        let mut caches = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if caches.chart.len() >= CACHED_MAX {
            caches.chart.clear();
        }
        caches.chart.insert(place, Arc::clone(account));
    }

    fn exponent(&self, tenant: TenantId, asset: Asset) -> Option<u8> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).exponents.get(&(tenant, asset)).copied()
    }

    fn learn_exponent(&self, tenant: TenantId, asset: Asset, exponent: u8) {
        let mut caches = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if caches.exponents.len() >= CACHED_MAX {
            caches.exponents.clear();
        }
        caches.exponents.insert((tenant, asset), exponent);
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// The account with that id or code, if the tenant has it.
    pub(crate) async fn account(
        &self,
        tenant: TenantId,
        named: &AccountSelector,
    ) -> Result<Option<Arc<Account>>, ReadError> {
        if let Some(account) = self.accounts.named(tenant, named) {
            return Ok((account.tenant == tenant).then_some(account));
        }
        Box::pin(self.fresh_account(tenant, named)).await
    }

    /// Reads the account from the store, past the cache.
    pub(crate) async fn fresh_account(
        &self,
        tenant: TenantId,
        named: &AccountSelector,
    ) -> Result<Option<Arc<Account>>, ReadError> {
        let id = match named {
            AccountSelector::Id(id) => *id,
            AccountSelector::Code(code) => {
                let rows = self.store.read(vec![RowKey::Name(tenant, code.clone())]).await?;
                match rows.into_iter().next().flatten() {
                    Some(Row::Name(name)) => name.account,
                    _ => return Ok(None),
                }
            }
        };
        let rows = self.store.read(vec![RowKey::Account(tenant, id)]).await?;
        let Some(Some(Row::Account(account))) = rows.into_iter().next() else { return Ok(None) };
        if account.tenant != tenant {
            return Ok(None);
        }
        let account = Arc::new(account);
        self.accounts.learn(&account);
        Ok(Some(account))
    }

    /// The accounts among `names` that the tenant has.
    pub(crate) async fn known_accounts<'a>(
        &self,
        tenant: TenantId,
        names: impl Iterator<Item = &'a AccountSelector> + Send,
    ) -> Result<KnownAccounts, ReadError> {
        let mut known = KnownAccounts::default();
        for named in names {
            if let Some(account) = self.account(tenant, named).await? {
                known.learn(account);
            }
        }
        Ok(known)
    }

    /// Decimals of the asset's minor unit, if the tenant may use the asset.
    pub(crate) async fn exponent(&self, tenant: TenantId, asset: Asset) -> Result<Option<u8>, ReadError> {
        if let Some(exponent) = asset.currency_exponent().or_else(|| self.accounts.exponent(tenant, asset)) {
            return Ok(Some(exponent));
        }
        let rows = self.store.read(vec![RowKey::Asset(tenant, asset)]).await?;
        let Some(Some(Row::Asset(definition))) = rows.into_iter().next() else { return Ok(None) };
        self.accounts.learn_exponent(tenant, asset, definition.exponent);
        Ok(Some(definition.exponent))
    }

    /// The chart's account of that role. The first use opens all accounts of the chart.
    pub(crate) async fn chart(
        &self,
        tenant: TenantId,
        asset: Asset,
        role: Role,
    ) -> Result<Arc<Account>, String> {
        let place = (tenant, asset, role);
        if let Some(account) = self.accounts.charted(place) {
            return Ok(account);
        }
        let code = role.code(asset).map_err(|_| format!("{asset} gives no code"))?;
        let siblings = || ROLES.iter().filter_map(|role| chart_account(*role, asset)).collect();
        let account = self.opened(tenant, code, siblings).await?;
        self.accounts.learn_charted(place, &account);
        Ok(account)
    }

    /// The chart's account of the debt to a peer, opened on first use.
    pub(crate) async fn owed_to_peer(
        &self,
        tenant: TenantId,
        asset: Asset,
        peer: &PeerName,
    ) -> Result<Arc<Account>, String> {
        let code = peer_code(peer, asset).map_err(|_| format!("{peer} and {asset} give no code"))?;
        self.opened(tenant, code, || peer_account(peer, asset).into_iter().collect()).await
    }

    /// The account of that code. A missing account is opened together with the `wanted` ones.
    async fn opened(
        &self,
        tenant: TenantId,
        code: AccountCode,
        wanted: impl Fn() -> Vec<Open> + Send,
    ) -> Result<Arc<Account>, String> {
        const TRIES: u32 = 3;
        let named = AccountSelector::Code(code);
        for _ in 0..TRIES {
            match self.account(tenant, &named).await {
                Ok(Some(account)) => return Ok(account),
                Ok(None) => Box::pin(self.open_chart(tenant, wanted())).await?,
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("an account of the chart could not be opened".to_owned())
    }

    /// Opens accounts of the chart. Accounts that another request opened meanwhile serve as well.
    async fn open_chart(&self, tenant: TenantId, accounts: Vec<Open>) -> Result<(), String> {
        let now = self.store.now();
        let mint = async || self.next_id(now).await.ok_or_else(|| "no id can be minted".to_owned());
        let mut set = ChangeSet::new(SetId::from_i64(mint().await?));
        for wanted in accounts {
            let (account, name, _) = open(wanted, AccountId::from_i64(mint().await?), tenant, now);
            set = set.insert(name).insert(account);
        }
        match self.commit(set).await {
            Ok(_) | Err(crate::commit::NotCommitted::Refused(_)) => Ok(()),
            Err(crate::commit::NotCommitted::Unavailable(why)) => Err(why),
            Err(crate::commit::NotCommitted::InDoubt) => Err("opening the chart is in doubt".into()),
        }
    }
}

//! An engine with one tenant whose accounts are open and funded.

use super::super::cell::Accounts;
use super::super::chart::{FUND, OPENERS, SOURCE, wanted};
use super::unused_provider::UnusedProvider;
use crate::failure::{Failure, Result};
use counterfoil_core::idempotency::claim::{ClaimId, LeasePolicy};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::idempotency::window;
use counterfoil_core::ledger::account::{AccountCode, Guard, Side};
use counterfoil_core::payments::ledger::{AccountSelector, LedgerCommand, Metadata, Open, TransferOrder};
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::tenancy::Scopes;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::{Digest, MacKey};
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_core::types::reference::References;
use counterfoil_core::types::time::Span;
use counterfoil_engine::policy::EnginePolicy;
use counterfoil_engine::service::{NewTenant, Service, Submitted};
use counterfoil_engine::signal::NoWatch;
use counterfoil_engine::world::TokioWorld;
use counterfoil_engine::{Engine, Parts};
use counterfoil_gateway::breaker;
use counterfoil_store::Store;
use counterfoil_store_embedded::{EmbeddedStore, Options};
use counterfoil_wire::present::Presenter;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinSet;

/// The engine, and the parameters of requests for transfers.
pub(super) struct Bank {
    pub(super) service: Arc<dyn Service>,
    asset: Asset,
    tenant: TenantId,
    accounts: BTreeMap<String, AccountId>,
    writes: Arc<Writes>,
    requests: AtomicU64,
}

/// Counters of durable writes and of the change sets in them.
#[derive(Default)]
struct Writes {
    writes: AtomicU64,
    sets: AtomicU64,
}

impl Bank {
    /// Opens a new store in `directory`.
    pub(super) async fn open(directory: &Path) -> Result<Bank> {
        let writes = Arc::new(Writes::default());
        let counted = Arc::clone(&writes);
        let options = Options {
            observe: Some(Arc::new(move |sets, _| {
                counted.writes.fetch_add(1, Ordering::Relaxed);
                counted.sets.fetch_add(sets as u64, Ordering::Relaxed);
            })),
            ..Options::default()
        };
        let store = EmbeddedStore::open(directory, options).map_err(Failure::while_("opening the store"))?;
        let references = References::new(MacKey::new(store.secret().reveal()));
        let parts = Parts {
            present: Arc::new(Presenter::new(references)),
            watch: Arc::new(NoWatch),
            world: TokioWorld::new(),
            policy: policy(),
            store,
            gateway: UnusedProvider,
        };
        let engine = Engine::start(parts).await.map_err(Failure::while_("starting the engine"))?;
        let service: Arc<dyn Service> = Arc::new(engine);
        let tenant = NewTenant {
            name: "bench".into(),
            key_policy: None,
            digest: Digest::of("bench", &[]),
            key_id: "key_bench".into(),
            scopes: Scopes::ALL,
        };
        let tenant = service.create_tenant(tenant).await.map_err(Failure::while_("making a tenant"))?.id;
        let asset = Asset::currency("USD").map_err(|_| Failure::new("USD is no currency"))?;
        let requests = AtomicU64::new(0);
        let mut bank = Bank { service, asset, tenant, accounts: BTreeMap::new(), writes, requests };
        bank.open_accounts().await?;
        bank.fund().await?;
        Ok(bank)
    }

    /// Durable writes so far, and the change sets in them.
    pub(super) fn written(&self) -> (u64, u64) {
        (self.writes.writes.load(Ordering::Relaxed), self.writes.sets.load(Ordering::Relaxed))
    }

    /// The accounts to debit and credit.
    pub(super) fn pairs(&self, accounts: Accounts) -> Result<Vec<(AccountId, AccountId)>> {
        let pairs = accounts.pairs();
        pairs
            .iter()
            .map(|(debited, credited)| Ok((self.account(debited)?, self.account(credited)?)))
            .collect()
    }

    fn account(&self, code: &str) -> Result<AccountId> {
        let account = self.accounts.get(code).copied();
        account.ok_or_else(|| Failure::new(format!("the account {code} was not opened")))
    }

    /// A request with a new key and a unique fingerprint, as requests behind the API have.
    pub(super) fn request(&self) -> Request {
        let number = self.requests.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        Request {
            tenant: self.tenant,
            claim: ClaimId::from_digest(Digest::of("bench/key", &[&number])),
            fingerprint: Fingerprint::from_digest(Digest::of("bench/body", &[&number])),
            id: self.service.request_id(),
        }
    }

    pub(super) fn transfer(&self, (debited, credited): (AccountId, AccountId), amount: i64) -> TransferOrder {
        TransferOrder {
            from: AccountSelector::Id(debited),
            to: AccountSelector::Id(credited),
            amount,
            asset: self.asset,
            hold: None,
            metadata: Metadata::new(),
        }
    }

    async fn open_accounts(&mut self) -> Result<()> {
        let wanted = wanted();
        let mut acts = Vec::with_capacity(wanted.len());
        for account in &wanted {
            acts.push(LedgerCommand::Open(Open {
                code: code(&account.code)?,
                asset: self.asset,
                normal: Side::Credit,
                guard: Guard { floor: account.guarded.map(|_| 0), cap: None },
                shards: account.guarded.unwrap_or(1),
                metadata: Metadata::new(),
            }));
        }
        self.keep_all(acts).await?;
        for account in wanted {
            let named = AccountSelector::Code(code(&account.code)?);
            let found = self.service.account(self.tenant, named).await;
            let found = found.map_err(Failure::while_("reading an account"))?;
            let found = found.ok_or_else(|| Failure::new(format!("{} was not opened", account.code)))?;
            self.accounts.insert(account.code, found.id);
        }
        Ok(())
    }

    async fn fund(&self) -> Result<()> {
        let source = self.account(SOURCE)?;
        let mut acts = Vec::new();
        for account in wanted() {
            let pair = (source, self.account(&account.code)?);
            acts.extend((0..account.fundings).map(|_| LedgerCommand::Transfer(self.transfer(pair, FUND))));
        }
        self.keep_all(acts).await
    }

    /// Runs all commands concurrently; each must succeed.
    async fn keep_all(&self, acts: Vec<LedgerCommand>) -> Result<()> {
        let mut running = JoinSet::new();
        for act in acts {
            if running.len() >= OPENERS {
                kept(running.join_next().await)?;
            }
            let (service, request) = (Arc::clone(&self.service), self.request());
            running.spawn(async move { service.execute(request, act).await });
        }
        while let Some(done) = running.join_next().await {
            kept(Some(done))?;
        }
        Ok(())
    }
}

fn kept(done: Option<std::result::Result<Submitted, tokio::task::JoinError>>) -> Result<()> {
    match done {
        Some(Ok(Submitted::Answer { settled, replayed: false })) if settled.reply.status == 201 => Ok(()),
        None => Ok(()),
        Some(other) => Err(Failure::new(format!("an account could not be opened or funded: {other:?}"))),
    }
}

fn code(text: &str) -> Result<AccountCode> {
    AccountCode::parse(text).map_err(|_| Failure::new(format!("{text} is no account's code")))
}

/// The server's defaults.
fn policy() -> EnginePolicy {
    const DAY: Span = Span::from_ms(86_400_000);
    EnginePolicy {
        lease: LeasePolicy { lease: Span::from_ms(30_000), ceiling: Span::from_ms(180_000) },
        heartbeat: Span::from_ms(10_000),
        wait: Span::from_ms(5_000),
        windows: window::WindowPolicy { replay: DAY, tombstone: DAY, reuse: window::Reuse::AfterTombstone },
        attempts_max: 8,
        backoff: Backoff { base: Span::from_ms(500), cap: Span::from_ms(30_000) },
        poll: Span::from_ms(500),
        batch: 64,
        breaker: breaker::BreakerPolicy { failures: 5, open: Span::from_ms(1_000) },
    }
}

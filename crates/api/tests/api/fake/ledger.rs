//! A small ledger: it keeps the core's decisions in lists. The guards of balances belong to the
//! store and are missing here.

use counterfoil_core::idempotency::reply::Reply;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::chart::Role;
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::ledger::totals::{AccountEntry, Totals};
use counterfoil_core::ledger::transaction::{Reversal, Transaction};
use counterfoil_core::payments::ledger::decide::{self, DecisionContext, Exchange, KnownAccounts};
use counterfoil_core::payments::ledger::{
    AccountSelector, Convert, Item, LedgerCommand, LedgerRefusal, Open,
};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::{AccountId, HoldId, SubjectId, TenantId, TransactionId};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::present::{ItemResult, LedgerReply, Present};
use counterfoil_engine::service::{BalanceView, Submitted, TransactionView, TransferView};
use counterfoil_store::{CommitReceipt, Upto};
use counterfoil_wire::present::Presenter;
use std::sync::Arc;

/// All objects of the ledger, oldest first.
#[derive(Default)]
pub(crate) struct Ledger {
    accounts: Vec<Arc<Account>>,
    transactions: Vec<Transaction>,
    holds: Vec<Hold>,
    assets: Vec<AssetDefinition>,
    reversals: Vec<Reversal>,
    minted: i64,
}

/// The tenant, the request and the time of a command.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) tenant: TenantId,
    pub(crate) request: Ulid,
    pub(crate) now: Time,
}

impl Ledger {
    fn mint(&mut self) -> i64 {
        self.minted += 1;
        1_000 + self.minted
    }

    fn frame(&mut self, asked: Asked) -> DecisionContext {
        DecisionContext { tenant: asked.tenant, id: TransactionId::from_i64(self.mint()), now: asked.now }
    }

    fn known(&self) -> KnownAccounts {
        let mut known = KnownAccounts::default();
        for account in &self.accounts {
            known.learn(Arc::clone(account));
        }
        known
    }

    fn open(&mut self, open: Open, asked: Asked) -> Arc<Account> {
        let id = AccountId::from_i64(self.mint());
        let (account, _, _) = decide::open(open, id, asked.tenant, asked.now);
        let account = Arc::new(account);
        self.accounts.push(Arc::clone(&account));
        account
    }

    fn chart(&mut self, role: Role, asset: Asset, asked: Asked) -> AccountId {
        let open = decide::chart_account(role, asset).unwrap();
        let known = self.account(asked.tenant, &AccountSelector::Code(open.code.clone()));
        known.unwrap_or_else(|| self.open(open, asked)).id
    }

    pub(crate) fn account(&self, tenant: TenantId, named: &AccountSelector) -> Option<Arc<Account>> {
        let own = self.accounts.iter().filter(|account| account.tenant == tenant);
        own.into_iter()
            .find(|account| match named {
                AccountSelector::Id(id) => account.id == *id,
                AccountSelector::Code(code) => account.code == *code,
            })
            .cloned()
    }

    pub(crate) fn accounts(&self, tenant: TenantId, before: Option<AccountId>, limit: usize) -> Vec<Account> {
        let own = self.accounts.iter().rev().filter(|account| account.tenant == tenant);
        own.filter(|account| before.is_none_or(|before| account.id < before))
            .take(limit)
            .map(|account| Account::clone(account))
            .collect()
    }

    pub(crate) fn transaction(&self, tenant: TenantId, id: TransactionId) -> Option<TransactionView> {
        let found = self.transactions.iter().find(|one| one.id == id && one.tenant == tenant)?;
        Some((found.clone(), self.reversals.iter().find(|reversal| reversal.original == id).copied()))
    }

    pub(crate) fn transactions(
        &self,
        tenant: TenantId,
        before: Option<TransactionId>,
        limit: usize,
    ) -> Vec<Transaction> {
        let own = self.transactions.iter().rev().filter(|one| one.tenant == tenant);
        own.filter(|one| before.is_none_or(|before| one.id < before)).take(limit).cloned().collect()
    }

    pub(crate) fn transfer(&self, tenant: TenantId, id: TransactionId) -> Option<TransferView> {
        let hold = self.holds.iter().find(|hold| hold.id.to_i64() == id.to_i64() && hold.tenant == tenant);
        match hold {
            Some(hold) => Some(TransferView::Held(hold.clone())),
            None => self.transaction(tenant, id).map(|(posted, _)| TransferView::Done(posted)),
        }
    }

    pub(crate) fn assets(&self, tenant: TenantId) -> Vec<AssetDefinition> {
        let mut own: Vec<AssetDefinition> =
            self.assets.iter().filter(|one| one.tenant == tenant).copied().collect();
        own.sort_by_key(|one| one.asset);
        own
    }

    fn journal(&self, account: AccountId) -> Vec<AccountEntry> {
        let placed = self.transactions.iter().zip(1_u64..);
        placed
            .flat_map(|(one, position)| one.entries(Position(position), one.at).collect::<Vec<_>>())
            .filter(|entry| entry.account == account)
            .collect()
    }

    pub(crate) fn entries(
        &self,
        account: AccountId,
        before: Option<(TransactionId, u16)>,
        limit: usize,
    ) -> Vec<AccountEntry> {
        let own = self.journal(account).into_iter().rev();
        own.filter(|entry| before.is_none_or(|before| (entry.transaction, entry.leg) < before))
            .take(limit)
            .collect()
    }

    pub(crate) fn balance(&self, account: &Account, upto: Upto) -> BalanceView {
        let (mut totals, mut position) = (Totals::default(), Position::START);
        for entry in self.journal(account.id) {
            if upto.includes(CommitReceipt { position: entry.position, at: entry.at }) {
                totals = totals.plus(entry.side, entry.layer, entry.amount);
                position = entry.position;
            }
        }
        BalanceView { view: totals.seen_from(account.normal), position }
    }

    /// Executes a command or returns the refusal.
    pub(crate) fn keep(
        &mut self,
        act: LedgerCommand,
        asked: Asked,
        present: &Presenter,
    ) -> Result<Reply, Submitted> {
        let shown = |shown: LedgerReply<'_>| Ok(present.ledger(shown, asked.request));
        let refuse = |refusal| Ok(present.ledger(LedgerReply::Refused(refusal), asked.request));
        match act {
            LedgerCommand::Open(open) => {
                refused_if_any(decide::open_flaws(&open))?;
                if self.account(asked.tenant, &AccountSelector::Code(open.code.clone())).is_some() {
                    return refuse(LedgerRefusal::AccountExists);
                }
                shown(LedgerReply::Opened(&self.open(open, asked)))
            }
            LedgerCommand::Define { asset, exponent } => {
                let known = self.assets.iter().any(|one| one.asset == asset && one.tenant == asked.tenant);
                if known || asset.currency_exponent().is_some() {
                    return refuse(LedgerRefusal::AssetExists);
                }
                let one = AssetDefinition { tenant: asked.tenant, asset, exponent, created_at: asked.now };
                self.assets.push(one);
                shown(LedgerReply::Defined(&one))
            }
            LedgerCommand::Reshard { account, shards } => {
                let account = self.account(asked.tenant, &account).ok_or(Submitted::NotFound)?;
                let next = Arc::new(decide::reshard(&account, shards));
                self.accounts
                    .iter_mut()
                    .filter(|one| one.id == next.id)
                    .for_each(|one| *one = Arc::clone(&next));
                shown(LedgerReply::Resharded(&next))
            }
            LedgerCommand::Transfer(order) => {
                let frame = self.frame(asked);
                let (posted, hold) =
                    decide::transfer(order, &self.known(), frame).map_err(Submitted::Invalid)?;
                self.transactions.push(posted.clone());
                self.holds.extend(hold.clone());
                shown(hold.as_ref().map_or(LedgerReply::Transferred(&posted), LedgerReply::Held))
            }
            LedgerCommand::End { hold, how } => {
                let hold = self.hold(asked.tenant, hold).ok_or(Submitted::NotFound)?;
                if !hold.is_open(asked.now) {
                    return refuse(LedgerRefusal::HoldEnded);
                }
                let frame = self.frame(asked);
                let (posted, ended) = decide::end(&hold, how, frame).map_err(Submitted::Invalid)?;
                self.transactions.push(posted);
                self.holds.iter_mut().filter(|one| one.id == ended.id).for_each(|one| *one = ended.clone());
                shown(LedgerReply::Ended(&ended))
            }
            LedgerCommand::Post(order) => {
                let frame = self.frame(asked);
                let posted = decide::post(order, &self.known(), frame).map_err(Submitted::Invalid)?;
                self.transactions.push(posted.clone());
                shown(LedgerReply::Posted(&posted))
            }
            LedgerCommand::Reverse { transaction } => {
                let found = self.transaction(asked.tenant, transaction).ok_or(Submitted::NotFound)?;
                if !decide::is_reversible(found.0.kind) {
                    return refuse(LedgerRefusal::NotReversible);
                }
                if found.1.is_some() {
                    return refuse(LedgerRefusal::AlreadyReversed);
                }
                let posted = decide::reverse(&found.0, self.frame(asked));
                self.reversals.push(Reversal { tenant: asked.tenant, original: transaction, by: posted.id });
                self.transactions.push(posted.clone());
                shown(LedgerReply::Posted(&posted))
            }
            LedgerCommand::Convert(order) => {
                let posted = self.convert(order, asked).map_err(Submitted::Invalid)?;
                shown(LedgerReply::Posted(&posted))
            }
        }
    }

    fn convert(&mut self, order: Convert, asked: Asked) -> Result<Transaction, Vec<Flaw>> {
        let find = |named, place| self.account(asked.tenant, named).ok_or(vec![Flaw::new(place, "absent")]);
        let (from, to) = (find(&order.from, "/from")?, find(&order.to, "/to")?);
        let chart = Exchange {
            bought: self.chart(Role::Exchange, from.asset, asked),
            sold: self.chart(Role::Exchange, to.asset, asked),
            rounding: self.chart(Role::Rounding, to.asset, asked),
        };
        let frame = self.frame(asked);
        let exponent = |asset: Asset| asset.currency_exponent().unwrap_or(0);
        let converted = decide::price(&order, &from, &to, (exponent(from.asset), exponent(to.asset)))?;
        let posted = decide::exchange(order, &from, &to, converted, chart, frame)?;
        self.transactions.push(posted.clone());
        Ok(posted)
    }

    /// Executes the items of a bulk request.
    pub(crate) fn bulk(&mut self, items: Vec<Item>, asked: Asked, present: &Presenter) -> Reply {
        let mut results = Vec::new();
        for item in items {
            let frame = self.frame(asked);
            let decided = match item {
                Item::Transfer(order) => {
                    decide::transfer(order, &self.known(), frame).map(|(posted, _)| posted)
                }
                Item::Post(order) => decide::post(order, &self.known(), frame),
            };
            results.push(match decided {
                Ok(posted) => {
                    self.transactions.push(posted.clone());
                    ItemResult::Posted(Box::new(posted))
                }
                Err(flaws) => ItemResult::Invalid(flaws),
            });
        }
        let id = SubjectId::from_i64(self.mint());
        present.ledger(LedgerReply::Bulk { id, results: &results }, asked.request)
    }

    fn hold(&self, tenant: TenantId, id: HoldId) -> Option<Hold> {
        self.holds.iter().find(|hold| hold.id == id && hold.tenant == tenant).cloned()
    }
}

fn refused_if_any(flaws: Vec<Flaw>) -> Result<(), Submitted> {
    if flaws.is_empty() { Ok(()) } else { Err(Submitted::Invalid(flaws)) }
}

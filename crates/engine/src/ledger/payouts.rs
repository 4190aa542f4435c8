//! A payout's account, and the check that a payout takes no more than is available there.
//!
//! The commit judges an account's floor, as for every move of a guarded balance. An account without
//! a floor at or above zero has the balance read first, and the payout's set replaces the account's
//! row. Of two payouts that read the same balance, one is therefore refused and reads again. Other
//! transactions may still overdraw an account without a floor.

use crate::command::ResolvedCommand;
use crate::engine::Inner;
use crate::open::{DecidedOpening, MintedIds, OpenResult, Precondition};
use crate::service::Submitted;
use crate::signal::Signal;
use crate::world::World;
use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::ledger::account::{Account, Side};
use counterfoil_core::ledger::chart::{Role, peer_code};
use counterfoil_core::payments::ledger::{AccountSelector, LedgerRefusal};
use counterfoil_core::payments::payout::create::{self, CreatePayout};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::PayoutId;
use counterfoil_core::types::peer::PeerName;
use counterfoil_gateway::Gateway;
use counterfoil_store::{Row, RowKey, Store, Upto};
use std::sync::Arc;

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// The account a payout is paid from: the named one, or the tenant's main account of the
    /// currency.
    pub(crate) async fn paid_from(&self, command: &CreatePayout) -> Result<Arc<Account>, Submitted> {
        let (tenant, asset) = (command.request.tenant, command.wanted.amount.asset());
        let peer = command.wanted.peer.as_ref();
        if peer.is_some_and(|peer| self.gateway.binding_to(peer).is_none()) {
            return Err(Submitted::Invalid(vec![Flaw::new("/peer", no_such_peer(&self.gateway.peers()))]));
        }
        let owed = peer.and_then(|peer| peer_code(peer, asset).ok());
        let wrong = |message: String| Err(Submitted::Invalid(vec![Flaw::new("/account", message)]));
        let Some(named) = command.wanted.account else {
            return self.chart(tenant, asset, Role::Payable).await.map_err(|why| {
                tracing::warn!(
                    why,
                    "failed closed: the tenant's accounts could not be read, the provider was not called"
                );
                self.watch.saw(Signal::FailClosed);
                Submitted::StoreUnavailable
            });
        };
        match self.account(tenant, &AccountSelector::Id(named)).await {
            Ok(Some(account)) if account.asset != asset => wrong(format!(
                "the account counts {}, not {asset}; name an account of {asset}",
                account.asset
            )),
            Ok(Some(account)) if account.normal == Side::Debit => wrong(
                "a payout would raise this account, whose normal side is debit; name one whose normal side is credit"
                    .to_owned(),
            ),
            Ok(Some(account)) if owed.is_some_and(|code| code == account.code) => {
                wrong("this account is what the peer is owed, and cannot be sent to it; name another".to_owned())
            }
            Ok(Some(account)) => Ok(account),
            Ok(None) => {
                wrong("no such account; leave `account` out to pay from your main account".to_owned())
            }
            Err(_) => Err(Submitted::StoreUnavailable),
        }
    }

    /// Decides a payout on the available balance.
    pub(crate) async fn prepare_payout(
        &self,
        command: &ResolvedCommand,
        payout: &CreatePayout,
        account: &Arc<Account>,
        expired: Option<&Claim>,
    ) -> Result<DecidedOpening, OpenResult> {
        let precondition = if account.guard.floor.is_some_and(|floor| floor >= 0) {
            Precondition::None
        } else {
            self.available_in(command, payout, account, expired).await?
        };
        // Minted after the read, so that the decision's time is no earlier than the balance it
        // rests on.
        let MintedIds { now, subject, set } = self.mint_ids().await?;
        let minted = create::PayoutIds {
            payout: PayoutId::from_i64(subject),
            now,
            chance: self.world.chance(),
            holder: self.ids.holder(),
            account: account.id,
        };
        let provider = match &payout.wanted.peer {
            None => self.gateway.binding(),
            Some(peer) => self.gateway.binding_to(peer).ok_or(OpenResult::StoreFailed)?,
        };
        let opening = create::decide(payout.clone(), provider, self.policy.lease, minted, expired)
            .ok_or(OpenResult::StoreFailed)?;
        Ok(DecidedOpening {
            set,
            now,
            work: Box::new(opening.work),
            actions: opening.ledger,
            audit: opening.audit,
            precondition,
        })
    }

    /// Checks the available balance. Returns the account as read before the balance. A taken key
    /// comes first.
    async fn available_in(
        &self,
        command: &ResolvedCommand,
        payout: &CreatePayout,
        account: &Account,
        expired: Option<&Claim>,
    ) -> Result<Precondition, OpenResult> {
        let claim = RowKey::Claim(payout.request.tenant, payout.request.claim);
        let keys = vec![claim, RowKey::Account(account.tenant, account.id)];
        let Ok(rows) = self.store.read(keys).await else { return Err(OpenResult::StoreFailed) };
        let mut rows = rows.into_iter();
        if let (Some(Some(Row::Claim(claim))), None) = (rows.next(), expired) {
            return Err(OpenResult::Taken(Box::new(claim)));
        }
        let Some(Some(Row::Account(account))) = rows.next() else { return Err(OpenResult::StoreFailed) };
        let Ok(balance) = self.balance(&account, Upto::Now).await else {
            return Err(OpenResult::StoreFailed);
        };
        if balance.view.available < i128::from(payout.wanted.amount.minor()) {
            let refusal = LedgerRefusal::InsufficientFunds;
            return Err(self.refused_by_the_ledger(command, refusal, None, expired).await);
        }
        Ok(Precondition::Account(Box::new(account)))
    }
}

fn no_such_peer(peers: &[PeerName]) -> String {
    let names: Vec<&str> = peers.iter().map(PeerName::as_str).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!(
        "no such peer is set up here, but {names}; ask the operator, or leave `peer` out to pay to a bank account"
    )
}

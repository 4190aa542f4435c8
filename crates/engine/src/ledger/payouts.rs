//! What a payout takes from the ledger: from which account, and never more than is available there.
//!
//! A floor is judged in the commit, as every move of a guarded balance. Where there is none at or above zero, what is
//! available is read, and the account's row is written anew in the set: of two payouts that looked at the same balance,
//! one is refused and looks again. Other transactions may take what an account without a floor has not; they may do so
//! before a payout, which then finds less, or after it.

use crate::engine::Inner;
use crate::open::{Before, Decided, Opened, Resolved};
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
    /// The account a payout is paid from: the one it names, or the tenant's main one of the currency.
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
                    "failed closed: the tenant's accounts could not be had, the provider was not called"
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

    /// Decides a payout on what is available.
    pub(crate) async fn prepare_payout(
        &self,
        asked: &Resolved,
        command: &CreatePayout,
        account: &Arc<Account>,
        expired: Option<&Claim>,
    ) -> Result<Decided, Opened> {
        let before = if account.guard.floor.is_some_and(|floor| floor >= 0) {
            Before::Nothing
        } else {
            self.looked_at(asked, command, account, expired).await?
        };
        // After the look: what is decided on it is no older than it.
        let (now, subject, set) = self.mint_pair().await?;
        let minted = create::PayoutIds {
            payout: PayoutId::from_i64(subject),
            now,
            chance: self.world.chance(),
            holder: self.ids.holder(),
            account: account.id,
        };
        let provider = match &command.wanted.peer {
            None => self.gateway.binding(),
            Some(peer) => self.gateway.binding_to(peer).ok_or(Opened::Failed)?,
        };
        let opening = create::decide(command.clone(), provider, self.policy.lease, minted, expired)
            .ok_or(Opened::Failed)?;
        Ok((now, Box::new(opening.work), opening.ledger, opening.audit, before, set))
    }

    /// The account as it stood before its balance was read, if that suffices. The key speaks first.
    async fn looked_at(
        &self,
        asked: &Resolved,
        command: &CreatePayout,
        account: &Account,
        expired: Option<&Claim>,
    ) -> Result<Before, Opened> {
        let claim = RowKey::Claim(command.request.tenant, command.request.claim);
        let keys = vec![claim, RowKey::Account(account.tenant, account.id)];
        let Ok(rows) = self.store.read(keys).await else { return Err(Opened::Failed) };
        let mut rows = rows.into_iter();
        if let (Some(Some(Row::Claim(claim))), None) = (rows.next(), expired) {
            return Err(Opened::Found(Box::new(claim)));
        }
        let Some(Some(Row::Account(account))) = rows.next() else { return Err(Opened::Failed) };
        let Ok(balance) = self.balance(&account, Upto::Now).await else { return Err(Opened::Failed) };
        if balance.view.available < i128::from(command.wanted.amount.minor()) {
            let refusal = LedgerRefusal::InsufficientFunds;
            return Err(self.refused_by_the_ledger(asked, refusal, None, expired).await);
        }
        Ok(Before::Account(Box::new(account)))
    }
}

fn no_such_peer(there: &[PeerName]) -> String {
    let names: Vec<&str> = there.iter().map(PeerName::as_str).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!(
        "no such peer is set up here, but {names}; ask the operator, or leave `peer` out to pay to a bank account"
    )
}

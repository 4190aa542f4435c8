//! Where charges meet the books: which account a charge credits, and the posting of a captured one.

use super::spread::Deltas;
use crate::engine::Inner;
use crate::service::Submitted;
use crate::signal::Signal;
use crate::world::World;
use counterfoil_core::ledger::chart::Role;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::payments::books::Named;
use counterfoil_core::payments::books::decide::{Known, captured};
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::payments::charge::{Charge, Status};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::Store;

/// Where the money of a captured charge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credit {
    /// To the account the charge names.
    Destination,
    /// To the chart's suspense account, because that account cannot take it: the provider has the money already.
    Suspense,
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// The account a charge will credit: the one it names, or the tenant's main one of the currency.
    pub(crate) async fn destination(&self, command: &CreateCharge) -> Result<AccountId, Submitted> {
        let (tenant, asset) = (command.request.tenant, command.wanted.amount.asset());
        let Some(named) = command.wanted.destination else {
            return match self.chart(tenant, asset, Role::Payable).await {
                Ok(account) => Ok(account.id),
                Err(why) => {
                    tracing::warn!(
                        why,
                        "failed closed: the tenant's accounts could not be had, the provider was not called"
                    );
                    self.watch.saw(Signal::FailClosed);
                    Err(Submitted::StoreUnavailable)
                }
            };
        };
        let wrong = |message: String| Err(Submitted::Invalid(vec![Flaw::new("/destination", message)]));
        match self.account(tenant, &Named::Id(named)).await {
            Ok(Some(account)) if Role::Receivable.code(asset).is_ok_and(|code| code == account.code) => {
                wrong("a charge debits this account; name another to be credited".to_owned())
            }
            Ok(Some(account)) if account.asset == asset => Ok(account.id),
            Ok(Some(account)) => wrong(format!(
                "the account counts {}, not {asset}; name an account of {asset}",
                account.asset
            )),
            Ok(None) => {
                wrong("no such account; leave `destination` out to credit your main account".to_owned())
            }
            Err(_) => Err(Submitted::StoreUnavailable),
        }
    }

    /// The posting of a charge, with what it does to guarded accounts; none if it was not captured.
    pub(crate) async fn posting(
        &self,
        charge: &Charge,
        credit: Credit,
        now: Time,
    ) -> Result<Option<(Transaction, Deltas)>, String> {
        if charge.status != Status::Succeeded {
            return Ok(None);
        }
        let (tenant, asset) = (charge.tenant, charge.order.amount.asset());
        let receivable = self.chart(tenant, asset, Role::Receivable).await?;
        let credited = match credit {
            Credit::Suspense => self.chart(tenant, asset, Role::Suspense).await?,
            Credit::Destination => {
                let named = Named::Id(charge.order.destination);
                match self.account(tenant, &named).await.map_err(|error| error.to_string())? {
                    Some(account) => account,
                    // A charge of a store from before there were accounts.
                    None => self.chart(tenant, asset, Role::Suspense).await?,
                }
            }
        };
        let transaction = captured(charge, receivable.id, credited.id, now)
            .map_err(|bad| format!("the charge's posting has bad legs: {bad:?}"))?;
        let Some(transaction) = transaction else { return Ok(None) };
        let mut known = Known::default();
        known.learn(receivable);
        known.learn(credited);
        let deltas = known.deltas(transaction.legs.as_slice());
        let deltas = deltas.ok_or_else(|| "the charge's posting does not fit its accounts".to_owned())?;
        Ok(Some((transaction, deltas)))
    }
}

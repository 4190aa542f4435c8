//! Payments in the ledger: the account a charge credits, and the entries of a saga's actions. The
//! entries are part of the set that commits the saga's transition.

use super::decisions::insert;
use super::spread::Deltas;
use crate::engine::Inner;
use crate::service::Submitted;
use crate::signal::Signal;
use crate::world::World;
use counterfoil_core::ledger::account::{Account, Side};
use counterfoil_core::ledger::chart::Role;
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::outbox::Flow;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::charge::create::{CreateCharge, NewCharge};
use counterfoil_core::payments::flow::SagaAction;
use counterfoil_core::payments::ledger::decide::{DecisionContext, add_delta, end, post_charge, reserve};
use counterfoil_core::payments::ledger::{AccountSelector, End};
use counterfoil_core::payments::{PaymentSubject, Work};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::{AccountId, HoldId, TenantId, TransactionId};
use counterfoil_core::types::peer::PeerName;
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{Change, Row, RowKey, Store};
use std::sync::Arc;

/// The account that a captured charge credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credit {
    /// The account named by the charge.
    Destination,
    /// The chart's suspense account, if the named account cannot take money that the provider
    /// already has.
    Suspense,
}

/// The ledger entries of saga actions.
#[derive(Default)]
pub(crate) struct Booking {
    pub(crate) changes: Vec<Change>,
    /// Deltas of guarded accounts.
    pub(crate) deltas: Deltas,
}

impl Booking {
    /// Adds a transaction between these accounts.
    fn post(&mut self, transaction: Transaction, accounts: [&Arc<Account>; 2]) -> Result<(), String> {
        for leg in transaction.legs.as_slice() {
            let account = accounts.into_iter().find(|account| account.id == leg.account);
            let added = account.and_then(|account| add_delta(&mut self.deltas, account, leg));
            added.ok_or_else(|| "the payment's posting does not fit its accounts".to_owned())?;
        }
        self.changes.push(insert(transaction));
        Ok(())
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    /// The account a charge will credit: the named one, or the tenant's main account of the
    /// currency. Checks the charge's wallet as well.
    pub(crate) async fn destination(&self, command: &CreateCharge) -> Result<AccountId, Submitted> {
        let (tenant, wanted) = (command.request.tenant, &command.wanted);
        let credited = match wanted.destination {
            Some(named) => self.named_for(tenant, wanted, named, "/destination").await?,
            None => match self.chart(tenant, wanted.amount.asset(), Role::Payable).await {
                Ok(account) => account.id,
                Err(why) => {
                    tracing::warn!(
                        why,
                        "failed closed: the tenant's accounts could not be read, the provider was not called"
                    );
                    self.watch.saw(Signal::FailClosed);
                    return Err(Submitted::StoreUnavailable);
                }
            },
        };
        if let Some(wallet) = wanted.wallet
            && self.named_for(tenant, wanted, wallet.account, "/wallet/account").await? == credited
        {
            let message = "the wallet is the account that is credited; name another".to_owned();
            return Err(Submitted::Invalid(vec![Flaw::new("/wallet/account", message)]));
        }
        Ok(credited)
    }

    async fn named_for(
        &self,
        tenant: TenantId,
        wanted: &NewCharge,
        named: AccountId,
        place: &str,
    ) -> Result<AccountId, Submitted> {
        let asset = wanted.amount.asset();
        let wrong = |message: String| Err(Submitted::Invalid(vec![Flaw::new(place, message)]));
        match self.account(tenant, &AccountSelector::Id(named)).await {
            Ok(Some(account)) if Role::Receivable.code(asset).is_ok_and(|code| code == account.code) => {
                wrong("a charge debits this account by itself; name another".to_owned())
            }
            Ok(Some(account)) if account.asset == asset => Ok(account.id),
            Ok(Some(account)) => wrong(format!(
                "the account counts {}, not {asset}; name an account of {asset}",
                account.asset
            )),
            Ok(None) if place == "/destination" => {
                wrong("no such account; leave `destination` out to credit your main account".to_owned())
            }
            Ok(None) => wrong("no such account; open it with POST /v1/accounts first".to_owned()),
            Err(_) => Err(Submitted::StoreUnavailable),
        }
    }

    /// The ledger entries of `actions` for this work.
    pub(crate) async fn book(
        &self,
        actions: &[SagaAction],
        work: &Work,
        credit: Credit,
        now: Time,
    ) -> Result<Booking, String> {
        let mut booking = Booking::default();
        for action in actions {
            match action {
                SagaAction::Call(_) => {}
                SagaAction::Reserve => self.reserve(&mut booking, work, now).await?,
                SagaAction::Release => self.end_reservation(&mut booking, work, End::Void, now).await?,
                SagaAction::Post => {
                    match (&work.subject, work.outbox.saga.flow) {
                        // Ending the reservation below posts these.
                        (_, Flow::Refund) | (PaymentSubject::Payout(_), _) => {}
                        (PaymentSubject::Charge(charge, _), _) => {
                            self.post_captured(&mut booking, charge, credit, now).await?;
                        }
                    }
                    self.end_reservation(&mut booking, work, End::Post { amount: None }, now).await?;
                }
            }
        }
        Ok(booking)
    }

    async fn post_captured(
        &self,
        booking: &mut Booking,
        charge: &Charge,
        credit: Credit,
        now: Time,
    ) -> Result<(), String> {
        let receivable = self.chart(charge.tenant, charge.order.amount.asset(), Role::Receivable).await?;
        let credited = match credit {
            Credit::Suspense => self.suspense(charge).await?,
            Credit::Destination => self.credited(charge).await?,
        };
        let transaction = post_charge(charge, receivable.id, credited.id, now)
            .map_err(|bad| format!("the charge's posting has bad legs: {bad:?}"))?;
        booking.post(transaction, [&receivable, &credited])
    }

    /// Reserves the work's money: a split charge in the wallet, a refund in the credited account, a
    /// payout in the account it is paid from.
    async fn reserve(&self, booking: &mut Booking, work: &Work, now: Time) -> Result<(), String> {
        let (tenant, asset) = (work.outbox.tenant, work.subject.amount().asset());
        let hold = work.outbox.hold.ok_or_else(|| "a reservation needs a hold id".to_owned())?;
        let payer =
            async |id: AccountId| self.existing(tenant, id, "the account that pays is not there").await;
        let (from, to, amount) = match &work.subject {
            PaymentSubject::Charge(charge, Some(refund)) => {
                let receivable = self.chart(tenant, asset, Role::Receivable).await?;
                (self.posted_to(charge).await?, receivable, refund.amount.minor())
            }
            PaymentSubject::Charge(charge, None) => {
                let wallet = charge.order.wallet.ok_or_else(|| "there is nothing to reserve".to_owned())?;
                (payer(wallet.account).await?, self.credited(charge).await?, wallet.amount)
            }
            PaymentSubject::Payout(payout) => {
                let to = match payout.provider.peer() {
                    None => self.chart(tenant, asset, Role::Receivable).await?,
                    Some(name) => {
                        let peer = PeerName::parse(name).map_err(|_| "the peer has no name".to_owned())?;
                        self.owed_to_peer(tenant, asset, &peer).await?
                    }
                };
                (payer(payout.order.account).await?, to, payout.order.amount.minor())
            }
        };
        let context = DecisionContext { tenant, id: TransactionId::from_i64(hold.to_i64()), now };
        let (transaction, hold) = reserve(from.id, to.id, amount, asset, context)
            .map_err(|bad| format!("the reservation has bad legs: {bad:?}"))?;
        booking.post(transaction, [&from, &to])?;
        booking.changes.push(insert(hold));
        Ok(())
    }

    /// Ends the work's reservation, if any.
    async fn end_reservation(
        &self,
        booking: &mut Booking,
        work: &Work,
        how: End,
        now: Time,
    ) -> Result<(), String> {
        let Some(id) = work.outbox.hold else { return Ok(()) };
        let hold = self.reservation(work.outbox.tenant, id).await?;
        let number = self.next_id(now).await.ok_or_else(|| "no id can be minted".to_owned())?;
        let context = DecisionContext { tenant: hold.tenant, id: TransactionId::from_i64(number), now };
        let (transaction, ended) = end(&hold, how, context)
            .map_err(|flaws| format!("the reservation cannot be ended: {flaws:?}"))?;
        let mut accounts = Vec::with_capacity(2);
        for account in [hold.from, hold.to] {
            let missing = "an account of the reservation is not there";
            accounts.push(self.existing(hold.tenant, account, missing).await?);
        }
        let [from, to]: [Arc<Account>; 2] =
            accounts.try_into().map_err(|_| "a reservation has two accounts".to_owned())?;
        booking.post(transaction, [&from, &to])?;
        booking.changes.push(Change::Replace { row: Arc::new(ended.into()), expect: hold.revision });
        Ok(())
    }

    async fn reservation(&self, tenant: TenantId, id: HoldId) -> Result<Hold, String> {
        let rows = self.store.read(vec![RowKey::Hold(tenant, id)]).await;
        let rows = rows.map_err(|error| error.to_string())?;
        match rows.into_iter().next() {
            Some(Some(Row::Hold(hold))) => Ok(hold),
            _ => Err("the payment's reservation is missing, which is a defect to report".to_owned()),
        }
    }

    /// The account a charge credits. Money that was taken must be posted, so a destination that is
    /// missing in a damaged store is replaced by suspense.
    async fn credited(&self, charge: &Charge) -> Result<Arc<Account>, String> {
        let destination = AccountSelector::Id(charge.order.destination);
        match self.account(charge.tenant, &destination).await.map_err(|error| error.to_string())? {
            Some(account) => Ok(account),
            None => self.suspense(charge).await,
        }
    }

    /// The account a captured charge was posted to: its destination or suspense. A refund takes the
    /// money from there.
    async fn posted_to(&self, charge: &Charge) -> Result<Arc<Account>, String> {
        let posting = RowKey::Transaction(charge.tenant, TransactionId::from_i64(charge.id.to_i64()));
        let rows = self.store.read(vec![posting]).await.map_err(|error| error.to_string())?;
        let Some(Some(Row::Transaction(posting))) = rows.into_iter().next() else {
            return Err("the charge's posting is not there, which is a defect to report".to_owned());
        };
        let credited = posting.legs.as_slice().iter().find(|leg| leg.side == Side::Credit);
        let credited = credited.ok_or_else(|| "the charge's posting credits no account".to_owned())?;
        self.existing(charge.tenant, credited.account, "the account the charge was posted to is not there")
            .await
    }

    async fn existing(&self, tenant: TenantId, id: AccountId, missing: &str) -> Result<Arc<Account>, String> {
        let account = self.account(tenant, &AccountSelector::Id(id)).await;
        account.map_err(|error| error.to_string())?.ok_or_else(|| missing.to_owned())
    }

    async fn suspense(&self, charge: &Charge) -> Result<Arc<Account>, String> {
        self.chart(charge.tenant, charge.order.amount.asset(), Role::Suspense).await
    }
}

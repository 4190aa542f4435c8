//! What each act would do: decided from what is known, to be judged by the store in the commit.

use super::spread::Deltas;
use crate::engine::Inner;
use crate::present::LedgerReply;
use crate::world::World;
use counterfoil_core::audit::AuditKind;
use counterfoil_core::idempotency::claim::Resource;
use counterfoil_core::idempotency::reply::Reply;
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::chart::Role;
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::ledger::transaction::{Reversal, Transaction, TransactionKind};
use counterfoil_core::payments::ledger::decide::{self, DecisionContext, Exchange};
use counterfoil_core::payments::ledger::{AccountSelector, Convert, End, LedgerCommand, LedgerRefusal, Open};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::{AccountId, HoldId, SubjectId, TransactionId};
use counterfoil_core::types::time::Time;
use counterfoil_gateway::Gateway;
use counterfoil_store::{Change, ReadError, Row, RowKey, Store};
use std::sync::Arc;

/// What a request would do, if the store's judge agrees.
pub(super) struct Draft {
    pub(super) makes: Resource,
    /// Minted for this request.
    pub(super) subject: SubjectId,
    /// Whose history it belongs to.
    pub(super) about: SubjectId,
    pub(super) changes: Vec<Change>,
    pub(super) deltas: Deltas,
    pub(super) reply: Reply,
    pub(super) audited: AuditKind,
    pub(super) detail: String,
}

/// What is decided about a request.
pub(super) enum Decision {
    /// Try to do it.
    Do(Box<Draft>),
    /// Refuse it for good.
    Refuse(LedgerRefusal),
    /// It does not fit what is there.
    Invalid(Vec<Flaw>),
    /// What it is about is not there.
    NotFound,
}

/// Why nothing is decided: the store or the mint cannot be asked.
pub(crate) struct Trouble(pub(crate) String);

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Trouble {
        Trouble(error.to_string())
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    pub(super) async fn decide(
        &self,
        request: &Request,
        act: &LedgerCommand,
        now: Time,
    ) -> Result<Decision, Trouble> {
        let id = self.next_id(now).await.ok_or_else(|| Trouble("no id can be minted".into()))?;
        let frame = DecisionContext { tenant: request.tenant, id: TransactionId::from_i64(id), now };
        match act {
            LedgerCommand::Open(open) => self.decide_open(request, open, frame).await,
            LedgerCommand::Define { asset, exponent } => Ok(self.define(
                request,
                AssetDefinition {
                    tenant: request.tenant,
                    asset: *asset,
                    exponent: *exponent,
                    created_at: now,
                },
                frame,
            )),
            LedgerCommand::Reshard { account, shards } => {
                self.decide_reshard(request, account, *shards, frame).await
            }
            LedgerCommand::Transfer(order) => {
                let known = self.known(request.tenant, [&order.from, &order.to].into_iter()).await?;
                let (transaction, hold) = match decide::transfer(order.clone(), &known, frame) {
                    Ok(decided) => decided,
                    Err(flaws) => return Ok(Decision::Invalid(flaws)),
                };
                let reply = match &hold {
                    None => self.present.ledger(LedgerReply::Transferred(&transaction), request.id),
                    Some(hold) => self.present.ledger(LedgerReply::Held(hold), request.id),
                };
                let deltas = deltas(&known, &transaction)?;
                let mut draft = Draft::posting(request, Resource::Transfer, transaction, deltas, reply);
                draft.changes.extend(hold.map(insert));
                Ok(Decision::Do(Box::new(draft)))
            }
            LedgerCommand::End { hold, how } => self.decide_end(request, *hold, *how, frame).await,
            LedgerCommand::Post(order) => {
                let known = self.known(request.tenant, order.entries.iter().map(|leg| &leg.account)).await?;
                let transaction = match decide::post(order.clone(), &known, frame) {
                    Ok(transaction) => transaction,
                    Err(flaws) => return Ok(Decision::Invalid(flaws)),
                };
                let deltas = deltas(&known, &transaction)?;
                Ok(self.posted(request, transaction, deltas))
            }
            LedgerCommand::Reverse { transaction } => self.decide_reverse(request, *transaction, frame).await,
            LedgerCommand::Convert(order) => self.decide_convert(request, order, frame).await,
        }
    }

    async fn decide_open(
        &self,
        request: &Request,
        open: &Open,
        frame: DecisionContext,
    ) -> Result<Decision, Trouble> {
        let mut flaws = decide::open_flaws(open);
        if self.exponent(request.tenant, open.asset).await?.is_none() {
            let message =
                "this is neither a currency nor an asset of yours; define it with POST /v1/assets first";
            flaws.push(Flaw::new("/asset", message));
        }
        if !flaws.is_empty() {
            return Ok(Decision::Invalid(flaws));
        }
        let id = AccountId::from_i64(frame.id.to_i64());
        let (account, name, balance) = decide::open(open.clone(), id, request.tenant, frame.now);
        let reply = self.present.ledger(LedgerReply::Opened(&account), request.id);
        let mut changes = vec![insert(name), insert(account)];
        changes.extend(balance.map(insert));
        Ok(Decision::Do(Box::new(Draft {
            makes: Resource::Account,
            subject: id.into(),
            about: id.into(),
            changes,
            deltas: Vec::new(),
            reply,
            audited: AuditKind::Opened,
            detail: format!("request=req_{} kind=account", request.id),
        })))
    }

    fn define(&self, request: &Request, definition: AssetDefinition, frame: DecisionContext) -> Decision {
        if definition.asset.currency_exponent().is_some() {
            return Decision::Refuse(LedgerRefusal::AssetExists);
        }
        Decision::Do(Box::new(Draft {
            makes: Resource::Asset,
            subject: frame.id.into(),
            about: frame.id.into(),
            changes: vec![insert(definition)],
            deltas: Vec::new(),
            reply: self.present.ledger(LedgerReply::Defined(&definition), request.id),
            audited: AuditKind::Opened,
            detail: format!("request=req_{} kind=asset code={}", request.id, definition.asset),
        }))
    }

    async fn decide_reshard(
        &self,
        request: &Request,
        named: &AccountSelector,
        shards: u16,
        frame: DecisionContext,
    ) -> Result<Decision, Trouble> {
        let Some(account) = self.fresh_account(request.tenant, named).await? else {
            return Ok(Decision::NotFound);
        };
        if let Some(flaw) = decide::spread_flaw(account.guard, shards) {
            return Ok(Decision::Invalid(vec![flaw]));
        }
        let next = decide::reshard(&account, shards);
        let reply = self.present.ledger(LedgerReply::Resharded(&next), request.id);
        let detail = format!("request=req_{} kind=shards from={} to={shards}", request.id, account.shards);
        Ok(Decision::Do(Box::new(Draft {
            makes: Resource::Shards,
            subject: frame.id.into(),
            about: account.id.into(),
            changes: vec![Change::Replace { row: Arc::new(next.into()), expect: account.revision }],
            deltas: Vec::new(),
            reply,
            audited: AuditKind::Opened,
            detail,
        })))
    }

    async fn decide_end(
        &self,
        request: &Request,
        hold: HoldId,
        how: End,
        frame: DecisionContext,
    ) -> Result<Decision, Trouble> {
        let posted = RowKey::Transaction(request.tenant, TransactionId::from_i64(hold.to_i64()));
        let rows = self.store.read(vec![RowKey::Hold(request.tenant, hold), posted]).await?;
        let hold = match rows.into_iter().flatten().next() {
            // What a payment reserved for itself, the payment ends.
            Some(Row::Hold(hold)) if hold.tenant == request.tenant && !hold.is_a_payments() => hold,
            // A transfer that was never held was posted at once.
            Some(Row::Transaction(transaction))
                if transaction.tenant == request.tenant && transaction.kind == TransactionKind::Transfer =>
            {
                return Ok(Decision::Refuse(LedgerRefusal::HoldEnded));
            }
            _ => return Ok(Decision::NotFound),
        };
        if !hold.is_open(frame.now) {
            return Ok(Decision::Refuse(LedgerRefusal::HoldEnded));
        }
        let (transaction, ended) = match decide::end(&hold, how, frame) {
            Ok(decided) => decided,
            Err(flaws) => return Ok(Decision::Invalid(flaws)),
        };
        let draft = self.ending(request, &hold, transaction, ended).await?;
        Ok(Decision::Do(Box::new(draft)))
    }

    async fn ending(
        &self,
        request: &Request,
        hold: &Hold,
        transaction: Transaction,
        ended: Hold,
    ) -> Result<Draft, Trouble> {
        let reply = self.present.ledger(LedgerReply::Ended(&ended), request.id);
        let deltas = self.deltas_of_hold(hold, &transaction).await?;
        let mut draft = Draft::posting(request, Resource::Transaction, transaction, deltas, reply);
        draft.about = hold.id.into();
        draft.changes.push(Change::Replace { row: Arc::new(ended.into()), expect: hold.revision });
        Ok(draft)
    }

    /// What the end of a hold does to guarded accounts.
    pub(crate) async fn deltas_of_hold(
        &self,
        hold: &Hold,
        transaction: &Transaction,
    ) -> Result<Deltas, Trouble> {
        let names = [AccountSelector::Id(hold.from), AccountSelector::Id(hold.to)];
        let known = self.known(hold.tenant, names.iter()).await?;
        deltas(&known, transaction)
    }

    async fn decide_reverse(
        &self,
        request: &Request,
        original: TransactionId,
        frame: DecisionContext,
    ) -> Result<Decision, Trouble> {
        let tenant = request.tenant;
        let keys = vec![RowKey::Transaction(tenant, original), RowKey::Reversal(tenant, original)];
        let rows = self.store.read(keys).await?;
        let mut rows = rows.into_iter().flatten();
        let original = match rows.next() {
            Some(Row::Transaction(transaction)) if transaction.tenant == request.tenant => transaction,
            _ => return Ok(Decision::NotFound),
        };
        if !decide::is_reversible(original.kind) {
            return Ok(Decision::Refuse(LedgerRefusal::NotReversible));
        }
        if rows.next().is_some() {
            return Ok(Decision::Refuse(LedgerRefusal::AlreadyReversed));
        }
        let transaction = decide::reverse(&original, frame);
        let names: Vec<AccountSelector> =
            transaction.legs.as_slice().iter().map(|leg| AccountSelector::Id(leg.account)).collect();
        let known = self.known(request.tenant, names.iter()).await?;
        let reply = self.present.ledger(LedgerReply::Posted(&transaction), request.id);
        let deltas = deltas(&known, &transaction)?;
        let reversal = Reversal { tenant, original: original.id, by: transaction.id };
        let mut draft = Draft::posting(request, Resource::Transaction, transaction, deltas, reply);
        draft.changes.insert(0, insert(reversal));
        Ok(Decision::Do(Box::new(draft)))
    }

    async fn decide_convert(
        &self,
        request: &Request,
        order: &Convert,
        frame: DecisionContext,
    ) -> Result<Decision, Trouble> {
        let tenant = request.tenant;
        let mut known = self.known(tenant, [&order.from, &order.to].into_iter()).await?;
        let absent =
            |place| Flaw::new(place, "there is no such account; open it with POST /v1/accounts first");
        let (from, to) = match (known.named(&order.from, tenant), known.named(&order.to, tenant)) {
            (Some(from), Some(to)) => (Arc::clone(from), Arc::clone(to)),
            (None, Some(_)) => return Ok(Decision::Invalid(vec![absent("/from")])),
            (Some(_), None) => return Ok(Decision::Invalid(vec![absent("/to")])),
            (None, None) => return Ok(Decision::Invalid(vec![absent("/from"), absent("/to")])),
        };
        let from_exponent = self.exponent(tenant, from.asset).await?.unwrap_or(0);
        let to_exponent = self.exponent(tenant, to.asset).await?.unwrap_or(0);
        let converted = match decide::price(order, &from, &to, (from_exponent, to_exponent)) {
            Ok(converted) => converted,
            Err(flaws) => return Ok(Decision::Invalid(flaws)),
        };
        let bought = self.chart(tenant, from.asset, Role::Exchange).await.map_err(Trouble)?;
        let sold = self.chart(tenant, to.asset, Role::Exchange).await.map_err(Trouble)?;
        let rounding = self.chart(tenant, to.asset, Role::Rounding).await.map_err(Trouble)?;
        let chart = Exchange { bought: bought.id, sold: sold.id, rounding: rounding.id };
        let transaction = match decide::exchange(order.clone(), &from, &to, converted, chart, frame) {
            Ok(transaction) => transaction,
            Err(flaws) => return Ok(Decision::Invalid(flaws)),
        };
        for account in [bought, sold, rounding] {
            known.learn(account);
        }
        let deltas = deltas(&known, &transaction)?;
        Ok(self.posted(request, transaction, deltas))
    }

    fn posted(&self, request: &Request, transaction: Transaction, deltas: Deltas) -> Decision {
        let reply = self.present.ledger(LedgerReply::Posted(&transaction), request.id);
        Decision::Do(Box::new(Draft::posting(request, Resource::Transaction, transaction, deltas, reply)))
    }
}

impl Draft {
    fn posting(
        request: &Request,
        makes: Resource,
        transaction: Transaction,
        deltas: Deltas,
        reply: Reply,
    ) -> Draft {
        Draft {
            makes,
            subject: transaction.id.into(),
            about: transaction.id.into(),
            detail: format!("request=req_{} kind={}", request.id, transaction.kind.name()),
            changes: vec![insert(transaction)],
            deltas,
            reply,
            audited: AuditKind::Posted,
        }
    }
}

pub(super) fn deltas(known: &decide::KnownAccounts, transaction: &Transaction) -> Result<Deltas, Trouble> {
    let deltas = known.deltas(transaction.legs.as_slice());
    deltas.ok_or_else(|| Trouble("an account of the transaction is not known".into()))
}

pub(super) fn insert(row: impl Into<Row>) -> Change {
    Change::Insert(Arc::new(row.into()))
}

//! Decisions on ledger commands, from rows read before. The store judges them again in the commit.

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

/// The changes of a ledger command, if the store's judge agrees.
pub(super) struct Draft {
    pub(super) makes: Resource,
    /// The new id minted for this request.
    pub(super) subject: SubjectId,
    /// The subject whose history gets the audit record.
    pub(super) about: SubjectId,
    pub(super) changes: Vec<Change>,
    pub(super) deltas: Deltas,
    pub(super) reply: Reply,
    pub(super) audited: AuditKind,
    pub(super) detail: String,
}

/// The decision on a ledger command.
pub(super) enum Decision {
    /// Changes to commit.
    Commit(Box<Draft>),
    /// A refusal to be stored.
    Refuse(LedgerRefusal),
    /// The request does not fit the existing rows. Nothing is stored.
    Invalid(Vec<Flaw>),
    /// The request names something that does not exist. Nothing is stored.
    NotFound,
}

/// The reason why nothing could be decided: the store or the mint failed.
pub(crate) struct DecisionError(pub(crate) String);

impl From<ReadError> for DecisionError {
    fn from(error: ReadError) -> DecisionError {
        DecisionError(error.to_string())
    }
}

impl<S: Store, G: Gateway, W: World> Inner<S, G, W> {
    pub(super) async fn decide(
        &self,
        request: &Request,
        command: &LedgerCommand,
        now: Time,
    ) -> Result<Decision, DecisionError> {
        let id = self.next_id(now).await.ok_or_else(|| DecisionError("no id can be minted".into()))?;
        let context = DecisionContext { tenant: request.tenant, id: TransactionId::from_i64(id), now };
        match command {
            LedgerCommand::Open(open) => self.decide_open(request, open, context).await,
            LedgerCommand::Define { asset, exponent } => Ok(self.define(
                request,
                AssetDefinition {
                    tenant: request.tenant,
                    asset: *asset,
                    exponent: *exponent,
                    created_at: now,
                },
                context,
            )),
            LedgerCommand::Reshard { account, shards } => {
                self.decide_reshard(request, account, *shards, context).await
            }
            LedgerCommand::Transfer(order) => {
                let known = self.known_accounts(request.tenant, [&order.from, &order.to].into_iter()).await?;
                let (transaction, hold) = match decide::transfer(order.clone(), &known, context) {
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
                Ok(Decision::Commit(Box::new(draft)))
            }
            LedgerCommand::End { hold, how } => self.decide_end(request, *hold, *how, context).await,
            LedgerCommand::Post(order) => {
                let known =
                    self.known_accounts(request.tenant, order.entries.iter().map(|leg| &leg.account)).await?;
                let transaction = match decide::post(order.clone(), &known, context) {
                    Ok(transaction) => transaction,
                    Err(flaws) => return Ok(Decision::Invalid(flaws)),
                };
                let deltas = deltas(&known, &transaction)?;
                Ok(self.posted(request, transaction, deltas))
            }
            LedgerCommand::Reverse { transaction } => {
                self.decide_reverse(request, *transaction, context).await
            }
            LedgerCommand::Convert(order) => self.decide_convert(request, order, context).await,
        }
    }

    async fn decide_open(
        &self,
        request: &Request,
        open: &Open,
        context: DecisionContext,
    ) -> Result<Decision, DecisionError> {
        let mut flaws = decide::open_flaws(open);
        if self.exponent(request.tenant, open.asset).await?.is_none() {
            let message =
                "this is neither a currency nor an asset of yours; define it with POST /v1/assets first";
            flaws.push(Flaw::new("/asset", message));
        }
        if !flaws.is_empty() {
            return Ok(Decision::Invalid(flaws));
        }
        let id = AccountId::from_i64(context.id.to_i64());
        let (account, name, balance) = decide::open(open.clone(), id, request.tenant, context.now);
        let reply = self.present.ledger(LedgerReply::Opened(&account), request.id);
        let mut changes = vec![insert(name), insert(account)];
        changes.extend(balance.map(insert));
        Ok(Decision::Commit(Box::new(Draft {
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

    fn define(&self, request: &Request, definition: AssetDefinition, context: DecisionContext) -> Decision {
        if definition.asset.currency_exponent().is_some() {
            return Decision::Refuse(LedgerRefusal::AssetExists);
        }
        Decision::Commit(Box::new(Draft {
            makes: Resource::Asset,
            subject: context.id.into(),
            about: context.id.into(),
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
        context: DecisionContext,
    ) -> Result<Decision, DecisionError> {
        let Some(account) = self.fresh_account(request.tenant, named).await? else {
            return Ok(Decision::NotFound);
        };
        if let Some(flaw) = decide::spread_flaw(account.guard, shards) {
            return Ok(Decision::Invalid(vec![flaw]));
        }
        let next = decide::reshard(&account, shards);
        let reply = self.present.ledger(LedgerReply::Resharded(&next), request.id);
        let detail = format!("request=req_{} kind=shards from={} to={shards}", request.id, account.shards);
        Ok(Decision::Commit(Box::new(Draft {
            makes: Resource::Shards,
            subject: context.id.into(),
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
        context: DecisionContext,
    ) -> Result<Decision, DecisionError> {
        let posted = RowKey::Transaction(request.tenant, TransactionId::from_i64(hold.to_i64()));
        let rows = self.store.read(vec![RowKey::Hold(request.tenant, hold), posted]).await?;
        let hold = match rows.into_iter().flatten().next() {
            // A payment ends its own reservations.
            Some(Row::Hold(hold)) if hold.tenant == request.tenant && !hold.is_a_payments() => hold,
            // A transfer without a hold was posted at once.
            Some(Row::Transaction(transaction))
                if transaction.tenant == request.tenant && transaction.kind == TransactionKind::Transfer =>
            {
                return Ok(Decision::Refuse(LedgerRefusal::HoldEnded));
            }
            _ => return Ok(Decision::NotFound),
        };
        if !hold.is_open(context.now) {
            return Ok(Decision::Refuse(LedgerRefusal::HoldEnded));
        }
        let (transaction, ended) = match decide::end(&hold, how, context) {
            Ok(decided) => decided,
            Err(flaws) => return Ok(Decision::Invalid(flaws)),
        };
        let draft = self.ending(request, &hold, transaction, ended).await?;
        Ok(Decision::Commit(Box::new(draft)))
    }

    async fn ending(
        &self,
        request: &Request,
        hold: &Hold,
        transaction: Transaction,
        ended: Hold,
    ) -> Result<Draft, DecisionError> {
        let reply = self.present.ledger(LedgerReply::Ended(&ended), request.id);
        let deltas = self.deltas_of_hold(hold, &transaction).await?;
        let mut draft = Draft::posting(request, Resource::Transaction, transaction, deltas, reply);
        draft.about = hold.id.into();
        draft.changes.push(Change::Replace { row: Arc::new(ended.into()), expect: hold.revision });
        Ok(draft)
    }

    /// The deltas of a hold's end on guarded accounts.
    pub(crate) async fn deltas_of_hold(
        &self,
        hold: &Hold,
        transaction: &Transaction,
    ) -> Result<Deltas, DecisionError> {
        let names = [AccountSelector::Id(hold.from), AccountSelector::Id(hold.to)];
        let known = self.known_accounts(hold.tenant, names.iter()).await?;
        deltas(&known, transaction)
    }

    async fn decide_reverse(
        &self,
        request: &Request,
        original: TransactionId,
        context: DecisionContext,
    ) -> Result<Decision, DecisionError> {
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
        let transaction = decide::reverse(&original, context);
        let names: Vec<AccountSelector> =
            transaction.legs.as_slice().iter().map(|leg| AccountSelector::Id(leg.account)).collect();
        let known = self.known_accounts(request.tenant, names.iter()).await?;
        let reply = self.present.ledger(LedgerReply::Posted(&transaction), request.id);
        let deltas = deltas(&known, &transaction)?;
        let reversal = Reversal { tenant, original: original.id, by: transaction.id };
        let mut draft = Draft::posting(request, Resource::Transaction, transaction, deltas, reply);
        draft.changes.insert(0, insert(reversal));
        Ok(Decision::Commit(Box::new(draft)))
    }

    async fn decide_convert(
        &self,
        request: &Request,
        order: &Convert,
        context: DecisionContext,
    ) -> Result<Decision, DecisionError> {
        let tenant = request.tenant;
        let mut known = self.known_accounts(tenant, [&order.from, &order.to].into_iter()).await?;
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
        let bought = self.chart(tenant, from.asset, Role::Exchange).await.map_err(DecisionError)?;
        let sold = self.chart(tenant, to.asset, Role::Exchange).await.map_err(DecisionError)?;
        let rounding = self.chart(tenant, to.asset, Role::Rounding).await.map_err(DecisionError)?;
        let chart = Exchange { bought: bought.id, sold: sold.id, rounding: rounding.id };
        let transaction = match decide::exchange(order.clone(), &from, &to, converted, chart, context) {
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
        Decision::Commit(Box::new(Draft::posting(request, Resource::Transaction, transaction, deltas, reply)))
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

pub(super) fn deltas(
    known: &decide::KnownAccounts,
    transaction: &Transaction,
) -> Result<Deltas, DecisionError> {
    let deltas = known.deltas(transaction.legs.as_slice());
    deltas.ok_or_else(|| DecisionError("an account of the transaction is not known".into()))
}

pub(super) fn insert(row: impl Into<Row>) -> Change {
    Change::Insert(Arc::new(row.into()))
}

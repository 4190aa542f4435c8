//! Decisions about the ledger: from a client's request and the known accounts to transactions and
//! holds. The store's judge decides in the commit whether the balances allow them.

use super::{AccountSelector, Convert, End, HoldTerms, Metadata, Open, Post, TransferOrder};
use crate::ledger::account::{Account, AccountCode, AccountName, Guard, Side};
use crate::ledger::balance::{Balance, Delta};
use crate::ledger::chart::{PREFIX, Role, peer_code};
use crate::ledger::convert::{ConvertError, Converted, convert};
use crate::ledger::hold::{Hold, HoldState};
use crate::ledger::transaction::{BadLegs, Layer, Leg, Legs, Transaction, TransactionKind};
use crate::payments::charge::Charge;
use crate::types::asset::Asset;
use crate::types::flaw::Flaw;
use crate::types::id::{AccountId, HoldId, TenantId, TransactionId};
use crate::types::limits::{AMOUNT_MAX, LEGS_MAX};
use crate::types::peer::PeerName;
use crate::types::time::{Span, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The default lifetime of a hold: seven days, like card authorizations.
pub const HOLD_DEFAULT: Span = Span::from_ms(7 * 86_400_000);

/// The existing accounts among those named by a request.
#[derive(Clone, Debug, Default)]
pub struct KnownAccounts {
    accounts: BTreeMap<AccountId, Arc<Account>>,
    codes: BTreeMap<String, AccountId>,
}

impl KnownAccounts {
    /// Adds an account.
    pub fn learn(&mut self, account: Arc<Account>) {
        self.codes.insert(account.code.as_str().to_owned(), account.id);
        self.accounts.insert(account.id, account);
    }

    pub fn get(&self, id: AccountId) -> Option<&Arc<Account>> {
        self.accounts.get(&id)
    }

    /// The account of a selector, if the tenant owns it.
    pub fn named(&self, named: &AccountSelector, tenant: TenantId) -> Option<&Arc<Account>> {
        let id = match named {
            AccountSelector::Id(id) => id,
            AccountSelector::Code(code) => self.codes.get(code.as_str())?,
        };
        self.accounts.get(id).filter(|account| account.tenant == tenant)
    }

    /// The effect of `legs` on guarded accounts, one delta per account. `None` if an account is
    /// unknown or a sum overflows.
    pub fn deltas(&self, legs: &[Leg]) -> Option<Vec<(Arc<Account>, Delta)>> {
        let mut deltas = Vec::new();
        for leg in legs {
            add_delta(&mut deltas, self.accounts.get(&leg.account)?, leg)?;
        }
        Some(deltas)
    }
}

/// Adds a leg to the delta of its account, if the account is guarded. `None` if the sum overflows.
pub fn add_delta(deltas: &mut Vec<(Arc<Account>, Delta)>, account: &Arc<Account>, leg: &Leg) -> Option<()> {
    if account.guard.is_set() {
        let delta = Delta::of(leg, account.normal);
        match deltas.iter_mut().find(|(known, _)| known.id == account.id) {
            Some((_, sum)) => *sum = sum.and(delta)?,
            None => deltas.push((Arc::clone(account), delta)),
        }
    }
    Some(())
}

/// The tenant, id and time of a decision.
#[derive(Clone, Copy, Debug)]
pub struct DecisionContext {
    pub tenant: TenantId,
    /// The id minted for the new transaction or hold.
    pub id: TransactionId,
    pub now: Time,
}

impl DecisionContext {
    fn transaction(self, kind: TransactionKind, legs: Legs, metadata: Metadata) -> Transaction {
        Transaction { id: self.id, tenant: self.tenant, kind, legs, metadata, at: self.now }
    }
}

/// Opens an account: the account, its code, and, for a guarded account, the first balance.
pub fn open(
    open: Open,
    id: AccountId,
    tenant: TenantId,
    now: Time,
) -> (Account, AccountName, Option<Balance>) {
    let name = AccountName { tenant, code: open.code.clone(), account: id };
    let balance = open.guard.is_set().then(|| Balance {
        floor: open.guard.floor,
        cap: open.guard.cap,
        revision: 1,
        ..Balance::empty(tenant, id, 0, open.guard.guarded())
    });
    let account = Account {
        id,
        tenant,
        code: open.code,
        asset: open.asset,
        normal: open.normal,
        guard: open.guard,
        shards: open.shards,
        widest: open.shards,
        metadata: open.metadata,
        created_at: now,
        revision: 1,
    };
    (account, name, balance)
}

/// The flaws of an account to open.
pub fn open_flaws(open: &Open) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    if open.code.as_str().starts_with(PREFIX) {
        flaws.push(Flaw::new(
            "/code",
            format!("codes that begin with `{PREFIX}` belong to the chart; choose another"),
        ));
    }
    if let (Some(floor), Some(cap)) = (open.guard.floor, open.guard.cap)
        && floor > cap
    {
        flaws.push(Flaw::new("/cap", "`cap` must not be below `floor`"));
    }
    flaws.extend(spread_flaw(open.guard, open.shards));
    flaws
}

/// The flaw of a number of shards, if any. An account beyond a bound from the start cannot be
/// sharded: the first shard would lack a part of the bound while the rest seem free to give.
pub fn spread_flaw(guard: Guard, shards: u16) -> Option<Flaw> {
    let beyond = guard.floor.is_some_and(|floor| floor > 0) || guard.cap.is_some_and(|cap| cap < 0);
    (beyond && shards > 1).then(|| {
        Flaw::new("/shards", "an account with a floor above zero or a cap below zero has one shard; send 1")
    })
}

/// Changes the number of shards of an account.
pub fn reshard(account: &Account, shards: u16) -> Account {
    Account {
        shards,
        widest: account.widest.max(shards),
        revision: account.revision.saturating_add(1),
        ..account.clone()
    }
}

/// Decides a transfer, or the hold in its place.
pub fn transfer(
    order: TransferOrder,
    known: &KnownAccounts,
    context: DecisionContext,
) -> Result<(Transaction, Option<Hold>), Vec<Flaw>> {
    let mut flaws = Vec::new();
    let from =
        resolve_account(known, context.tenant, &order.from, order.asset, ("/from", "/currency"), &mut flaws);
    let to = resolve_account(known, context.tenant, &order.to, order.asset, ("/to", "/currency"), &mut flaws);
    let (Some(from), Some(to)) = (from, to) else { return Err(flaws) };
    if from == to {
        flaws.push(Flaw::new("/to", "`to` is the account the money comes from; name another"));
    }
    let default = context.now.plus(HOLD_DEFAULT);
    let expires_at = order.hold.map(|HoldTerms { expires_at }| expires_at.unwrap_or(default));
    if expires_at.is_some_and(|at| at <= context.now) {
        flaws.push(Flaw::new("/expires_at", "`expires_at` has passed; name a time to come"));
    }
    if !flaws.is_empty() {
        return Err(flaws);
    }
    let layer = if expires_at.is_some() { Layer::Pending } else { Layer::Posted };
    let legs = Legs::transfer(from, to, order.amount, order.asset, layer)
        .map_err(|bad| vec![Flaw::new("/amount", sentence(bad))])?;
    let Some(expires_at) = expires_at else {
        return Ok((context.transaction(TransactionKind::Transfer, legs, order.metadata), None));
    };
    let (transaction, hold) =
        new_hold(from, to, (order.amount, order.asset), expires_at, legs, order.metadata, context);
    Ok((transaction, Some(hold)))
}

fn new_hold(
    from: AccountId,
    to: AccountId,
    (amount, asset): (i64, Asset),
    expires_at: Time,
    legs: Legs,
    metadata: Metadata,
    context: DecisionContext,
) -> (Transaction, Hold) {
    let id = HoldId::from_i64(context.id.to_i64());
    let hold = Hold {
        id,
        tenant: context.tenant,
        from,
        to,
        amount,
        asset,
        expires_at,
        state: HoldState::Pending,
        metadata,
        created_at: context.now,
        revision: 1,
    };
    (context.transaction(TransactionKind::Held(id), legs, Metadata::new()), hold)
}

/// Ends a hold at the client's request. The caller has checked that the hold is open.
pub fn end(hold: &Hold, how: End, context: DecisionContext) -> Result<(Transaction, Hold), Vec<Flaw>> {
    match how {
        End::Void => Ok(release_hold(
            hold,
            TransactionKind::HoldVoided(hold.id),
            HoldState::Voided { by: context.id },
            context,
        )),
        End::Post { amount } => {
            let amount = amount.unwrap_or(hold.amount);
            if !(1..=hold.amount).contains(&amount) {
                let message = format!("`amount` must be between 1 and the {} that are held", hold.amount);
                return Err(vec![Flaw::new("/amount", message)]);
            }
            let mut legs = released_legs(hold);
            legs.extend(leg_pair(hold, Layer::Posted, amount));
            let state = HoldState::Posted { amount, by: context.id };
            Ok((
                context.transaction(
                    TransactionKind::HoldPosted(hold.id),
                    balanced_by_construction(legs, hold),
                    Metadata::new(),
                ),
                hold.ended(state),
            ))
        }
    }
}

/// Ends a hold whose deadline has passed.
pub fn lapse(hold: &Hold, context: DecisionContext) -> (Transaction, Hold) {
    release_hold(hold, TransactionKind::HoldLapsed(hold.id), HoldState::Lapsed { by: context.id }, context)
}

fn release_hold(
    hold: &Hold,
    kind: TransactionKind,
    state: HoldState,
    context: DecisionContext,
) -> (Transaction, Hold) {
    (
        context.transaction(kind, balanced_by_construction(released_legs(hold), hold), Metadata::new()),
        hold.ended(state),
    )
}

fn released_legs(hold: &Hold) -> Vec<Leg> {
    leg_pair(hold, Layer::Released, hold.amount).to_vec()
}

fn leg_pair(hold: &Hold, layer: Layer, amount: i64) -> [Leg; 2] {
    let leg = |account, side| Leg { account, side, layer, amount, asset: hold.asset };
    [leg(hold.from, Side::Debit), leg(hold.to, Side::Credit)]
}

/// Pairs of equal legs always balance, so the fallback, the hold's own legs, is never used.
fn balanced_by_construction(legs: Vec<Leg>, hold: &Hold) -> Legs {
    Legs::balanced(legs).unwrap_or_else(|_| Legs::released_pair(hold.from, hold.to, hold.amount, hold.asset))
}

/// Posts the client's legs.
pub fn post(order: Post, known: &KnownAccounts, context: DecisionContext) -> Result<Transaction, Vec<Flaw>> {
    let mut flaws = Vec::new();
    let mut legs = Vec::with_capacity(order.entries.len());
    for (index, entry) in order.entries.iter().enumerate() {
        let places = (format!("/entries/{index}/account"), format!("/entries/{index}/asset"));
        let places = (places.0.as_str(), places.1.as_str());
        if let Some(account) =
            resolve_account(known, context.tenant, &entry.account, entry.asset, places, &mut flaws)
        {
            legs.push(Leg {
                account,
                side: entry.side,
                layer: Layer::Posted,
                amount: entry.amount,
                asset: entry.asset,
            });
        }
    }
    if !flaws.is_empty() {
        return Err(flaws);
    }
    let legs = Legs::balanced(legs).map_err(|bad| {
        let place = match bad {
            BadLegs::Amount(index) => format!("/entries/{index}/amount"),
            BadLegs::Twice(index) => format!("/entries/{index}/account"),
            BadLegs::TooFew | BadLegs::TooMany | BadLegs::Unbalanced(_) => "/entries".to_owned(),
        };
        vec![Flaw::new(place, sentence(bad))]
    })?;
    Ok(context.transaction(TransactionKind::General, legs, order.metadata))
}

/// Whether a client may reverse a transaction of that kind.
pub const fn is_reversible(kind: TransactionKind) -> bool {
    match kind {
        TransactionKind::Transfer
        | TransactionKind::General
        | TransactionKind::Conversion
        | TransactionKind::HoldPosted(_) => true,
        // A captured charge is returned by a refund, which also moves the money at the provider.
        TransactionKind::Charge(_)
        | TransactionKind::Reversal(_)
        | TransactionKind::Held(_)
        | TransactionKind::HoldVoided(_)
        | TransactionKind::HoldLapsed(_) => false,
    }
}

/// The reversal of `original`.
pub fn reverse(original: &Transaction, context: DecisionContext) -> Transaction {
    context.transaction(
        TransactionKind::Reversal(original.id),
        original.legs.posted().reversed(),
        Metadata::new(),
    )
}

/// Prices a conversion; `exponents` are the decimals of the two assets. Pricing needs no accounts
/// of the chart, so a senseless order is refused before any are opened.
pub fn price(
    order: &Convert,
    from: &Account,
    to: &Account,
    exponents: (u8, u8),
) -> Result<Converted, Vec<Flaw>> {
    let wrong = |place: &str, message: &str| vec![Flaw::new(place, message)];
    if from.asset == to.asset {
        return Err(wrong("/to", "both accounts count the same asset; use a transfer"));
    }
    convert(order.amount, exponents.0, exponents.1, &order.rate, order.rounding).map_err(
        |error| match error {
            ConvertError::Zero => wrong("/amount", "nothing is left after rounding; convert more"),
            ConvertError::TooLarge => wrong("/amount", "the converted amount is too large; convert less"),
        },
    )
}

/// The chart accounts of a conversion.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The exchange account of the first asset.
    pub bought: AccountId,
    /// The exchange account of the second asset.
    pub sold: AccountId,
    /// The rounding account of the second asset.
    pub rounding: AccountId,
}

/// Exchanges one asset for another. The legs balance per asset.
pub fn exchange(
    order: Convert,
    from: &Account,
    to: &Account,
    converted: Converted,
    chart: Exchange,
    context: DecisionContext,
) -> Result<Transaction, Vec<Flaw>> {
    let leg = |account, side, amount, asset| Leg { account, side, layer: Layer::Posted, amount, asset };
    let mut legs = vec![
        leg(from.id, Side::Debit, order.amount, from.asset),
        leg(chart.bought, Side::Credit, order.amount, from.asset),
        leg(chart.sold, Side::Debit, converted.exchange, to.asset),
        leg(to.id, Side::Credit, converted.to, to.asset),
    ];
    if converted.rounding > 0 {
        legs.push(leg(chart.rounding, Side::Credit, converted.rounding, to.asset));
    }
    let legs = Legs::balanced(legs).map_err(|bad| vec![Flaw::new("", sentence(bad))])?;
    Ok(context.transaction(TransactionKind::Conversion, legs, order.metadata))
}

/// Posts a captured charge: debits what the provider owes and credits `credited`.
pub fn post_charge(
    charge: &Charge,
    receivable: AccountId,
    credited: AccountId,
    now: Time,
) -> Result<Transaction, BadLegs> {
    let legs = Legs::transfer(
        receivable,
        credited,
        charge.sums.captured,
        charge.order.amount.asset(),
        Layer::Posted,
    )?;
    let context =
        DecisionContext { tenant: charge.tenant, id: TransactionId::from_i64(charge.id.to_i64()), now };
    Ok(context.transaction(TransactionKind::Charge(charge.id), legs, Metadata::new()))
}

/// Reserves money for a payment. The hold never lapses, because the payment's end always ends it.
pub fn reserve(
    from: AccountId,
    to: AccountId,
    amount: i64,
    asset: Asset,
    context: DecisionContext,
) -> Result<(Transaction, Hold), BadLegs> {
    let legs = Legs::transfer(from, to, amount, asset, Layer::Pending)?;
    Ok(new_hold(from, to, (amount, asset), Hold::NEVER, legs, Metadata::new(), context))
}

/// An account of the chart.
pub fn chart_account(role: Role, asset: Asset) -> Option<Open> {
    Some(unbounded_account(role.code(asset).ok()?, asset, role.normal()))
}

/// The chart account of the debt to a peer.
pub fn peer_account(peer: &PeerName, asset: Asset) -> Option<Open> {
    Some(unbounded_account(peer_code(peer, asset).ok()?, asset, Side::Credit))
}

const fn unbounded_account(code: AccountCode, asset: Asset, normal: Side) -> Open {
    Open {
        code,
        asset,
        normal,
        guard: Guard { floor: None, cap: None },
        shards: 1,
        metadata: Metadata::new(),
    }
}

fn resolve_account(
    known: &KnownAccounts,
    tenant: TenantId,
    named: &AccountSelector,
    asset: Asset,
    (place, asset_place): (&str, &str),
    flaws: &mut Vec<Flaw>,
) -> Option<AccountId> {
    let Some(found) = known.named(named, tenant) else {
        flaws.push(Flaw::new(place, "there is no such account; open it with POST /v1/accounts first"));
        return None;
    };
    if found.asset != asset {
        let message = format!("the account counts {}, not {asset}; name an account of {asset}", found.asset);
        flaws.push(Flaw::new(asset_place, message));
        return None;
    }
    Some(found.id)
}

/// Explains a flaw of legs and its remedy.
pub fn sentence(bad: BadLegs) -> String {
    match bad {
        BadLegs::TooFew => "a transaction needs at least two entries".to_owned(),
        BadLegs::TooMany => format!("a transaction has at most {LEGS_MAX} entries; split it"),
        BadLegs::Amount(_) => format!("an amount must be between 1 and {AMOUNT_MAX}"),
        BadLegs::Twice(_) => "the account stands in an earlier entry; add the amounts up into one".to_owned(),
        BadLegs::Unbalanced(asset) => {
            format!("debits and credits of {asset} differ; they must add up to zero")
        }
    }
}

//! Requests: pure functions of the numbers of key and body, so that every retry asks for the same.

use super::ClientKnowledge;
use crate::chance::Chance;
use crate::provider::{DECLINED, LAPSING, MOODY, VISA};
use crate::script::Ask;
use crate::store::START;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::key::IdempotencyKey;
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::ledger::account::{AccountCode, Guard, Side};
use counterfoil_core::ledger::convert::{Rate, Rounding};
use counterfoil_core::payments::charge::Wallet;
use counterfoil_core::payments::charge::create::{CreateCharge, NewCharge};
use counterfoil_core::payments::ledger::{
    AccountSelector, Convert, End, HoldTerms, Item, LedgerCommand, Metadata, Open, Post, PostLeg,
    TransferOrder,
};
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::operation::launch::Operate;
use counterfoil_core::payments::payout;
use counterfoil_core::payments::payout::create::CreatePayout;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::decimal::Decimal;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use std::collections::BTreeMap;

/// A request to a process.
#[derive(Clone, Debug)]
pub enum ClientRequest {
    Charge(Box<CreateCharge>),
    Operate(Box<Operate>),
    Payout(Box<CreatePayout>),
    Ledger(Request, Box<LedgerCommand>),
    Bulk(Request, Vec<Item>),
}

/// The tenant of all ledger requests.
const LEDGER_TENANT: u64 = 1;
/// Items of a large bulk request: more than fit into a single set.
pub const BULK_LARGE: u64 = 130;

/// An account to open.
type Opening = (&'static str, &'static str, Option<i64>, Option<i64>, u16);

/// The accounts at the start of a run: code, asset, floor, cap, shards.
pub const ACCOUNTS: [Opening; 8] = [
    ("world", "USD", None, None, 1),
    ("alice", "USD", Some(0), None, 1),
    ("bob", "USD", Some(0), Some(5_000), 1),
    ("carol", "USD", Some(0), None, 4),
    ("dora", "USD", None, Some(3_000), 1),
    ("euro", "EUR", None, None, 1),
    ("frank", "EUR", Some(0), None, 1),
    ("grace", "USD", Some(-500), None, 1),
];

/// The request of a key and a body.
pub fn request(tenant: u64, kind: &str, key: u64, body: u64, id: Ulid) -> Option<Request> {
    let tenant = TenantId::from_i64(i64::try_from(tenant).ok()?);
    let text = format!("{kind}-{key}");
    let claim = ClaimId::new(tenant, &IdempotencyKey::from_text(text.as_bytes()).ok()?);
    Some(Request { tenant, claim, fingerprint: fingerprint(kind, key, body), id })
}

pub fn fingerprint(kind: &str, key: u64, body: u64) -> Fingerprint {
    let parts: [&[u8]; 3] = [kind.as_bytes(), &key.to_be_bytes(), &body.to_be_bytes()];
    Fingerprint::from_digest(Digest::of("sim", &parts))
}

/// The amount of a charge. It differs for every body.
pub fn charge_amount(tenant: u64, key: u64, body: u64) -> i64 {
    i64::try_from(tenant * 100_000 + key * 100 + body * 7 + 11).unwrap_or(1)
}

/// The amount of a payout. It differs for every body. A small account has room for one of two
/// payouts, the proceeds of a charge for two of three.
pub fn payout_amount(tenant: u64, key: u64, body: u64) -> i64 {
    let base = if payout_account(tenant, key).is_some() { 700 } else { 45_000 };
    i64::try_from(base + tenant * 10 + key * 3 + body).unwrap_or(1)
}

/// The account of a payout; `None` is the tenant's main account.
fn payout_account(tenant: u64, key: u64) -> Option<&'static str> {
    match key % 6 {
        _ if tenant != LEDGER_TENANT => None,
        1 => Some("alice"),
        2 => Some("carol"),
        3 => Some("grace"),
        _ => None,
    }
}

/// First key of the charges with operations or a wallet.
pub const LIVES: u64 = 100;

/// Payouts whose keys differ by this use the same account and bank.
pub const PAYOUTS_ALIKE: u64 = 24;

/// Number of operations on one charge.
pub const OPERATIONS: u64 = 16;

/// Kind and amount of an operation. Without an amount, the whole rest is meant.
pub fn operation(key: u64, body: u64) -> (OperationKind, Option<i64>) {
    let key = key % OPERATIONS;
    let amount = |base: u64| i64::try_from(base + key + body * 13).ok();
    match key % 8 {
        0 => (OperationKind::Capture, if body == 0 { None } else { amount(90_000) }),
        1 => (OperationKind::Capture, amount(60_000)),
        2 => (OperationKind::Void, None),
        3 => (OperationKind::Refund, if body == 0 { None } else { amount(40_000) }),
        4 => (OperationKind::Refund, amount(30_000)),
        5 => (OperationKind::Refund, amount(45_000)),
        6 => (OperationKind::Refund, amount(70_000)),
        _ => (OperationKind::Refund, amount(1_000)),
    }
}

/// The wallet's part of a charge, if any.
pub fn wallet_part(tenant: u64, key: u64) -> Option<i64> {
    let split = tenant == LEDGER_TENANT && key >= LIVES && key % 4 == 2;
    if split { i64::try_from(200 + key).ok() } else { None }
}

/// Whether a charge without a wallet is captured at once.
const fn captures(key: u64) -> bool {
    if key >= LIVES { matches!(key % 4, 1 | 2) } else { key % 5 != 2 }
}

fn method(key: u64, body: u64) -> &'static str {
    let life = key >= LIVES;
    match (life, key % 8) {
        _ if body > 0 => VISA,
        // A split or a hold that may fail at each step, or at the last one.
        (true, 6 | 7) => MOODY,
        (true, 3) => LAPSING,
        (true, _) => VISA,
        (false, _) => match key % 4 {
            1 => MOODY,
            3 => DECLINED,
            _ => VISA,
        },
    }
}

pub fn charge_asset(key: u64) -> Option<Asset> {
    Asset::currency(match key % 3 {
        _ if key >= LIVES && key % 4 == 2 => "USD",
        0 => "USD",
        1 => "EUR",
        _ => "JPY",
    })
    .ok()
}

/// Opens the accounts at the start of a run and funds two of them.
pub fn opening(number: u64, id: Ulid) -> Option<ClientRequest> {
    let request = request(LEDGER_TENANT, "open", number, 0, id)?;
    let place = usize::try_from(number).ok()?;
    if let Some((code, asset, floor, cap, shards)) = ACCOUNTS.get(place).copied() {
        let open = Open {
            code: AccountCode::parse(code).ok()?,
            asset: Asset::currency(asset).ok()?,
            normal: Side::Credit,
            guard: Guard { floor, cap },
            shards,
            metadata: Metadata::new(),
        };
        return Some(ClientRequest::Ledger(request, Box::new(LedgerCommand::Open(open))));
    }
    let (from, to, amount, asset) = match place.checked_sub(ACCOUNTS.len())? {
        0 => ("world", "alice", 2_000, "USD"),
        1 => ("world", "carol", 2_000, "USD"),
        2 => ("euro", "frank", 900, "EUR"),
        _ => return None,
    };
    let transfer = transfer(from, to, amount, asset, None, "open")?;
    Some(ClientRequest::Ledger(request, Box::new(LedgerCommand::Transfer(transfer))))
}

fn transfer(
    from: &str,
    to: &str,
    amount: i64,
    asset: &str,
    hold: Option<Time>,
    tag: &str,
) -> Option<TransferOrder> {
    Some(TransferOrder {
        from: named(from)?,
        to: named(to)?,
        amount,
        asset: Asset::currency(asset).ok()?,
        hold: hold.map(|at| HoldTerms { expires_at: Some(at) }),
        metadata: tagged(tag),
    })
}

fn named(code: &str) -> Option<AccountSelector> {
    AccountCode::parse(code).ok().map(AccountSelector::Code)
}

fn tagged(tag: &str) -> Metadata {
    BTreeMap::from([("k".to_owned(), Masked::new(tag.to_owned()))])
}

impl Ask {
    /// The request, if all ids it needs are known.
    pub fn asked(self, known: &ClientKnowledge, id: Ulid) -> Option<ClientRequest> {
        match self {
            Ask::Charge { tenant, key, body } => {
                let request = request(tenant, "charge", key, body, id)?;
                let named = match key {
                    _ if tenant != LEDGER_TENANT => None,
                    // A guarded account that pays refunds while other requests spend its money.
                    LIVES.. if key % 12 == 9 => known.accounts.get("grace"),
                    LIVES.. => None,
                    _ if key % 6 == 0 => known.accounts.get("bob"),
                    _ => None,
                };
                let wallet = match wallet_part(tenant, key) {
                    Some(amount) => Some(Wallet { account: *known.accounts.get("alice")?, amount }),
                    None => None,
                };
                let wanted = NewCharge {
                    amount: Money::new(charge_amount(tenant, key, body), charge_asset(key)?).ok()?,
                    payment_method: Masked::new(method(key, body).to_owned()),
                    capture: wallet.is_some() || captures(key),
                    destination: named.copied(),
                    wallet,
                    description: None,
                    metadata: BTreeMap::new(),
                };
                Some(ClientRequest::Charge(Box::new(CreateCharge { request, wanted })))
            }
            Ask::Operate { tenant, key, body } => {
                let request = request(tenant, "operate", key, body, id)?;
                let charge = *known.charges.get(&(tenant, key / OPERATIONS))?;
                let (kind, amount) = operation(key, body);
                Some(ClientRequest::Operate(Box::new(Operate { request, charge, kind, amount })))
            }
            Ask::Payout { tenant, key, body } => {
                let account = match payout_account(tenant, key) {
                    Some(code) => Some(*known.accounts.get(code)?),
                    None => None,
                };
                let asset = if account.is_some() { Asset::currency("USD").ok()? } else { charge_asset(key)? };
                let bank = match key % 8 {
                    _ if body > 0 => VISA,
                    5 => DECLINED,
                    3 | 6 => MOODY,
                    _ => VISA,
                };
                let wanted = payout::create::NewPayout {
                    amount: Money::new(payout_amount(tenant, key, body), asset).ok()?,
                    account,
                    peer: None,
                    destination: Some(Masked::new(bank.to_owned())),
                    description: None,
                    metadata: BTreeMap::new(),
                };
                let request = request(tenant, "payout", key, body, id)?;
                Some(ClientRequest::Payout(Box::new(CreatePayout { request, wanted })))
            }
            Ask::Ledger { key, body } => ledger_request(key, body, known, id),
            Ask::Look { .. } | Ask::Resolve { .. } => None,
        }
    }
}

fn ledger_request(key: u64, body: u64, known: &ClientKnowledge, id: Ulid) -> Option<ClientRequest> {
    let request = request(LEDGER_TENANT, "keep", key, body, id)?;
    let mut chance = Chance::at(&[key, body, 31, 0]);
    let tag = format!("{key}/{body}");
    let dollars = ["world", "alice", "bob", "carol", "dora", "grace"];
    let from = chance.pick(&dollars, "world");
    let others: Vec<&str> = dollars.into_iter().filter(|code| *code != from).collect();
    let to = chance.pick(&others, "world");
    let amount = i64::try_from(chance.between(1, 700)).ok()?;
    let command = match key % 12 {
        2 => {
            let deadline = START.plus(Span::from_ms(chance.between(5_000, 200_000)));
            LedgerCommand::Transfer(transfer(from, to, amount, "USD", Some(deadline), &tag)?)
        }
        3 => {
            let amount = chance.percent(30).then_some(1);
            LedgerCommand::End { hold: *known.holds.get(&key.checked_sub(1)?)?, how: End::Post { amount } }
        }
        4 => LedgerCommand::End { hold: *known.holds.get(&key.checked_sub(2)?)?, how: End::Void },
        5 => {
            let leg = |code: &str, side, amount| -> Option<PostLeg> {
                Some(PostLeg { account: named(code)?, side, amount, asset: Asset::currency("USD").ok()? })
            };
            let entries = vec![
                leg("world", Side::Debit, amount.saturating_add(5))?,
                leg("alice", Side::Credit, amount)?,
                leg("grace", Side::Credit, 5)?,
            ];
            LedgerCommand::Post(Post { entries, metadata: tagged(&tag) })
        }
        1 | 6 => LedgerCommand::Reverse { transaction: *known.transactions.get(&key.checked_sub(1)?)? },
        7 => LedgerCommand::Convert(Convert {
            from: named("alice")?,
            to: named("frank")?,
            amount,
            rate: Rate::new(&Decimal::parse("0.91734").ok()?).ok()?,
            rounding: chance.pick(&[Rounding::HalfEven, Rounding::Up], Rounding::Down),
            metadata: tagged(&tag),
        }),
        8 => {
            let count = if key % 24 == 8 { BULK_LARGE } else { 5 };
            let item = |number: u64| -> Option<Item> {
                let from = chance.pick(&dollars, "world");
                let to = if from == "bob" { "alice" } else { "bob" };
                let amount = i64::try_from(chance.between(1, 60)).ok()?;
                Some(Item::Transfer(transfer(from, to, amount, "USD", None, &format!("{tag}:{number}"))?))
            };
            return Some(ClientRequest::Bulk(request, (0..count).map(item).collect::<Option<_>>()?));
        }
        9 => LedgerCommand::Open(Open {
            code: AccountCode::parse("shared").ok()?,
            asset: Asset::currency("USD").ok()?,
            normal: Side::Credit,
            guard: Guard { floor: Some(0), cap: None },
            shards: 1,
            metadata: Metadata::new(),
        }),
        10 => LedgerCommand::Reshard {
            account: named("carol")?,
            shards: u16::try_from(chance.between(1, 8)).ok()?,
        },
        11 => LedgerCommand::Reverse { transaction: *known.transactions.get(&key.checked_sub(11)?)? },
        _ => LedgerCommand::Transfer(transfer(from, to, amount, "USD", None, &tag)?),
    };
    Some(ClientRequest::Ledger(request, Box::new(command)))
}

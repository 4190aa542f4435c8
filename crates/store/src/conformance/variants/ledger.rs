//! Ledger rows in every variant.

use super::super::fixtures::at;
use super::super::fixtures::ledger::{
    account, account_id, asset, code, cursor, definition, hold, hold_id, name, opened, reversal, snapshot,
    transaction_id, transfer,
};
use super::{metadata_full, metadata_odd};
use counterfoil_core::ledger::account::{Account, AccountName, Guard, Side};
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::ledger::snapshot::{Cursor, Snapshot};
use counterfoil_core::ledger::totals::Totals;
use counterfoil_core::ledger::transaction::{Layer, Leg, Legs, Reversal, Transaction, TransactionKind};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{ChargeId, TenantId, TransactionId};
use counterfoil_core::types::limits::{
    ACCOUNT_CODE_BYTES_MAX, AMOUNT_MAX, ASSET_CODE_BYTES_MAX, ASSET_EXPONENT_MAX, LEGS_MAX, SHARDS_MAX,
};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::time::Time;

/// The largest count a store keeps: the maximum of a signed 64-bit column.
const COUNT_MAX: u64 = i64::MAX.unsigned_abs();

const FAR: TenantId = TenantId::from_i64(i64::MAX);

fn longest_asset() -> Asset {
    asset(&"Z".repeat(ASSET_CODE_BYTES_MAX))
}

/// Accounts of both sides with every combination of bounds, sharded and not.
pub fn accounts() -> Vec<Account> {
    let bounds = [None, Some(0), Some(-1), Some(i64::MIN), Some(i64::MAX)];
    let guards = bounds.into_iter().flat_map(|floor| bounds.map(|cap| Guard { floor, cap }));
    let mut accounts: Vec<Account> =
        (1..).zip(guards).map(|(number, guard)| Account { guard, ..account(number) }).collect();
    accounts.push(Account {
        tenant: FAR,
        code: code(&"x".repeat(ACCOUNT_CODE_BYTES_MAX)),
        asset: longest_asset(),
        normal: Side::Debit,
        shards: SHARDS_MAX,
        widest: SHARDS_MAX,
        metadata: metadata_full(),
        revision: 5_000_000_000_000,
        ..account(i64::MAX)
    });
    accounts.push(Account { shards: 1, widest: 8, metadata: metadata_odd(), ..account(1_000) });
    accounts
}

/// Codes that differ in one respect each: the tenant, the case, a character.
pub fn names() -> Vec<AccountName> {
    let long = "0".repeat(ACCOUNT_CODE_BYTES_MAX);
    let mut names: Vec<AccountName> = (1..)
        .zip(["a", "A", "a:b", "a/b", "a_b", "a-b", "a.b", "chart:payable:USD", &long])
        .map(|(number, text)| AccountName { code: code(text), ..name(number) })
        .collect();
    names.push(AccountName { tenant: FAR, code: code("a"), account: account_id(i64::MAX) });
    names
}

/// Assets of every exponent, and another tenant's asset with the same code.
pub fn definitions() -> Vec<AssetDefinition> {
    let mut definitions: Vec<AssetDefinition> = (0..=ASSET_EXPONENT_MAX)
        .map(|exponent| AssetDefinition { exponent, ..definition(&format!("POINTS_{exponent}")) })
        .collect();
    definitions.push(AssetDefinition { asset: longest_asset(), created_at: at(9), ..definition("P") });
    definitions.push(AssetDefinition { tenant: FAR, ..definition("POINTS_0") });
    definitions.push(definition("X"));
    definitions
}

/// New balances with every combination of bounds, in the first and the last shard.
pub fn balances() -> Vec<Balance> {
    let bounds = [None, Some(0), Some(i64::MIN), Some(i64::MAX)];
    let pairs = bounds.into_iter().flat_map(|floor| bounds.map(|cap| (floor, cap)));
    let mut balances: Vec<Balance> =
        (1..).zip(pairs).map(|(number, (floor, cap))| opened(number, floor, cap)).collect();
    balances.push(Balance { shard: u8::MAX, revision: 5_000_000_000_000, ..opened(1, Some(-5), None) });
    balances.push(Balance { shard: 1, ..opened(i64::MAX, None, Some(7)) });
    balances
}

/// Transactions of every kind and shape.
pub fn transactions() -> Vec<Transaction> {
    let (hold, far) = (hold_id(i64::MAX), i64::MAX);
    let kinds = [
        TransactionKind::Transfer,
        TransactionKind::General,
        TransactionKind::Conversion,
        TransactionKind::Charge(ChargeId::from_i64(far)),
        TransactionKind::Reversal(TransactionId::from_i64(far)),
        TransactionKind::Held(hold),
        TransactionKind::HoldPosted(hold),
        TransactionKind::HoldVoided(hold),
        TransactionKind::HoldLapsed(hold),
    ];
    let mut all: Vec<Transaction> = (1..)
        .zip(kinds)
        .map(|(number, kind)| Transaction { kind, ..transfer(number, 1, 2, number) })
        .collect();
    for (number, legs) in (20..).zip([most_legs(), every_layer(), several_assets(), far_accounts()]) {
        all.push(Transaction {
            legs,
            kind: TransactionKind::General,
            at: at(1),
            ..transfer(number, 1, 2, 1)
        });
    }
    all.push(Transaction { metadata: metadata_full(), tenant: FAR, ..transfer(far, 1, 2, AMOUNT_MAX) });
    all.push(Transaction { metadata: metadata_odd(), ..transfer(40, 2, 1, 1) });
    all
}

fn balanced(legs: Vec<Leg>) -> Legs {
    Legs::balanced(legs).expect("fixtures use legs that balance")
}

fn leg(account: i64, side: Side, layer: Layer, amount: i64, asset: Asset) -> Leg {
    Leg { account: account_id(account), side, layer, amount, asset }
}

/// The most legs, with the largest amounts and alternating sides.
pub fn most_legs() -> Legs {
    let sides = [Side::Debit, Side::Credit].into_iter().cycle();
    let legs = (1..).zip(sides).take(LEGS_MAX);
    balanced(legs.map(|(n, side)| leg(n, side, Layer::Posted, AMOUNT_MAX, asset("USD"))).collect())
}

/// The same two accounts in every layer: a hold is partly released and partly posted, and another
/// hold is made.
pub fn every_layer() -> Legs {
    let layers = [(Layer::Released, 100), (Layer::Posted, 60), (Layer::Pending, 7)];
    let both = |(layer, amount)| {
        [(1, Side::Debit), (2, Side::Credit)].map(|(n, side)| leg(n, side, layer, amount, asset("USD")))
    };
    balanced(layers.into_iter().flat_map(both).collect())
}

/// Three assets, each balanced; one of them in three legs.
pub fn several_assets() -> Legs {
    let posted = |account, side, amount, code: &str| leg(account, side, Layer::Posted, amount, asset(code));
    let longest = longest_asset();
    balanced(vec![
        posted(1, Side::Debit, 1_000, "USD"),
        posted(2, Side::Credit, 999, "USD"),
        posted(3, Side::Credit, 1, "USD"),
        posted(4, Side::Credit, 1, "POINTS_0"),
        posted(5, Side::Debit, 1, "POINTS_0"),
        leg(6, Side::Debit, Layer::Posted, 5, longest),
        leg(7, Side::Credit, Layer::Posted, 5, longest),
    ])
}

fn far_accounts() -> Legs {
    let legs = Legs::transfer(account_id(i64::MAX), account_id(0), AMOUNT_MAX, asset("JPY"), Layer::Pending);
    legs.expect("fixtures use legs that balance")
}

/// Reversals with close and distant ids.
pub fn reversals() -> Vec<Reversal> {
    let far = Reversal { tenant: FAR, original: transaction_id(i64::MAX), by: transaction_id(i64::MAX - 1) };
    vec![reversal(1), reversal(2), far]
}

/// Holds in every state.
pub fn holds() -> Vec<Hold> {
    let by = transaction_id(i64::MAX);
    let states = [
        HoldState::Pending,
        HoldState::Posted { amount: 1, by },
        HoldState::Posted { amount: AMOUNT_MAX, by },
        HoldState::Voided { by },
        HoldState::Lapsed { by },
    ];
    let mut holds: Vec<Hold> =
        (1..).zip(states).map(|(number, state)| Hold { state, amount: AMOUNT_MAX, ..hold(number) }).collect();
    holds.push(Hold {
        tenant: FAR,
        from: account_id(i64::MAX),
        to: account_id(0),
        asset: longest_asset(),
        expires_at: Time::MAX,
        metadata: metadata_full(),
        revision: 5_000_000_000_000,
        ..hold(i64::MAX)
    });
    holds.push(Hold { metadata: metadata_odd(), amount: 1, created_at: at(5), ..hold(100) });
    holds
}

/// Snapshots up to the limits of their sums.
pub fn snapshots() -> Vec<Snapshot> {
    let edges = [0, 1, -1, i128::from(i64::MAX) + 1, i128::from(i64::MIN) - 1, i128::MAX, i128::MIN];
    let mut snapshots: Vec<Snapshot> = (1..)
        .zip(edges)
        .zip(edges.into_iter().rev())
        .map(|((position, debits), credits)| Snapshot {
            totals: Totals {
                debits,
                credits,
                debits_pending: credits,
                credits_pending: debits,
                entries: COUNT_MAX,
            },
            ..snapshot(1, position)
        })
        .collect();
    snapshots.push(Snapshot { totals: Totals::default(), at: Time::MAX, ..snapshot(2, 1) });
    snapshots.push(Snapshot { at: Time::EPOCH, ..snapshot(i64::MAX, COUNT_MAX) });
    snapshots
}

/// Cursors at every position of interest.
pub fn cursors() -> Vec<Cursor> {
    let far =
        Cursor { position: Position(COUNT_MAX), at: Time::MAX, revision: 5_000_000_000_000, ..cursor(1) };
    vec![Cursor { position: Position::START, at: Time::EPOCH, ..cursor(1) }, far]
}

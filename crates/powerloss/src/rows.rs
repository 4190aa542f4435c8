//! The sets of a workload, each derived from a number.

use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::ledger::balance::Guarded;
use counterfoil_core::payments::charge::{Charge, ChargeStatus};
use counterfoil_store::conformance::fixtures::ledger::{
    FLOOR, account, definition, hold, moving, name, posted, snapshot, transfer,
};
use counterfoil_store::conformance::fixtures::{
    TENANT, api_key, at, audit, charge, charge_id, claim, claim_id, claim_in, opening, set, settled, slot,
    tenant,
};
use counterfoil_store::{ChangeSet, RowKey};

/// Accounts that money moves between; most groups write their balances.
pub const ACCOUNTS: i64 = 8;
/// Balances of accounts from this number on have a floor.
const FLOORED: i64 = 7;
/// Set ids per number.
const SETS: i64 = 16;
/// Transaction ids per number.
const TRANSACTIONS: i64 = 64;

/// The first set: tenant, API key, slot, asset, accounts.
pub fn ground(number: i64) -> ChangeSet {
    let ground = set(number * SETS)
        .insert(tenant("acme", 1))
        .insert(api_key(1))
        .insert(slot(3))
        .insert(definition("POINTS"));
    (1..=ACCOUNTS)
        .fold(ground, |set, account_number| set.insert(account(account_number)).insert(name(account_number)))
}

/// The set that claims a key and opens its charge.
pub fn open(number: i64) -> ChangeSet {
    let mut changes = opening(number).changes().to_vec().into_iter();
    changes.by_ref().fold(set(number * SETS + 1), ChangeSet::with)
}

/// A second claim of the same key, which is refused.
pub fn open_again(number: i64) -> ChangeSet {
    set(number * SETS + 2).insert(claim(number))
}

/// The set that stores the answer and ends the charge.
pub fn settle(number: i64, body: &[u8]) -> ChangeSet {
    let answered = Claim { revision: 2, ..claim_in(number, ClaimState::Completed(settled(body, at(1_000)))) };
    let captured = Charge {
        status: ChargeStatus::Succeeded,
        provider_reference: Some(format!("pi_{number}")),
        revision: 2,
        ..charge(number)
    };
    set(number * SETS + 3)
        .replace(answered, 1)
        .replace(captured, 1)
        .remove(RowKey::Outbox(TENANT, charge_id(number).into()), 1)
        .insert(audit(number, 1))
        .insert(audit(number, 2))
}

/// The sweep that drops the answer and leaves the tombstone.
pub fn expire(number: i64) -> ChangeSet {
    let windows = settled(b"", at(1_000)).windows;
    let tombstone = ClaimState::Expired { tombstone_until: windows.tombstone_until };
    set(number * SETS + 4).replace(Claim { revision: 3, ..claim_in(number, tombstone) }, 2)
}

/// The sweep that frees the key.
pub fn free(number: i64) -> ChangeSet {
    set(number * SETS + 5).remove(RowKey::Claim(TENANT, claim_id(number)), 3)
}

/// A transfer with its moves; refused if a balance would pass its floor.
pub fn pay(number: i64, from: i64, to: i64, amount: i64) -> ChangeSet {
    let guarded = |account| if account < FLOORED { Guarded { floor: false, cap: false } } else { FLOOR };
    set(number * SETS + 6)
        .insert(transfer(number * TRANSACTIONS, from, to, amount))
        .shift(moving(from, guarded(from), posted(-amount)))
        .shift(moving(to, guarded(to), posted(amount)))
}

/// Many transfers between two accounts without a floor, in one set.
pub fn pay_many(number: i64, from: i64, to: i64) -> ChangeSet {
    let free = Guarded { floor: false, cap: false };
    let many = 1..=30;
    let sum = 30;
    many.map(|index| transfer(number * TRANSACTIONS + index, from, to, 1))
        .fold(set(number * SETS + 7), ChangeSet::insert)
        .shift(moving(from, free, posted(-sum)))
        .shift(moving(to, free, posted(sum)))
}

/// The set that inserts a hold and a snapshot.
pub fn note(number: i64) -> ChangeSet {
    set(number * SETS + 8).insert(hold(number)).insert(snapshot(1, number.unsigned_abs()))
}

/// The set that removes the snapshot.
pub fn unnote(number: i64) -> ChangeSet {
    let snapshot = snapshot(1, number.unsigned_abs());
    set(number * SETS + 9).remove(RowKey::Snapshot(snapshot.tenant, snapshot.account, snapshot.position), 1)
}

//! Scans: complete, ordered, limited to one tenant, and stable under paging while rows are
//! inserted.

use super::ask::{commit, scan};
use super::fixtures::ledger::{
    account, account_id, definition, hold, hold_id, opened, transaction_id, transfer,
};
use super::fixtures::{self, TENANT, api_key, audit, charge, charge_id, claim, outbox, set, slot, tenant};
use super::variants::ledger::most_legs;
use crate::change::ChangeSet;
use crate::port::{Scan, Store};
use crate::row::{Row, RowKey};
use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::outbox::{Outbox, ParkReason, Payment};
use counterfoil_core::payments::charge::{Charge, ChargeStatus};
use counterfoil_core::payments::operation::{self, Operation};
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::types::id::{OperationId, PayoutId, SubjectId, TenantId};
use std::sync::Arc;

const OTHER: TenantId = TenantId::from_i64(2);

fn charge_of(tenant: TenantId, number: i64) -> Charge {
    Charge { tenant, ..charge(number) }
}

fn of(tenant: TenantId, before: Option<i64>, limit: usize) -> Scan {
    Scan::ChargesOf { tenant, before: before.map(charge_id), limit }
}

/// The numbers of the scanned rows' subjects.
async fn numbers<S: Store>(store: &Arc<S>, what: Scan) -> Vec<i64> {
    let number = |row: Row| match row {
        Row::Claim(claim) => claim.subject,
        Row::Charge(charge) => charge.id.into(),
        Row::Operation(operation) => operation.id.into(),
        Row::Payout(payout) => payout.id.into(),
        Row::Outbox(outbox) => outbox.id,
        Row::Audit(record) => record.subject,
        Row::Account(account) => account.id.into(),
        Row::Transaction(transaction) => transaction.id.into(),
        Row::Hold(hold) => hold.id.into(),
        other => panic!("{other:?} has no number"),
    };
    let rows = scan(&**store, what).await;
    rows.into_iter().map(number).map(SubjectId::to_i64).collect()
}

/// The sorted numbers of all rows of a paged scan, without gaps and duplicates. `next` builds the
/// scan that follows a row.
async fn walked<S: Store>(store: &Arc<S>, next: impl Fn(Option<RowKey>, usize) -> Scan) -> Vec<i64> {
    let whole = numbers(store, next(None, 99)).await;
    let (mut paged, mut last) = (Vec::new(), None);
    loop {
        let what = next(last.clone(), 3);
        let Some(row) = scan(&**store, what.clone()).await.pop() else { break };
        paged.extend(numbers(store, what).await);
        last = Some(row.key());
    }
    assert_eq!(paged, whole, "pages are the same walk");
    paged.sort_unstable();
    paged
}

macro_rules! walked {
    ($store:ident, $scan:ident, $key:ident) => {
        walked($store, |last, limit| Scan::$scan {
            after: last.map(|last| match last {
                RowKey::$key(tenant, id) => (tenant, id),
                other => panic!("{other:?} is of another kind"),
            }),
            limit,
        })
        .await
    };
}

/// Numbers out of order; the even ones belong to another tenant.
const ORDER: [i64; 14] = [5, 14, 3, 9, 1, 12, 7, 2, 13, 4, 11, 6, 10, 8];

const fn owner(number: i64) -> TenantId {
    if number % 2 == 0 { OTHER } else { TENANT }
}

/// Seven charges each of two tenants, interleaved and written out of order.
async fn two_tenants<S: Store>(store: &Arc<S>) {
    let all = ORDER.into_iter().map(|number| charge_of(owner(number), number));
    commit(&**store, all.fold(set(1), ChangeSet::insert)).await;
}

pub async fn charges_of_a_tenant_newest_first<S: Store>(store: &Arc<S>) {
    two_tenants(store).await;
    assert_eq!(numbers(store, of(TENANT, None, 99)).await, [13, 11, 9, 7, 5, 3, 1]);
    assert_eq!(numbers(store, of(OTHER, None, 99)).await, [14, 12, 10, 8, 6, 4, 2]);
    assert_eq!(numbers(store, of(TenantId::from_i64(3), None, 99)).await, Vec::<i64>::new());
    // The starting point is exclusive and may be another tenant's charge.
    assert_eq!(numbers(store, of(TENANT, Some(7), 2)).await, [5, 3]);
    assert_eq!(numbers(store, of(TENANT, Some(8), 2)).await, [7, 5]);
    assert_eq!(numbers(store, of(TENANT, Some(1), 2)).await, Vec::<i64>::new());
}

pub async fn pages_stay_stable_while_charges_come<S: Store>(store: &Arc<S>) {
    two_tenants(store).await;
    let (mut seen, mut before) = (Vec::new(), None);
    for round in 0..4 {
        let page = numbers(store, of(TENANT, before, 2)).await;
        before = page.last().copied();
        seen.extend(page);
        // Newer charges arrive between the pages; they belong before the first page.
        commit(&**store, set(10 + round).insert(charge_of(TENANT, 101 + round))).await;
    }
    assert_eq!(seen, [13, 11, 9, 7, 5, 3, 1]);
    assert_eq!(numbers(store, of(TENANT, None, 3)).await, [104, 103, 102]);
}

pub async fn a_timeline_is_one_charge_in_order<S: Store>(store: &Arc<S>) {
    let steps = [3, 0, 4, 1, 2];
    let all =
        steps.into_iter().fold(set(1), |set, step| set.insert(audit(1, step)).insert(audit(2, step + 10)));
    commit(&**store, all).await;
    let timeline = |charge, after, limit| Scan::Timeline {
        tenant: TENANT,
        subject: charge_id(charge).into(),
        after,
        limit,
    };
    let expected = |charge, steps: std::ops::Range<u64>| -> Vec<Row> {
        steps.map(|step| audit(charge, step).into()).collect()
    };
    assert_eq!(scan(&**store, timeline(1, None, 99)).await, expected(1, 0..5));
    assert_eq!(scan(&**store, timeline(2, None, 99)).await, expected(2, 10..15));
    assert_eq!(scan(&**store, timeline(3, None, 99)).await, []);
    assert_eq!(scan(&**store, timeline(1, None, 2)).await, expected(1, 0..2));
    let second = Some(audit(1, 1).id);
    assert_eq!(scan(&**store, timeline(1, second, 2)).await, expected(1, 2..4));
    let last = Some(audit(1, 4).id);
    assert_eq!(scan(&**store, timeline(1, last, 2)).await, []);
}

pub async fn claims_each_once<S: Store>(store: &Arc<S>) {
    let all = [4, 1, 5, 3, 2].map(|number| Claim { tenant: owner(number), ..claim(number) });
    commit(&**store, all.iter().cloned().fold(set(1), ChangeSet::insert)).await;
    let mark = |last: RowKey| {
        let last = all.iter().find(|claim| RowKey::Claim(claim.tenant, claim.id) == last);
        last.map(|last| (last.tenant, last.id, last.subject)).expect("a paged scan returns existing rows")
    };
    let seen = walked(store, |last, limit| Scan::Claims { after: last.map(mark), limit }).await;
    assert_eq!(seen, [1, 2, 3, 4, 5]);
}

pub async fn all_charges_and_all_work<S: Store>(store: &Arc<S>) {
    two_tenants(store).await;
    let all = [4, 1, 3].into_iter().map(outbox);
    commit(&**store, all.fold(set(2), ChangeSet::insert)).await;
    let work = |after: Option<i64>, limit| Scan::Outbox {
        after: after.map(|number| (TENANT, charge_id(number).into())),
        limit,
    };
    assert_eq!(walked!(store, Charges, Charge), (1..=14).collect::<Vec<_>>());
    assert_eq!(numbers(store, work(None, 99)).await, [1, 3, 4]);
    assert_eq!(numbers(store, work(Some(1), 1)).await, [3]);
    assert_eq!(numbers(store, work(Some(4), 1)).await, Vec::<i64>::new());
}

/// Even numbers belong to another tenant, every third is a capture, and all belong to charge 1 or
/// 2.
fn operation_of(number: i64) -> Operation {
    let kind =
        if number % 3 == 0 { operation::OperationKind::Capture } else { operation::OperationKind::Refund };
    Operation { tenant: owner(number), kind, ..fixtures::operation(number, 1 + number % 2) }
}

pub async fn operations_by_charge_by_tenant_and_all<S: Store>(store: &Arc<S>) {
    let all = ORDER.into_iter().map(operation_of);
    commit(&**store, all.fold(set(1), ChangeSet::insert)).await;
    let id = OperationId::from_i64;
    let on = |tenant, charge, after: Option<i64>, limit| Scan::OperationsOn {
        tenant,
        charge: charge_id(charge),
        after: after.map(id),
        limit,
    };
    assert_eq!(numbers(store, on(OTHER, 1, None, 99)).await, [2, 4, 6, 8, 10, 12, 14], "captures too");
    assert_eq!(numbers(store, on(TENANT, 2, Some(3), 2)).await, [5, 7]);
    assert_eq!(numbers(store, on(TENANT, 3, None, 2)).await, Vec::<i64>::new());
    assert_eq!(numbers(store, on(TENANT, 1, None, 2)).await, Vec::<i64>::new(), "another's charge");
    let refunds =
        |tenant, before: Option<i64>, limit| Scan::RefundsOf { tenant, before: before.map(id), limit };
    assert_eq!(numbers(store, refunds(TENANT, None, 99)).await, [13, 11, 7, 5, 1]);
    assert_eq!(numbers(store, refunds(OTHER, Some(14), 2)).await, [10, 8]);
    assert_eq!(numbers(store, refunds(TENANT, Some(1), 2)).await, Vec::<i64>::new());
    assert_eq!(walked!(store, Operations, Operation), (1..=14).collect::<Vec<_>>());
}

pub async fn payouts_newest_first_of_a_tenant_and_all<S: Store>(store: &Arc<S>) {
    let all = ORDER.into_iter().map(|number| Payout { tenant: owner(number), ..fixtures::payout(number) });
    commit(&**store, all.fold(set(1), ChangeSet::insert)).await;
    let id = PayoutId::from_i64;
    let of = |tenant, before: Option<i64>, limit| Scan::PayoutsOf { tenant, before: before.map(id), limit };
    assert_eq!(numbers(store, of(TENANT, None, 99)).await, [13, 11, 9, 7, 5, 3, 1]);
    assert_eq!(numbers(store, of(OTHER, Some(14), 2)).await, [12, 10]);
    assert_eq!(numbers(store, of(TENANT, Some(1), 2)).await, Vec::<i64>::new());
    assert_eq!(walked!(store, Payouts, Payout), (1..=14).collect::<Vec<_>>());
}

pub async fn parked_work_of_a_tenant_newest_first<S: Store>(store: &Arc<S>) {
    let work = ORDER.into_iter().map(|number| Outbox {
        tenant: owner(number),
        parked: (number % 3 == 0).then_some(ParkReason::NoEvidence),
        ..outbox(number)
    });
    commit(&**store, work.fold(set(1), ChangeSet::insert)).await;
    let parked = |tenant, before: Option<i64>, limit| Scan::ParkedOf {
        tenant,
        before: before.map(SubjectId::from_i64),
        limit,
    };
    assert_eq!(numbers(store, parked(TENANT, None, 99)).await, [9, 3]);
    assert_eq!(numbers(store, parked(OTHER, None, 1)).await, [12]);
    assert_eq!(numbers(store, parked(OTHER, Some(12), 1)).await, [6]);
    assert_eq!(numbers(store, parked(TENANT, Some(3), 1)).await, Vec::<i64>::new());
}

pub async fn doubt_on_a_payment_of_any_tenant<S: Store>(store: &Arc<S>) {
    let (charge, payout) = (Payment::Charge(charge_id(3)), Payment::Payout(PayoutId::from_i64(3)));
    let work = ORDER.into_iter().map(|number| {
        let mut work = Outbox { tenant: OTHER, ..outbox(number) };
        work.payment = match number % 4 {
            0 => charge,
            1 => payout,
            _ => Payment::Charge(charge_id(100 + number)),
        };
        work.history.unknown = number != 8;
        work
    });
    commit(&**store, work.fold(set(1), ChangeSet::insert)).await;
    assert_eq!(numbers(store, Scan::DoubtOn { payment: charge, limit: 99 }).await, [4, 12]);
    assert_eq!(numbers(store, Scan::DoubtOn { payment: charge, limit: 1 }).await, [4]);
    assert_eq!(numbers(store, Scan::DoubtOn { payment: payout, limit: 99 }).await, [1, 5, 9, 13]);
    let nobodys = Payment::Payout(PayoutId::from_i64(77));
    assert_eq!(numbers(store, Scan::DoubtOn { payment: nobodys, limit: 99 }).await, Vec::<i64>::new());
}

pub async fn accounts_newest_first_of_a_tenant_and_all<S: Store>(store: &Arc<S>) {
    let of = |tenant, before: Option<i64>, limit| Scan::AccountsOf {
        tenant,
        before: before.map(account_id),
        limit,
    };
    let order = ORDER.map(|number| Account { tenant: owner(number), ..account(number) });
    commit(&**store, order.into_iter().fold(set(1), ChangeSet::insert)).await;
    assert_eq!(numbers(store, of(TENANT, None, 99)).await, [13, 11, 9, 7, 5, 3, 1]);
    assert_eq!(numbers(store, of(OTHER, None, 3)).await, [14, 12, 10]);
    assert_eq!(numbers(store, of(TENANT, Some(8), 2)).await, [7, 5]);
    assert_eq!(numbers(store, of(TENANT, Some(1), 2)).await, Vec::<i64>::new());
    commit(&**store, set(2).insert(account(101))).await;
    assert_eq!(numbers(store, of(TENANT, Some(5), 9)).await, [3, 1], "a newer one moved a page");
    assert_eq!(walked!(store, Accounts, Account), (1..=14).chain([101]).collect::<Vec<_>>());
}

pub async fn transactions_newest_first_of_a_tenant_and_all<S: Store>(store: &Arc<S>) {
    let of = |tenant, before: Option<i64>, limit| Scan::TransactionsOf {
        tenant,
        before: before.map(transaction_id),
        limit,
    };
    let order = ORDER.map(|number| Transaction { tenant: owner(number), ..transfer(number, 1, 2, 1) });
    commit(&**store, order.into_iter().fold(set(1), ChangeSet::insert)).await;
    assert_eq!(numbers(store, of(TENANT, None, 99)).await, [13, 11, 9, 7, 5, 3, 1]);
    assert_eq!(numbers(store, of(OTHER, None, 3)).await, [14, 12, 10]);
    assert_eq!(numbers(store, of(TENANT, Some(8), 2)).await, [7, 5]);
    commit(&**store, set(2).insert(transfer(101, 1, 2, 1))).await;
    assert_eq!(numbers(store, of(TENANT, Some(5), 9)).await, [3, 1], "a newer one moved a page");
    assert_eq!(walked!(store, Transactions, Transaction), (1..=14).chain([101]).collect::<Vec<_>>());
    // Transactions come with all their legs.
    let many = Transaction { legs: most_legs(), ..transfer(200, 1, 2, 1) };
    commit(&**store, set(3).insert(many.clone())).await;
    let all = scan(&**store, Scan::Transactions { after: None, limit: 99 }).await;
    assert!(all.contains(&many.clone().into()));
    assert_eq!(scan(&**store, of(TENANT, None, 1)).await, [many.into()]);
}

pub async fn assets_of_a_tenant_by_code<S: Store>(store: &Arc<S>) {
    assert_eq!(scan(&**store, Scan::AssetsOf { tenant: TENANT }).await, []);
    let own = ["ZED", "A", "POINTS_1", "AB", "POINTS"].map(definition);
    let other = ["POINTS", "MILES"].map(|code| AssetDefinition { tenant: OTHER, ..definition(code) });
    commit(&**store, own.into_iter().chain(other).fold(set(1), ChangeSet::insert)).await;
    let expected = ["A", "AB", "POINTS", "POINTS_1", "ZED"].map(|code| definition(code).into());
    assert_eq!(scan(&**store, Scan::AssetsOf { tenant: TENANT }).await, expected);
    let expected =
        ["MILES", "POINTS"].map(|code| AssetDefinition { tenant: OTHER, ..definition(code) }.into());
    assert_eq!(scan(&**store, Scan::AssetsOf { tenant: OTHER }).await, expected);
}

pub async fn balances_by_account_and_shard<S: Store>(store: &Arc<S>) {
    commit(&**store, [1, 2, 3].map(account).into_iter().fold(set(2), ChangeSet::insert)).await;
    let places = [(2, 255), (1, 2), (2, 0), (1, 10), (3, 128), (1, 0)];
    let shard = |(number, shard)| Balance { shard, ..opened(number, Some(0), None) };
    commit(&**store, places.map(shard).into_iter().fold(set(1), ChangeSet::insert)).await;
    let after = |after: Option<(i64, u8)>, limit| Scan::Balances {
        after: after.map(|(number, shard)| (TENANT, account_id(number), shard)),
        limit,
    };
    let sorted = [(1, 0), (1, 2), (1, 10), (2, 0), (2, 255), (3, 128)];
    let expected = |from: usize, to: usize| -> Vec<Row> {
        sorted[from..to].iter().map(|place| shard(*place).into()).collect()
    };
    assert_eq!(scan(&**store, after(None, 99)).await, expected(0, 6));
    assert_eq!(scan(&**store, after(None, 2)).await, expected(0, 2));
    assert_eq!(scan(&**store, after(Some((1, 2)), 2)).await, expected(2, 4));
    assert_eq!(scan(&**store, after(Some((1, 255)), 9)).await, expected(3, 6));
    assert_eq!(scan(&**store, after(Some((2, 255)), 9)).await, expected(5, 6));
    assert_eq!(scan(&**store, after(Some((3, 128)), 9)).await, []);
}

pub async fn holds_by_id<S: Store>(store: &Arc<S>) {
    let ended = hold(3).ended(HoldState::Voided { by: transaction_id(1) });
    let all = [hold(4), hold(1), ended, hold(2)].into_iter().fold(set(1), ChangeSet::insert);
    commit(&**store, all).await;
    let after = |after: Option<i64>, limit| Scan::Holds {
        after: after.map(|number| (TENANT, hold_id(number))),
        limit,
    };
    assert_eq!(numbers(store, after(None, 99)).await, [1, 2, 3, 4]);
    assert_eq!(numbers(store, after(Some(1), 2)).await, [2, 3]);
    assert_eq!(numbers(store, after(Some(4), 2)).await, Vec::<i64>::new());
}

pub async fn tenants_keys_and_slots_in_order<S: Store>(store: &Arc<S>) {
    for what in [Scan::Tenants, Scan::ApiKeys, Scan::Slots] {
        assert_eq!(scan(&**store, what).await, []);
    }
    let tenants = ["b", "acme", "z-1", "a"].into_iter().zip(1..).map(|(name, id)| tenant(name, id));
    let keys = (1..=5).map(api_key);
    let slots = [300, 2, 16_383, 0].into_iter().map(slot);
    let rows: Vec<Row> =
        tenants.map(Row::from).chain(keys.map(Row::from)).chain(slots.map(Row::from)).collect();
    commit(&**store, rows.iter().cloned().fold(set(1), ChangeSet::insert)).await;
    let of_kind = |kind: fn(&RowKey) -> bool| -> Vec<Row> {
        let mut rows: Vec<Row> = rows.iter().filter(|row| kind(&row.key())).cloned().collect();
        rows.sort_by_key(Row::key);
        rows
    };
    let tenants = of_kind(|key| matches!(key, RowKey::Tenant(_)));
    let keys = of_kind(|key| matches!(key, RowKey::ApiKey(_)));
    let slots = of_kind(|key| matches!(key, RowKey::Slot(_)));
    assert_eq!((tenants.len(), keys.len(), slots.len()), (4, 5, 4));
    assert_eq!(scan(&**store, Scan::Tenants).await, tenants);
    assert_eq!(scan(&**store, Scan::ApiKeys).await, keys);
    assert_eq!(scan(&**store, Scan::Slots).await, slots);
}

pub async fn a_scan_returns_the_last_state<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(charge(1)).insert(outbox(1))).await;
    let succeeded = Charge { status: ChargeStatus::Succeeded, revision: 2, ..charge(1) };
    let settling =
        set(2).replace(succeeded.clone(), 1).remove(RowKey::Outbox(TENANT, charge_id(1).into()), 1);
    commit(&**store, settling).await;
    assert_eq!(scan(&**store, of(TENANT, None, 9)).await, [succeeded.into()]);
    let work = Scan::Outbox { after: None, limit: 9 };
    assert_eq!(scan(&**store, work).await, []);
}

//! Ranges: complete, in order, of one owner, and stable under paging while rows come.

use super::ask::{commit, scan};
use super::fixtures::{TENANT, api_key, audit, charge, charge_id, claim, outbox, set, slot, tenant};
use crate::change::ChangeSet;
use crate::port::{Scan, Store};
use crate::row::{Row, RowKey};
use counterfoil_core::payments::charge::{Charge, Status};
use counterfoil_core::types::id::{ChargeId, TenantId};
use std::sync::Arc;

const OTHER: TenantId = TenantId::from_i64(2);

fn charge_of(tenant: TenantId, number: i64) -> Charge {
    Charge { tenant, ..charge(number) }
}

fn of(tenant: TenantId, before: Option<i64>, limit: usize) -> Scan {
    Scan::ChargesOf { tenant, before: before.map(charge_id), limit }
}

/// The numbers of the charges that the rows are about.
async fn numbers<S: Store>(store: &Arc<S>, what: Scan) -> Vec<i64> {
    let number = |row: Row| match row {
        Row::Claim(claim) => claim.subject,
        Row::Charge(charge) => charge.id,
        Row::Outbox(outbox) => outbox.charge,
        Row::Audit(record) => record.subject,
        Row::Tenant(_) | Row::ApiKey(_) | Row::Slot(_) => panic!("{row:?} is about no charge"),
    };
    let rows = scan(&**store, what).await;
    rows.into_iter().map(number).map(ChargeId::to_i64).collect()
}

/// Seven charges of one tenant between seven of another, written out of order.
async fn two_tenants<S: Store>(store: &Arc<S>) {
    let order = [5, 14, 3, 9, 1, 12, 7, 2, 13, 4, 11, 6, 10, 8];
    let all = order.into_iter().map(|number| charge_of(if number % 2 == 0 { OTHER } else { TENANT }, number));
    commit(&**store, all.fold(set(1), ChangeSet::insert)).await;
}

pub async fn charges_of_a_tenant_newest_first<S: Store>(store: &Arc<S>) {
    two_tenants(store).await;
    assert_eq!(numbers(store, of(TENANT, None, 99)).await, [13, 11, 9, 7, 5, 3, 1]);
    assert_eq!(numbers(store, of(OTHER, None, 99)).await, [14, 12, 10, 8, 6, 4, 2]);
    assert_eq!(numbers(store, of(TenantId::from_i64(3), None, 99)).await, Vec::<i64>::new());
    // The place to start from is exclusive and need not be a charge of this tenant.
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
        // Newer charges come between the pages; they belong before the first page.
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
    let timeline = |charge, after, limit| Scan::Timeline { charge: charge_id(charge), after, limit };
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

pub async fn claims_by_what_they_made<S: Store>(store: &Arc<S>) {
    let all = [4, 1, 5, 3, 2].into_iter().map(claim);
    commit(&**store, all.fold(set(1), ChangeSet::insert)).await;
    let claims = |after: Option<i64>, limit| Scan::Claims { after: after.map(charge_id), limit };
    assert_eq!(numbers(store, claims(None, 99)).await, [1, 2, 3, 4, 5]);
    assert_eq!(numbers(store, claims(None, 2)).await, [1, 2]);
    assert_eq!(numbers(store, claims(Some(2), 2)).await, [3, 4]);
    assert_eq!(numbers(store, claims(Some(5), 2)).await, Vec::<i64>::new());
}

pub async fn charges_and_work_by_charge<S: Store>(store: &Arc<S>) {
    two_tenants(store).await;
    let all = [4, 1, 3].into_iter().map(outbox);
    commit(&**store, all.fold(set(2), ChangeSet::insert)).await;
    let charges = |after: Option<i64>, limit| Scan::Charges { after: after.map(charge_id), limit };
    let work = |after: Option<i64>, limit| Scan::Outbox { after: after.map(charge_id), limit };
    assert_eq!(numbers(store, charges(None, 99)).await, (1..=14).collect::<Vec<_>>());
    assert_eq!(numbers(store, charges(Some(3), 3)).await, [4, 5, 6]);
    assert_eq!(numbers(store, charges(Some(14), 3)).await, Vec::<i64>::new());
    assert_eq!(numbers(store, work(None, 99)).await, [1, 3, 4]);
    assert_eq!(numbers(store, work(Some(1), 1)).await, [3]);
    assert_eq!(numbers(store, work(Some(4), 1)).await, Vec::<i64>::new());
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

pub async fn a_scan_tells_the_last_state<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(charge(1)).insert(outbox(1))).await;
    let succeeded = Charge { status: Status::Succeeded, revision: 2, ..charge(1) };
    let settling = set(2).replace(succeeded.clone(), 1).remove(RowKey::Outbox(charge_id(1)), 1);
    commit(&**store, settling).await;
    assert_eq!(scan(&**store, of(TENANT, None, 9)).await, [succeeded.into()]);
    let work = Scan::Outbox { after: None, limit: 9 };
    assert_eq!(scan(&**store, work).await, []);
}

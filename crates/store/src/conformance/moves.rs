//! What the other rows may become: a store refuses what would rewrite the past, whoever asks.

use super::ask::{commit, refused, row};
use super::fixtures::{api_key, at, charge, outbox, set, slot, tenant, tenant_name};
use crate::port::{Reason, Store};
use crate::row::Row;
use counterfoil_core::outbox::{History, Outbox, Park, Pinned};
use counterfoil_core::payments::charge::{Charge, Status};
use counterfoil_core::tenancy::{ApiKey, Tenant};
use counterfoil_core::types::id::{Slot, TenantId};
use counterfoil_core::types::mask::Masked;
use std::sync::Arc;

const STATUSES: [Status; 5] =
    [Status::Processing, Status::RequiresCapture, Status::Succeeded, Status::Failed, Status::Parked];

fn charge_in(number: i64, status: Status, revision: u64) -> Charge {
    Charge { status, revision, ..charge(number) }
}

/// `next` may not stand in the place of `there`.
async fn stays<S: Store>(store: &Arc<S>, there: &Row, next: impl Into<Row>) {
    let found = refused(&**store, set(999).replace(next, there.revision()), Reason::IllegalMove).await;
    assert_eq!(found.as_ref(), Some(there));
    assert_eq!(row(&**store, there.key()).await.as_ref(), Some(there));
}

/// `next` may, and then does.
async fn becomes<S: Store>(store: &Arc<S>, number: i64, there: &Row, next: impl Into<Row>) {
    let next = next.into();
    commit(&**store, set(number).replace(next.clone(), there.revision())).await;
    assert_eq!(row(&**store, there.key()).await, Some(next));
}

async fn inserted<S: Store>(store: &Arc<S>, number: i64, first: impl Into<Row>) -> Row {
    let first = first.into();
    commit(&**store, set(number).insert(first.clone())).await;
    first
}

pub async fn a_settled_charge_stays_settled<S: Store>(store: &Arc<S>) {
    for (number, settled) in (1..).zip([Status::RequiresCapture, Status::Succeeded, Status::Failed]) {
        let there = inserted(store, number, charge_in(number, settled, 1)).await;
        for other in STATUSES.into_iter().filter(|other| *other != settled) {
            stays(store, &there, charge_in(number, other, 2)).await;
        }
        becomes(store, number + 10, &there, charge_in(number, settled, 2)).await;
    }
}

pub async fn an_open_charge_may_become_anything<S: Store>(store: &Arc<S>) {
    let mut number = 0;
    for open in [Status::Processing, Status::Parked] {
        for next in STATUSES {
            number += 1;
            let there = inserted(store, number, charge_in(number, open, 1)).await;
            becomes(store, number + 100, &there, charge_in(number, next, 2)).await;
        }
    }
}

pub async fn an_order_is_fixed<S: Store>(store: &Arc<S>) {
    let there = inserted(store, 1, charge(1)).await;
    let mut held = charge_in(1, Status::Succeeded, 2);
    held.order.capture = false;
    stays(store, &there, held).await;
    let mut told = charge_in(1, Status::Succeeded, 2);
    told.order.metadata.insert("late".into(), Masked::new("word".into()));
    stays(store, &there, told).await;
    let stolen = Charge { tenant: TenantId::from_i64(2), ..charge_in(1, Status::Processing, 2) };
    stays(store, &there, stolen).await;
}

pub async fn work_stays_with_its_provider<S: Store>(store: &Arc<S>) {
    let there = inserted(store, 1, outbox(1)).await;
    let pinned = outbox(1).provider;
    for provider in [
        Pinned { endpoint: "http://elsewhere".into(), ..pinned.clone() },
        Pinned { profile: "adyen".into(), ..pinned },
    ] {
        let moved = Outbox { provider, revision: 2, ..outbox(1) };
        stays(store, &there, moved).await;
    }
    let parked = Outbox { parked: Some(Park::NoEvidence), due_at: at(9), revision: 2, ..outbox(1) };
    becomes(store, 2, &there, parked).await;
}

pub async fn a_generation_never_falls<S: Store>(store: &Arc<S>) {
    let generation = |generation, revision| Outbox {
        history: History { generation, ..outbox(1).history },
        revision,
        ..outbox(1)
    };
    let there = inserted(store, 1, generation(2, 1)).await;
    stays(store, &there, generation(1, 2)).await;
    becomes(store, 2, &there, generation(3, 2)).await;
}

pub async fn a_revoked_key_stays_revoked<S: Store>(store: &Arc<S>) {
    let key = |revoked_at, revision| ApiKey { revoked_at, revision, ..api_key(1) };
    let live = inserted(store, 1, key(None, 1)).await;
    becomes(store, 2, &live, key(Some(at(1)), 2)).await;
    let revoked = Row::from(key(Some(at(1)), 2));
    stays(store, &revoked, key(None, 3)).await;
    stays(store, &revoked, key(Some(at(2)), 3)).await;
    let stolen = ApiKey { tenant: tenant_name("other"), ..key(Some(at(1)), 3) };
    stays(store, &revoked, stolen).await;
}

pub async fn a_name_keeps_its_tenant<S: Store>(store: &Arc<S>) {
    let there = inserted(store, 1, tenant("acme", 1)).await;
    let taken = Tenant { revision: 2, ..tenant("acme", 2) };
    stays(store, &there, taken).await;
}

pub async fn a_slot_epoch_never_falls<S: Store>(store: &Arc<S>) {
    let held = |epoch, revision| Slot { epoch, revision, ..slot(1) };
    let there = inserted(store, 1, held(2, 1)).await;
    stays(store, &there, held(1, 2)).await;
    becomes(store, 2, &there, held(2, 2)).await;
    becomes(store, 3, &held(2, 2).into(), held(3, 3)).await;
}

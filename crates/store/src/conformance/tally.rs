//! Counts of the outstanding work, the source of alarms.

use super::ask::commit;
use super::fixtures::{TENANT, at, charge_id, set, work_due};
use crate::port::{Store, Tally};
use crate::row::RowKey;
use counterfoil_core::outbox::{Outbox, ParkReason};
use counterfoil_core::types::time::Time;
use std::sync::Arc;

async fn tally<S: Store>(store: &Arc<S>, now: Time) -> Tally {
    store.tally(now).await.expect("a healthy store counts")
}

pub async fn an_empty_store_has_no_work<S: Store>(store: &Arc<S>) {
    assert_eq!(tally(store, at(0)).await, Tally::default());
    commit(&**store, set(1).insert(work_due(1, 0))).await;
    commit(&**store, set(2).remove(RowKey::Outbox(TENANT, charge_id(1).into()), 1)).await;
    assert_eq!(tally(store, at(999_999)).await, Tally::default());
}

pub async fn work_is_counted<S: Store>(store: &Arc<S>) {
    let parked = |number, parked| Outbox { parked: Some(parked), ..work_due(number, 0) };
    let all = set(1)
        .insert(work_due(1, 1_000))
        .insert(work_due(2, 50_000))
        .insert(work_due(3, 500_000))
        .insert(parked(4, ParkReason::NoEvidence))
        .insert(parked(5, ParkReason::AnswerDiffers));
    commit(&**store, all).await;
    let expected = Tally { pending: 3, parked: 2, stuck: 1, lag_ms: 99_000 };
    assert_eq!(tally(store, at(100_000)).await, expected);
    let early = Tally { stuck: 0, lag_ms: 0, ..expected };
    assert_eq!(tally(store, at(0)).await, early);
}

pub async fn a_minute_late_is_not_stuck_yet<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(work_due(1, 0))).await;
    for (ms, stuck) in [(59_999, 0), (60_000, 0), (60_001, 1)] {
        let expected = Tally { pending: 1, parked: 0, stuck, lag_ms: ms };
        assert_eq!(tally(store, at(ms)).await, expected);
    }
}

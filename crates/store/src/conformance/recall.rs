//! Recalling a claim without a round trip: a store may not know, but what it says is committed and the latest.

use super::ask::{commit, refused, row};
use super::fixtures::{at, claim, claim_id, set, settled};
use crate::port::{Reason, Store};
use crate::row::{Row, RowKey};
use counterfoil_core::idempotency::claim::Event;
use std::sync::Arc;

/// Asks for the claim and holds it against what is read.
async fn agrees<S: Store>(store: &Arc<S>, number: i64) {
    if let Some(recalled) = store.recall(claim_id(number)) {
        let read = row(&**store, RowKey::Claim(claim_id(number))).await;
        assert_eq!(Some(Row::from(recalled)), read);
    }
}

pub async fn a_recalled_claim_is_the_committed_one<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(claim(1))).await;
    agrees(store, 1).await;
    let done = claim(1).on(Event::Completed(settled(b"done", at(1)))).expect("a legal move");
    commit(&**store, set(2).replace(done.clone(), 1)).await;
    agrees(store, 1).await;
    // A refused write must not be recalled either.
    let found = refused(&**store, set(3).insert(claim(1)), Reason::Present).await;
    assert_eq!(found, Some(done.into()));
    agrees(store, 1).await;
}

pub async fn a_removed_claim_is_not_recalled<S: Store>(store: &Arc<S>) {
    let done = claim(1).on(Event::Completed(settled(b"done", at(1)))).expect("a legal move");
    commit(&**store, set(1).insert(done.clone())).await;
    commit(&**store, set(2).remove(RowKey::Claim(done.id), done.revision)).await;
    assert_eq!(store.recall(done.id), None);
}

pub async fn an_unknown_claim_is_not_recalled<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(claim(1))).await;
    assert_eq!(store.recall(claim_id(2)), None);
}

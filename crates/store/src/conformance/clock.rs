//! The store's clock.

use super::ask::commit;
use super::fixtures::{charge, set};
use crate::port::Store;
use std::sync::Arc;

pub async fn time_never_goes_back<S: Store>(store: &Arc<S>) {
    let mut last = store.now();
    for number in 1..=20 {
        commit(&**store, set(number).insert(charge(number))).await;
        for _ in 0..100 {
            let now = store.now();
            assert!(now >= last, "from {last:?} to {now:?}");
            last = now;
        }
    }
}

pub async fn receipts_carry_the_store_time<S: Store>(store: &Arc<S>) {
    for number in 1..=20 {
        let before = store.now();
        let receipt = commit(&**store, set(number).insert(charge(number))).await;
        let after = store.now();
        assert!(before <= receipt.at && receipt.at <= after, "{before:?} {receipt:?} {after:?}");
    }
}

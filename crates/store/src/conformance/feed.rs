//! The feed: every committed set once, in one dense order. A lookup by id finds every set.

use super::ask::{commit, refused, together, touched};
use super::fixtures::ledger::{FLOOR, moving, posted};
use super::fixtures::{TENANT, audit, charge, charge_id, claim, opening, outbox, set};
use super::variants::one_of_each;
use crate::change::{Change, ChangeSet, Move};
use crate::port::{CommitReceipt, Committed, Position, RefusalReason, Store};
use crate::row::RowKey;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::types::id::SetId;
use counterfoil_core::types::limits::SCAN_MAX;
use std::sync::Arc;

async fn feed<S: Store>(store: &Arc<S>, after: u64, limit: usize) -> Vec<Committed> {
    store.feed(Position(after), limit).await.expect("a healthy store feeds")
}

pub async fn positions_are_dense_from_one<S: Store>(store: &Arc<S>) {
    assert_eq!(feed(store, 0, 10).await, []);
    let mut receipts: Vec<CommitReceipt> = Vec::new();
    for number in 1..=5 {
        receipts.push(commit(&**store, opening(number)).await);
        refused(&**store, opening(number), RefusalReason::Present).await;
    }
    let positions: Vec<u64> = receipts.iter().map(|receipt| receipt.position.0).collect();
    assert_eq!(positions, [1, 2, 3, 4, 5], "a refusal must not use up a position");
    let received: Vec<CommitReceipt> = feed(store, 0, 10).await.iter().map(|entry| entry.receipt).collect();
    assert_eq!(received, receipts);
}

pub async fn the_feed_reports_touched_rows<S: Store>(store: &Arc<S>) {
    let sets = [
        opening(1),
        set(2)
            .remove(RowKey::Outbox(TENANT, charge_id(1).into()), 1)
            .replace(Charge { revision: 2, ..charge(1) }, 1)
            .insert(audit(1, 1)),
        set(3).insert(outbox(1)),
    ];
    for set in &sets {
        commit(&**store, set.clone()).await;
    }
    let received: Vec<(SetId, Vec<RowKey>)> =
        feed(store, 0, 10).await.into_iter().map(|entry| (entry.set, entry.touched)).collect();
    let expected: Vec<(SetId, Vec<RowKey>)> =
        sets.iter().map(|set| (set.id(), set.changes().iter().map(Change::key).collect())).collect();
    assert_eq!(received, expected);
}

pub async fn the_feed_reports_every_kind_of_row<S: Store>(store: &Arc<S>) {
    let all = one_of_each().into_iter().fold(set(1), ChangeSet::insert);
    let motion = Move { shard: u8::MAX, ..moving(i64::MAX, FLOOR, posted(1)) };
    let sets = [all, set(2).shift(motion)];
    for set in &sets {
        commit(&**store, set.clone()).await;
    }
    let expected = sets.map(|set| set.changes().iter().map(Change::key).collect::<Vec<_>>());
    assert_eq!(touched(&**store).await, expected);
}

pub async fn the_feed_goes_on_after_a_position<S: Store>(store: &Arc<S>) {
    for number in 1..=5 {
        commit(&**store, opening(number)).await;
    }
    for (after, limit, expected) in [
        (0, 2, vec![1, 2]),
        (2, 2, vec![3, 4]),
        (4, 2, vec![5]),
        (5, 2, vec![]),
        (99, 2, vec![]),
        (u64::MAX, 2, vec![]),
        (0, 5, vec![1, 2, 3, 4, 5]),
        (3, 99, vec![4, 5]),
    ] {
        let sets: Vec<i64> = feed(store, after, limit).await.iter().map(|entry| entry.set.to_i64()).collect();
        assert_eq!(sets, expected, "after {after}, at most {limit}");
    }
}

pub async fn a_refused_set_is_not_in_the_feed<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(claim(1))).await;
    refused(&**store, set(2).insert(claim(1)), RefusalReason::Present).await;
    refused(&**store, set(3), RefusalReason::Malformed).await;
    assert_eq!(feed(store, 0, 10).await.len(), 1);
    for refused in [2, 3] {
        assert_eq!(store.committed(SetId::from_i64(refused)).await, Ok(None));
    }
}

pub async fn a_commit_is_known_by_its_set<S: Store>(store: &Arc<S>) {
    let ids = [1, 7, i64::MAX];
    for id in ids {
        assert_eq!(store.committed(SetId::from_i64(id)).await, Ok(None));
    }
    for (number, id) in (1..).zip(ids) {
        let receipt = commit(&**store, set(id).insert(charge(number))).await;
        assert_eq!(store.committed(SetId::from_i64(id)).await, Ok(Some(receipt)));
    }
    assert_eq!(store.committed(SetId::from_i64(2)).await, Ok(None));
}

pub async fn concurrent_commits_have_one_order<S: Store>(store: &Arc<S>) {
    let answers = together(store, (1..=200).map(opening).collect()).await;
    let feed = feed(store, 0, SCAN_MAX).await;
    assert_eq!(feed.len(), 200);
    for (position, entry) in (1..).zip(&feed) {
        assert_eq!(entry.receipt.position, Position(position));
        let index = usize::try_from(entry.set.to_i64() - 1).expect("sets are numbered from 1");
        let answer = answers.get(index).expect("only sets that were sent are in the feed");
        assert_eq!(answer, &Ok(entry.receipt), "the committer got another position or time");
    }
}

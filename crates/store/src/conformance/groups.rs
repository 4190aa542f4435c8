//! Sets: atomic, well-formed, and independent of refused neighbours.

use super::ask::{commit, refusal, row, rows, together, touched};
use super::fixtures::{TENANT, audit, charge, charge_id, claim, opening, outbox, set};
use crate::change::{Change, ChangeSet};
use crate::port::{CommitRefusal, RefusalReason, Store};
use crate::row::{Row, RowKey};
use counterfoil_core::outbox::Outbox;
use counterfoil_core::payments::charge::{Charge, ChargeStatus};
use counterfoil_core::types::limits::CHANGES_PER_SET_MAX;
use std::sync::Arc;
use tokio::task::{JoinSet, yield_now};

pub async fn a_refused_set_leaves_nothing<S: Store>(store: &Arc<S>) {
    commit(&**store, opening(1)).await;
    let succeeded = Charge { status: ChargeStatus::Succeeded, revision: 2, ..charge(1) };
    // Every change before the last one is valid: an insertion, a replacement and a removal.
    let almost = set(2)
        .insert(charge(2))
        .replace(succeeded, 1)
        .remove(RowKey::Outbox(TENANT, charge_id(1).into()), 1)
        .insert(claim(1));
    let refusal = refusal(&**store, almost.clone()).await;
    let expected = CommitRefusal { change: 3, reason: RefusalReason::Present, found: Some(claim(1).into()) };
    assert_eq!(refusal, expected);
    let after = rows(&**store, almost.changes().iter().map(Change::key).collect()).await;
    let before = [None, Some(charge(1).into()), Some(outbox(1).into()), Some(claim(1).into())];
    assert_eq!(after, before);
    assert_eq!(touched(&**store).await.len(), 1, "a refused set must not be in the feed");
    assert_eq!(store.committed(almost.id()).await, Ok(None));
}

pub async fn the_first_refused_change_is_named<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(charge(1)).insert(charge(2))).await;
    let twice_wrong =
        set(2).insert(charge(3)).remove(RowKey::Charge(TENANT, charge_id(2)), 1).insert(charge(1));
    let expected =
        CommitRefusal { change: 1, reason: RefusalReason::IllegalMove, found: Some(charge(2).into()) };
    assert_eq!(refusal(&**store, twice_wrong).await, expected);
}

async fn is_malformed<S: Store>(store: &Arc<S>, changes: ChangeSet, change: usize) {
    let id = changes.id();
    let expected = CommitRefusal { change, reason: RefusalReason::Malformed, found: None };
    assert_eq!(refusal(&**store, changes).await, expected);
    assert_eq!(store.committed(id).await, Ok(None));
    assert_eq!(touched(&**store).await, Vec::<Vec<RowKey>>::new());
}

pub async fn an_empty_set_is_malformed<S: Store>(store: &Arc<S>) {
    is_malformed(store, set(1), 0).await;
}

pub async fn a_hundred_changes_are_malformed<S: Store>(store: &Arc<S>) {
    let many = (1..=100).map(charge).fold(set(1), ChangeSet::insert);
    assert!(many.changes().len() > CHANGES_PER_SET_MAX);
    is_malformed(store, many, 0).await;
    assert_eq!(row(&**store, RowKey::Charge(TENANT, charge_id(1))).await, None);
}

pub async fn ninety_nine_changes_commit<S: Store>(store: &Arc<S>) {
    let many = (1..=99).map(charge).fold(set(1), ChangeSet::insert);
    assert_eq!(many.changes().len(), CHANGES_PER_SET_MAX);
    commit(&**store, many.clone()).await;
    let keys: Vec<RowKey> = many.changes().iter().map(Change::key).collect();
    assert_eq!(touched(&**store).await, vec![keys.clone()]);
    let expected: Vec<Option<Row>> = (1..=99).map(|number| Some(charge(number).into())).collect();
    assert_eq!(rows(&**store, keys).await, expected);
}

pub async fn a_row_named_twice_is_malformed<S: Store>(store: &Arc<S>) {
    let twice = set(1).insert(outbox(1)).insert(charge(1)).insert(charge(1));
    is_malformed(store, twice, 2).await;
    let come_and_gone = set(2).insert(outbox(1)).remove(RowKey::Outbox(TENANT, charge_id(1).into()), 1);
    is_malformed(store, come_and_gone, 1).await;
}

pub async fn inserts_replaces_and_removals_travel_together<S: Store>(store: &Arc<S>) {
    commit(&**store, opening(1)).await;
    let succeeded = Charge { status: ChargeStatus::Succeeded, revision: 2, ..charge(1) };
    let settling = set(2)
        .replace(succeeded.clone(), 1)
        .remove(RowKey::Outbox(TENANT, charge_id(1).into()), 1)
        .insert(audit(1, 1));
    commit(&**store, settling.clone()).await;
    let after = rows(&**store, settling.changes().iter().map(Change::key).collect()).await;
    assert_eq!(after, [Some(succeeded.into()), None, Some(audit(1, 1).into())]);
}

pub async fn one_refusal_never_fails_its_neighbours<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1_000).insert(claim(0))).await;
    let sets: Vec<ChangeSet> = (1..=200)
        .map(|number| {
            let fine = opening(number);
            if number % 3 == 0 { fine.insert(claim(0)) } else { fine }
        })
        .collect();
    let answers = together(store, sets.clone()).await;
    for ((number, sent), answer) in (1_i64..).zip(&sets).zip(answers) {
        let there = row(&**store, RowKey::Charge(TENANT, charge_id(number))).await;
        if number % 3 == 0 {
            let expected =
                CommitRefusal { change: 4, reason: RefusalReason::Present, found: Some(claim(0).into()) };
            assert_eq!(answer, Err(Box::new(expected)));
            assert_eq!(there, None);
        } else {
            let receipt = answer.expect("every precondition holds");
            assert_eq!(store.committed(sent.id()).await, Ok(Some(receipt)));
            assert_eq!(there, Some(charge(number).into()));
        }
    }
}

/// Two rows always change together. A reader must never see the first ahead of the second.
pub async fn reads_never_see_half_a_set<S: Store>(store: &Arc<S>) {
    let at_revision = |revision| {
        let charge = Charge { revision, ..charge(1) };
        let outbox = Outbox { revision, ..outbox(1) };
        (charge, outbox)
    };
    let (first_charge, first_outbox) = at_revision(1);
    commit(&**store, set(1).insert(first_charge).insert(first_outbox)).await;
    let writer = {
        let store = Arc::clone(store);
        let mut writer = JoinSet::new();
        writer.spawn(async move {
            for revision in 2..=100 {
                let (charge, outbox) = at_revision(revision);
                let number = i64::try_from(revision).expect("a small number");
                let both = set(number).replace(charge, revision - 1).replace(outbox, revision - 1);
                commit(&*store, both).await;
            }
        });
        writer
    };
    let keys = vec![RowKey::Charge(TENANT, charge_id(1)), RowKey::Outbox(TENANT, charge_id(1).into())];
    let mut last = 0;
    while last < 100 {
        let both = rows(&**store, keys.clone()).await;
        let revisions: Vec<u64> = both.iter().flatten().map(Row::revision).collect();
        let [charge, outbox] = revisions[..] else { panic!("a row is missing: {both:?}") };
        assert_eq!(charge, outbox, "half a set was read");
        assert!(charge >= last, "a read went back from {last} to {charge}");
        last = charge;
        yield_now().await;
    }
    writer.join_all().await;
}

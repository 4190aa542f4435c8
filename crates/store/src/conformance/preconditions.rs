//! The preconditions of changes, and the row that a refusal returns.

use super::ask::{commit, refused, row};
use super::fixtures::ledger::transaction_id;
use super::fixtures::{TENANT, audit, charge_id, outbox, set};
use super::variants::one_of_each;
use crate::change::ChangeSet;
use crate::port::{RefusalReason, Store};
use crate::row::{Row, RowKey};
use counterfoil_core::audit::AuditRecord;
use counterfoil_core::ledger::hold::HoldState;
use std::sync::Arc;

fn with_revision(row: &Row, revision: u64) -> Row {
    let mut row = row.clone();
    match &mut row {
        Row::Claim(claim) => claim.revision = revision,
        Row::Charge(charge) => charge.revision = revision,
        Row::Operation(operation) => operation.revision = revision,
        Row::Payout(payout) => payout.revision = revision,
        Row::Outbox(outbox) => outbox.revision = revision,
        Row::Audit(_)
        | Row::Name(_)
        | Row::Asset(_)
        | Row::Transaction(_)
        | Row::Reversal(_)
        | Row::Snapshot(_) => {}
        Row::Account(account) => account.revision = revision,
        Row::Balance(balance) => balance.revision = revision,
        Row::Hold(hold) => hold.revision = revision,
        Row::Cursor(cursor) => cursor.revision = revision,
        Row::Tenant(tenant) => tenant.revision = revision,
        Row::ApiKey(key) => key.revision = revision,
        Row::Slot(slot) => slot.revision = revision,
    }
    row
}

/// A legal successor of the row, at that revision.
fn following(row: &Row, revision: u64) -> Row {
    let mut next = with_revision(row, revision);
    if let Row::Hold(hold) = &mut next {
        hold.state = HoldState::Voided { by: transaction_id(1) };
    }
    next
}

/// Writes a row of each mutable kind, at revision 5.
async fn at_revision_five<S: Store>(store: &Arc<S>) -> Vec<Row> {
    let rows: Vec<Row> =
        one_of_each().iter().map(|row| with_revision(row, 5)).filter(|row| row.revision() == 5).collect();
    let all = rows.iter().cloned().fold(set(1), ChangeSet::insert);
    commit(&**store, all).await;
    rows
}

pub async fn an_insertion_finds_the_existing_row<S: Store>(store: &Arc<S>) {
    let all = one_of_each().into_iter().fold(set(1), ChangeSet::insert);
    commit(&**store, all).await;
    for there in one_of_each() {
        let found = refused(&**store, set(2).insert(with_revision(&there, 9)), RefusalReason::Present).await;
        assert_eq!(found.as_ref(), Some(&there));
        assert_eq!(row(&**store, there.key()).await, Some(there));
    }
}

pub async fn a_replacement_of_nothing_is_refused<S: Store>(store: &Arc<S>) {
    for absent in one_of_each() {
        let key = absent.key();
        let found =
            refused(&**store, set(1).replace(with_revision(&absent, 2), 1), RefusalReason::Absent).await;
        assert_eq!(found, None);
        assert_eq!(row(&**store, key).await, None);
    }
}

pub async fn a_replacement_of_another_revision_finds_the_row<S: Store>(store: &Arc<S>) {
    for there in at_revision_five(store).await {
        for expect in [0, 4, 6, u64::MAX] {
            let next = with_revision(&there, 7);
            let found = refused(&**store, set(2).replace(next, expect), RefusalReason::Stale).await;
            assert_eq!(found.as_ref(), Some(&there), "expected revision {expect}");
        }
        assert_eq!(row(&**store, there.key()).await, Some(there));
    }
}

pub async fn a_revision_must_grow<S: Store>(store: &Arc<S>) {
    for (number, there) in (2..).zip(at_revision_five(store).await) {
        for revision in [0, 4, 5] {
            let next = following(&there, revision);
            let found = refused(&**store, set(100).replace(next, 5), RefusalReason::IllegalMove).await;
            assert_eq!(found.as_ref(), Some(&there), "to revision {revision}");
        }
        // A balance is never replaced, at any revision.
        if matches!(there, Row::Balance(_)) {
            continue;
        }
        // Revisions may have gaps; the new one only has to differ from all earlier ones.
        let next = following(&there, 9);
        commit(&**store, set(number).replace(next.clone(), 5)).await;
        assert_eq!(row(&**store, there.key()).await, Some(next));
    }
}

pub async fn a_removal_of_nothing_is_refused<S: Store>(store: &Arc<S>) {
    for absent in one_of_each() {
        let found = refused(&**store, set(1).remove(absent.key(), 1), RefusalReason::Absent).await;
        assert_eq!(found, None);
    }
}

pub async fn a_removal_of_another_revision_finds_the_row<S: Store>(store: &Arc<S>) {
    for there in at_revision_five(store).await {
        for expect in [0, 4, 6] {
            let found = refused(&**store, set(2).remove(there.key(), expect), RefusalReason::Stale).await;
            assert_eq!(found.as_ref(), Some(&there));
        }
        assert_eq!(row(&**store, there.key()).await, Some(there));
    }
}

pub async fn a_removed_row_is_gone_and_may_come_again<S: Store>(store: &Arc<S>) {
    let key = RowKey::Outbox(TENANT, charge_id(1).into());
    commit(&**store, set(1).insert(outbox(1)).insert(outbox(2))).await;
    commit(&**store, set(2).remove(key.clone(), 1)).await;
    assert_eq!(row(&**store, key.clone()).await, None);
    assert_eq!(row(&**store, RowKey::Outbox(TENANT, charge_id(2).into())).await, Some(outbox(2).into()));
    assert_eq!(refused(&**store, set(3).remove(key.clone(), 1), RefusalReason::Absent).await, None);
    commit(&**store, set(4).insert(outbox(1))).await;
    assert_eq!(row(&**store, key).await, Some(outbox(1).into()));
}

pub async fn history_is_never_removed<S: Store>(store: &Arc<S>) {
    let all = one_of_each().into_iter().fold(set(1), ChangeSet::insert);
    commit(&**store, all).await;
    for there in one_of_each() {
        if matches!(there, Row::Outbox(_) | Row::Snapshot(_)) {
            continue;
        }
        let found = refused(&**store, set(2).remove(there.key(), 1), RefusalReason::IllegalMove).await;
        assert_eq!(found.as_ref(), Some(&there));
        assert_eq!(row(&**store, there.key()).await, Some(there));
    }
    let rewritten = AuditRecord { detail: "rewritten".into(), ..audit(1, 0) };
    let found = refused(&**store, set(3).replace(rewritten, 1), RefusalReason::IllegalMove).await;
    assert_eq!(found, Some(audit(1, 0).into()));
}

//! Rows of every kind and variant read back exactly as written.

use super::ask::{commit, refused, row, rows, scan};
use super::fixtures::ledger::account_id;
use super::fixtures::{TENANT, at, charge, charge_id, claim, claim_id, claim_in, outbox, set, settled};
use super::variants::{self, ledger};
use crate::change::ChangeSet;
use crate::port::{EntryPage, Position, RefusalReason, Scan, Store, Upto};
use crate::row::{Row, RowKey};
use counterfoil_core::idempotency::claim::ClaimState;
use counterfoil_core::ledger::hold::{self, Hold};
use counterfoil_core::payments::operation::{Operation, OperationStatus};
use counterfoil_core::payments::payout::{self, Payout};
use counterfoil_core::types::id::TenantId;
use counterfoil_core::types::limits::CHANGES_PER_SET_MAX;
use counterfoil_core::types::ulid::Ulid;
use std::sync::Arc;

/// Writes the rows in sets of the largest size, then reads each alone and all together.
async fn survive<S: Store>(store: &Arc<S>, written: Vec<Row>) {
    for (number, chunk) in (1..).zip(written.chunks(CHANGES_PER_SET_MAX)) {
        let changes = chunk.iter().cloned().fold(set(number), ChangeSet::insert);
        commit(&**store, changes).await;
    }
    for expected in &written {
        assert_eq!(row(&**store, expected.key()).await.as_ref(), Some(expected));
    }
    let all = rows(&**store, written.iter().map(Row::key).collect()).await;
    assert_eq!(all, written.into_iter().map(Some).collect::<Vec<_>>());
}

pub async fn claims_read_back_in_every_state<S: Store>(store: &Arc<S>) {
    survive(store, variants::claims().into_iter().map(Row::from).collect()).await;
}

pub async fn reply_bytes_read_back_unchanged<S: Store>(store: &Arc<S>) {
    let claims = (1..).zip(variants::bodies()).map(|(number, body)| {
        let claim = claim_in(number, ClaimState::Completed(settled(&body, at(1))));
        let kept = claim.state.settled().map(|settled| settled.reply.body.to_vec());
        assert_eq!(kept, Some(body));
        Row::from(claim)
    });
    survive(store, claims.collect()).await;
}

pub async fn charges_read_back_in_every_variant<S: Store>(store: &Arc<S>) {
    survive(store, variants::charges().into_iter().map(Row::from).collect()).await;
}

pub async fn operations_read_back_in_every_variant<S: Store>(store: &Arc<S>) {
    survive(store, variants::operations().into_iter().map(Row::from).collect()).await;
}

pub async fn payouts_read_back_in_every_variant<S: Store>(store: &Arc<S>) {
    survive(store, variants::payouts().into_iter().map(Row::from).collect()).await;
}

pub async fn outbox_rows_read_back_in_every_variant<S: Store>(store: &Arc<S>) {
    survive(store, variants::work().into_iter().map(Row::from).collect()).await;
}

pub async fn audit_records_read_back_in_every_kind<S: Store>(store: &Arc<S>) {
    survive(store, variants::records().into_iter().map(Row::from).collect()).await;
}

pub async fn tenants_keys_and_slots_read_back<S: Store>(store: &Arc<S>) {
    let tenants = variants::tenants().into_iter().map(Row::from);
    let keys = variants::api_keys().into_iter().map(Row::from);
    let slots = variants::slots().into_iter().map(Row::from);
    survive(store, tenants.chain(keys).chain(slots).collect()).await;
}

pub async fn accounts_names_and_assets_read_back_in_every_variant<S: Store>(store: &Arc<S>) {
    let accounts = ledger::accounts().into_iter().map(Row::from);
    let names = ledger::names().into_iter().map(Row::from);
    let assets = ledger::definitions().into_iter().map(Row::from);
    survive(store, accounts.chain(names).chain(assets).collect()).await;
}

pub async fn balances_read_back_as_they_begin<S: Store>(store: &Arc<S>) {
    survive(store, ledger::balances().into_iter().map(Row::from).collect()).await;
}

pub async fn transactions_and_reversals_read_back_in_every_variant<S: Store>(store: &Arc<S>) {
    let transactions = ledger::transactions().into_iter().map(Row::from);
    let reversals = ledger::reversals().into_iter().map(Row::from);
    survive(store, transactions.chain(reversals).collect()).await;
}

pub async fn holds_read_back_in_every_state<S: Store>(store: &Arc<S>) {
    survive(store, ledger::holds().into_iter().map(Row::from).collect()).await;
}

pub async fn snapshots_read_back_to_the_edges_of_their_sums<S: Store>(store: &Arc<S>) {
    survive(store, ledger::snapshots().into_iter().map(Row::from).collect()).await;
}

pub async fn a_cursor_reads_back_at_every_position<S: Store>(store: &Arc<S>) {
    let mut expect = None;
    for (number, cursor) in (1..).zip(ledger::cursors()) {
        let next = match expect {
            None => set(number).insert(cursor),
            Some(revision) => set(number).replace(cursor, revision),
        };
        commit(&**store, next).await;
        assert_eq!(row(&**store, RowKey::Cursor(cursor.reader)).await, Some(cursor.into()));
        expect = Some(cursor.revision);
    }
    assert!(expect.is_some());
}

/// Takes claims, charges and holds through every legal successor of the first state.
pub async fn replaced_rows_read_back_as_last_written<S: Store>(store: &Arc<S>) {
    let mut number = 0;
    for state in variants::states() {
        if matches!(state, ClaimState::Expired { .. }) {
            continue;
        }
        number += 1;
        let first = claim(number);
        let mut next = claim_in(number, state);
        next.revision = 2;
        // Every state may follow a claim in flight that changes hands.
        next.fence = first.fence + 1;
        commit(&**store, set(number * 2).insert(first)).await;
        commit(&**store, set(number * 2 + 1).replace(next.clone(), 1)).await;
        assert_eq!(row(&**store, RowKey::Claim(next.tenant, next.id)).await, Some(next.into()));
    }
    for last in variants::charges() {
        number += 1;
        let mut first = charge(last.id.to_i64());
        first.order = last.order.clone();
        let mut next = last;
        next.revision = 2;
        commit(&**store, set(number * 2).insert(first)).await;
        commit(&**store, set(number * 2 + 1).replace(next.clone(), 1)).await;
        assert_eq!(row(&**store, RowKey::Charge(next.tenant, next.id)).await, Some(next.into()));
    }
    for last in variants::operations() {
        number += 1;
        let first = Operation {
            status: OperationStatus::Processing,
            provider_reference: None,
            failure: None,
            ..last.clone()
        };
        let next = Operation { revision: 2, ..last };
        commit(&**store, set(number * 2).insert(first)).await;
        commit(&**store, set(number * 2 + 1).replace(next.clone(), 1)).await;
        assert_eq!(row(&**store, RowKey::Operation(next.tenant, next.id)).await, Some(next.into()));
    }
    for last in variants::payouts() {
        number += 1;
        let status = payout::PayoutStatus::Processing;
        let first = Payout { status, provider_reference: None, failure: None, ..last.clone() };
        let next = Payout { revision: 2, ..last };
        commit(&**store, set(number * 2).insert(first)).await;
        commit(&**store, set(number * 2 + 1).replace(next.clone(), 1)).await;
        assert_eq!(row(&**store, RowKey::Payout(next.tenant, next.id)).await, Some(next.into()));
    }
    for last in ledger::holds().into_iter().filter(|hold| hold.state != hold::HoldState::Pending) {
        number += 1;
        let first = Hold { state: hold::HoldState::Pending, ..last.clone() };
        let next = Hold { revision: 2, ..last };
        commit(&**store, set(number * 2).insert(first)).await;
        commit(&**store, set(number * 2 + 1).replace(next.clone(), 1)).await;
        assert_eq!(row(&**store, RowKey::Hold(next.tenant, next.id)).await, Some(next.into()));
    }
}

pub async fn rows_come_in_the_order_asked<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(charge(1)).insert(charge(2)).insert(outbox(2))).await;
    let keys = vec![
        RowKey::Charge(TENANT, charge_id(2)),
        RowKey::Charge(TENANT, charge_id(3)),
        RowKey::Outbox(TENANT, charge_id(2).into()),
        RowKey::Outbox(TENANT, charge_id(1).into()),
        RowKey::Charge(TENANT, charge_id(1)),
        RowKey::Charge(TENANT, charge_id(2)),
    ];
    let expected = vec![
        Some(charge(2).into()),
        None,
        Some(outbox(2).into()),
        None,
        Some(charge(1).into()),
        Some(charge(2).into()),
    ];
    assert_eq!(rows(&**store, keys).await, expected);
    assert_eq!(rows(&**store, Vec::new()).await, Vec::new());
}

pub async fn rows_of_different_kinds_may_share_an_id<S: Store>(store: &Arc<S>) {
    let all = variants::one_of_each();
    let keys: Vec<RowKey> = all.iter().map(Row::key).collect();
    for (written, next) in all.iter().enumerate() {
        let number = i64::try_from(written).expect("a small number");
        commit(&**store, set(number).insert(next.clone())).await;
        let there = (0..).zip(&all).map(|(at, row)| (at <= written).then(|| row.clone()));
        assert_eq!(rows(&**store, keys.clone()).await, there.collect::<Vec<_>>());
    }
}

/// Isolation of tenants: another tenant's id is useless.
pub async fn another_tenants_id_finds_nothing<S: Store>(store: &Arc<S>) {
    let all = variants::one_of_each();
    commit(&**store, all.iter().cloned().fold(set(1), ChangeSet::insert)).await;
    let other = TenantId::from_i64(2);
    let owned: Vec<RowKey> = all.iter().map(Row::key).filter(|key| key.tenant() == Some(TENANT)).collect();
    assert_eq!(owned.len(), 14);
    let strange: Vec<RowKey> = owned.iter().map(|key| key.clone().with_tenant(other)).collect();
    assert_eq!(rows(&**store, strange.clone()).await, vec![None; strange.len()]);
    for (number, key) in (2..).zip(strange) {
        assert_eq!(refused(&**store, set(number).remove(key, 1), RefusalReason::Absent).await, None);
    }
    let (subject, account, limit) = (charge_id(1).into(), account_id(1), 9);
    for (tenant, there) in [(TENANT, 1), (other, 0)] {
        for ranged in [
            Scan::Timeline { tenant, subject, after: None, limit },
            Scan::OperationsOn { tenant, charge: charge_id(1), after: None, limit },
            Scan::Snapshots { tenant, account, upto: Upto::Now, limit },
        ] {
            assert_eq!(scan(&**store, ranged.clone()).await.len(), there, "{ranged:?}");
        }
        let entries = store.entries(tenant, account, EntryPage::After(Position(0)), limit).await;
        assert_eq!(entries.map(|entries| entries.len()), Ok(there));
        let sum = store.fold(tenant, account, Position(0), Upto::Now).await;
        assert_eq!(sum.map(|sum| sum.last.is_some()), Ok(there == 1));
    }
    assert!(rows(&**store, owned).await.iter().all(Option::is_some));
}

pub async fn nothing_is_read_from_an_empty_store<S: Store>(store: &Arc<S>) {
    let mut keys: Vec<RowKey> = variants::one_of_each().iter().map(Row::key).collect();
    keys.push(RowKey::Claim(TENANT, claim_id(9)));
    keys.push(RowKey::Audit(TENANT, charge_id(9).into(), Ulid::from_bytes([0; 16])));
    let found = rows(&**store, keys.clone()).await;
    assert_eq!(found, vec![None; keys.len()]);
}

pub async fn the_secret_stays_the_same<S: Store>(store: &Arc<S>) {
    let secret = *store.secret().reveal();
    assert_ne!(secret, [0; 32], "a secret nobody made");
    commit(&**store, set(1).insert(charge(1))).await;
    assert_eq!(*store.secret().reveal(), secret);
}

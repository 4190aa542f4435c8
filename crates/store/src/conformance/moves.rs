//! Transitions of all other rows: a store refuses every change that would rewrite the past.

use super::ask::{commit, refused, row};
use super::fixtures::ledger::{account, account_id, asset, cursor, definition, hold, name, transaction_id};
use super::fixtures::{
    api_key, at, charge, charge_id, claim, operation, outbox, payout, set, slot, tenant, tenant_name,
};
use crate::port::{RefusalReason, Store};
use crate::row::Row;
use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::ledger::account::{Account, AccountName, Guard, Side};
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::ledger::snapshot::Cursor;
use counterfoil_core::outbox::{Flow, History, Outbox, ParkReason, Payment, ProviderBinding, Saga};
use counterfoil_core::payments::charge::{Charge, ChargeStatus, ChargeSums};
use counterfoil_core::payments::operation::Operation;
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::tenancy::{ApiKey, Tenant};
use counterfoil_core::types::id::{AccountId, PayoutId, Slot, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use std::sync::Arc;

const STATUSES: [ChargeStatus; 8] = [
    ChargeStatus::Processing,
    ChargeStatus::RequiresCapture,
    ChargeStatus::Succeeded,
    ChargeStatus::Failed,
    ChargeStatus::Voided,
    ChargeStatus::Refunded,
    ChargeStatus::PartiallyRefunded,
    ChargeStatus::Parked,
];

fn charge_in(number: i64, status: ChargeStatus, revision: u64) -> Charge {
    Charge { status, revision, ..charge(number) }
}

/// Expects that `next` may not replace `there`.
async fn stays<S: Store>(store: &Arc<S>, there: &Row, next: impl Into<Row>) {
    let found = refused(&**store, set(999).replace(next, there.revision()), RefusalReason::IllegalMove).await;
    assert_eq!(found.as_ref(), Some(there));
    assert_eq!(row(&**store, there.key()).await.as_ref(), Some(there));
}

/// Expects that `next` may replace `there`, and replaces it.
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

/// The statuses that may follow each settled status of a charge.
const SUCCESSORS: [(ChargeStatus, &[ChargeStatus]); 6] = [
    (
        ChargeStatus::RequiresCapture,
        &[ChargeStatus::RequiresCapture, ChargeStatus::Succeeded, ChargeStatus::Voided, ChargeStatus::Parked],
    ),
    (
        ChargeStatus::Succeeded,
        &[ChargeStatus::Succeeded, ChargeStatus::PartiallyRefunded, ChargeStatus::Refunded],
    ),
    (ChargeStatus::PartiallyRefunded, &[ChargeStatus::PartiallyRefunded, ChargeStatus::Refunded]),
    (ChargeStatus::Failed, &[ChargeStatus::Failed]),
    (ChargeStatus::Voided, &[ChargeStatus::Voided]),
    (ChargeStatus::Refunded, &[ChargeStatus::Refunded]),
];

pub async fn a_settled_charge_never_moves_back<S: Store>(store: &Arc<S>) {
    let mut number = 0;
    for (settled, successors) in SUCCESSORS {
        for next in STATUSES {
            number += 1;
            let there = inserted(store, number, charge_in(number, settled, 1)).await;
            if successors.contains(&next) {
                becomes(store, number + 100, &there, charge_in(number, next, 2)).await;
            } else {
                stays(store, &there, charge_in(number, next, 2)).await;
            }
        }
    }
}

pub async fn captured_and_refunded_sums_never_fall<S: Store>(store: &Arc<S>) {
    let with = |captured, refunded, refunding, revision| Charge {
        sums: ChargeSums { captured, refunded, refunding },
        ..charge_in(1, ChargeStatus::PartiallyRefunded, revision)
    };
    let there = inserted(store, 1, with(100, 30, 20, 1)).await;
    for (captured, refunded, refunding) in
        [(99, 30, 20), (100, 29, 20), (100, 30, 71), (100, 101, 0), (100, 81, 20), (100, 30, -1)]
    {
        stays(store, &there, with(captured, refunded, refunding, 2)).await;
    }
    becomes(store, 2, &there, with(100, 50, 50, 2)).await;
}

pub async fn an_operation_ends_once_and_keeps_its_order<S: Store>(store: &Arc<S>) {
    use counterfoil_core::payments::operation::{Operation, OperationKind, OperationStatus};
    let asked = operation(1, 1);
    let there = inserted(store, 1, asked.clone()).await;
    let next = Operation { revision: 2, ..asked.clone() };
    let usd = asked.amount.asset();
    for other in [
        Operation { charge: charge_id(2), ..next.clone() },
        Operation { kind: OperationKind::Capture, ..next.clone() },
        Operation { amount: Money::new(101, usd).expect("an amount"), ..next.clone() },
    ] {
        stays(store, &there, other).await;
    }
    let parked = Operation { status: OperationStatus::Parked, ..next };
    becomes(store, 2, &there, parked.clone()).await;
    let done = Operation { status: OperationStatus::Succeeded, revision: 3, ..parked.clone() };
    becomes(store, 3, &parked.into(), done.clone()).await;
    for status in [
        OperationStatus::Processing,
        OperationStatus::Succeeded,
        OperationStatus::Failed,
        OperationStatus::Parked,
    ] {
        stays(store, &done.clone().into(), Operation { status, revision: 4, ..done.clone() }).await;
    }
}

pub async fn a_payout_ends_once_and_keeps_its_order<S: Store>(store: &Arc<S>) {
    use counterfoil_core::payments::payout::{Payout, PayoutOrder, PayoutStatus};
    let asked = payout(1);
    let there = inserted(store, 1, asked.clone()).await;
    let next = Payout { revision: 2, ..asked.clone() };
    let ordered = |order: PayoutOrder| Payout { order: Arc::new(order), ..next.clone() };
    let (order, usd) = (PayoutOrder::clone(&asked.order), asked.order.amount.asset());
    let elsewhere = ProviderBinding { endpoint: "http://elsewhere".into(), ..asked.provider.clone() };
    for other in [
        Payout { provider: elsewhere, ..next.clone() },
        Payout { created_at: at(1), ..next.clone() },
        ordered(PayoutOrder { amount: Money::new(801, usd).expect("an amount"), ..order.clone() }),
        ordered(PayoutOrder { account: AccountId::from_i64(1), ..order.clone() }),
        ordered(PayoutOrder { destination: Some(Masked::new("ba_2".into())), ..order }),
    ] {
        stays(store, &there, other).await;
    }
    let parked = Payout { status: PayoutStatus::Parked, ..next };
    becomes(store, 2, &there, parked.clone()).await;
    let paid = Payout { status: PayoutStatus::Paid, revision: 3, ..parked.clone() };
    becomes(store, 3, &parked.into(), paid.clone()).await;
    for status in [PayoutStatus::Processing, PayoutStatus::Paid, PayoutStatus::Failed, PayoutStatus::Parked] {
        stays(store, &paid.clone().into(), Payout { status, revision: 4, ..paid.clone() }).await;
    }
}

pub async fn an_abandoned_generation_returns_only_with_another_step<S: Store>(store: &Arc<S>) {
    let second = Outbox { history: History { generation: 2, ..outbox(1).history }, ..outbox(1) };
    let there = inserted(store, 1, second.clone()).await;
    let back = Outbox { history: outbox(1).history, revision: 2, ..second.clone() };
    stays(store, &there, back.clone()).await;
    let other = Saga { flow: Flow::Split, ..back.saga };
    stays(store, &there, Outbox { saga: other, ..back.clone() }).await;
    let next_step = Saga { progress: SagaProgress { step: 1, way: Direction::Forward }, ..back.saga };
    becomes(store, 2, &there, Outbox { saga: next_step, ..back }).await;
}

pub async fn an_open_charge_may_take_any_status<S: Store>(store: &Arc<S>) {
    let mut number = 0;
    for open in [ChargeStatus::Processing, ChargeStatus::Parked] {
        for next in STATUSES {
            number += 1;
            let there = inserted(store, number, charge_in(number, open, 1)).await;
            becomes(store, number + 100, &there, charge_in(number, next, 2)).await;
        }
    }
}

pub async fn an_order_is_fixed<S: Store>(store: &Arc<S>) {
    let there = inserted(store, 1, charge(1)).await;
    let mut held = charge_in(1, ChargeStatus::Succeeded, 2);
    Arc::make_mut(&mut held.order).capture = false;
    stays(store, &there, held).await;
    let mut changed = charge_in(1, ChargeStatus::Succeeded, 2);
    Arc::make_mut(&mut changed.order).metadata.insert("late".into(), Masked::new("word".into()));
    stays(store, &there, changed).await;
}

/// A row does not exist under another tenant's key.
pub async fn a_row_never_changes_its_tenant<S: Store>(store: &Arc<S>) {
    let other = TenantId::from_i64(2);
    let all: [(Row, Row); 7] = [
        (claim(1).into(), Claim { tenant: other, revision: 2, ..claim(1) }.into()),
        (charge(1).into(), Charge { tenant: other, revision: 2, ..charge(1) }.into()),
        (operation(1, 1).into(), Operation { tenant: other, revision: 2, ..operation(1, 1) }.into()),
        (payout(1).into(), Payout { tenant: other, revision: 2, ..payout(1) }.into()),
        (outbox(1).into(), Outbox { tenant: other, revision: 2, ..outbox(1) }.into()),
        (account(1).into(), Account { tenant: other, revision: 2, ..account(1) }.into()),
        (hold(1).into(), Hold { tenant: other, revision: 2, ..hold(1) }.into()),
    ];
    for (number, (there, stolen)) in (1..).zip(all) {
        let there = inserted(store, number, there).await;
        let found = refused(&**store, set(999).replace(stolen, 1), RefusalReason::Absent).await;
        assert_eq!(found, None, "another's row is not shown");
        assert_eq!(row(&**store, there.key()).await, Some(there));
    }
}

pub async fn work_stays_with_its_payment_and_its_provider<S: Store>(store: &Arc<S>) {
    let there = inserted(store, 1, outbox(1)).await;
    let binding = outbox(1).provider;
    for provider in [
        ProviderBinding { endpoint: "http://elsewhere".into(), ..binding.clone() },
        ProviderBinding { profile: "adyen".into(), ..binding },
    ] {
        let moved = Outbox { provider, revision: 2, ..outbox(1) };
        stays(store, &there, moved).await;
    }
    for payment in [Payment::Charge(charge_id(2)), Payment::Payout(PayoutId::from_i64(1))] {
        stays(store, &there, Outbox { payment, revision: 2, ..outbox(1) }).await;
    }
    let parked = Outbox { parked: Some(ParkReason::NoEvidence), due_at: at(9), revision: 2, ..outbox(1) };
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

pub async fn an_account_changes_only_its_spread<S: Store>(store: &Arc<S>) {
    let there = inserted(store, 1, account(1)).await;
    let spread = |shards, widest, revision| Account { shards, widest, revision, ..account(1) };
    let next = spread(4, 4, 2);
    for other in [
        Account { code: account(2).code, ..next.clone() },
        Account { asset: asset("EUR"), ..next.clone() },
        Account { normal: Side::Debit, ..next.clone() },
        Account { guard: Guard { floor: None, cap: None }, ..next.clone() },
        Account { guard: Guard { floor: Some(-1), cap: None }, ..next.clone() },
        Account { metadata: [("late".into(), Masked::new("word".into()))].into(), ..next.clone() },
        Account { created_at: at(1), ..next.clone() },
        // More shards than the account ever had.
        spread(5, 4, 2),
    ] {
        stays(store, &there, other).await;
    }
    becomes(store, 2, &there, next.clone()).await;
    becomes(store, 3, &next.into(), spread(2, 4, 3)).await;
    // Shards outside the current spread may still hold money.
    stays(store, &spread(2, 4, 3).into(), spread(2, 2, 4)).await;
}

pub async fn a_code_is_taken_once<S: Store>(store: &Arc<S>) {
    let there = inserted(store, 1, name(1)).await;
    let rival = AccountName { account: account_id(2), ..name(1) };
    let found = refused(&**store, set(2).insert(rival.clone()), RefusalReason::Present).await;
    assert_eq!(found.as_ref(), Some(&there));
    stays(store, &there, rival).await;
    // The same code of another tenant is a different code.
    inserted(store, 3, AccountName { tenant: TenantId::from_i64(2), ..name(1) }).await;
}

pub async fn an_asset_is_defined_once<S: Store>(store: &Arc<S>) {
    let there = inserted(store, 1, definition("POINTS")).await;
    let rival = AssetDefinition { exponent: 9, ..definition("POINTS") };
    let found = refused(&**store, set(2).insert(rival), RefusalReason::Present).await;
    assert_eq!(found.as_ref(), Some(&there));
    stays(store, &there, rival).await;
    inserted(store, 3, AssetDefinition { tenant: TenantId::from_i64(2), ..rival }).await;
}

pub async fn a_hold_ends_once<S: Store>(store: &Arc<S>) {
    let by = transaction_id(9);
    let ends = [HoldState::Posted { amount: 60, by }, HoldState::Voided { by }, HoldState::Lapsed { by }];
    for (number, end) in (1..).zip(ends) {
        let first = inserted(store, number, hold(number)).await;
        for state in [
            HoldState::Pending,
            HoldState::Posted { amount: 0, by },
            HoldState::Posted { amount: 10_001, by },
        ] {
            stays(store, &first, hold(number).ended(state)).await;
        }
        stays(store, &first, Hold { amount: 60, ..hold(number).ended(end) }).await;
        stays(store, &first, Hold { expires_at: at(1), ..hold(number).ended(end) }).await;
        stays(store, &first, Hold { to: account_id(3), ..hold(number).ended(end) }).await;
        let ended = hold(number).ended(end);
        becomes(store, number + 10, &first, ended.clone()).await;
        let last = Row::from(ended.clone());
        for state in ends.into_iter().chain([HoldState::Pending]) {
            stays(store, &last, ended.ended(state)).await;
        }
    }
}

pub async fn a_cursor_never_goes_back<S: Store>(store: &Arc<S>) {
    let stands = |position, revision| Cursor { revision, ..cursor(position) };
    let there = inserted(store, 1, stands(5, 1)).await;
    stays(store, &there, stands(4, 2)).await;
    stays(store, &there, stands(0, 2)).await;
    becomes(store, 2, &there, stands(5, 2)).await;
    becomes(store, 3, &stands(5, 2).into(), stands(6, 3)).await;
}

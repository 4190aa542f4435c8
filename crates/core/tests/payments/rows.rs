//! Legal transitions of rows, which every store enforces.

use crate::given::{at, charge, outbox};
use crate::{operation, split, usd};
use counterfoil_core::outbox::{Flow, History, Outbox, Payment, ProviderBinding, Saga};
use counterfoil_core::payments::charge::{Charge, ChargeStatus, ChargeSums, FailureCode, PaymentFailure};
use counterfoil_core::payments::operation::{self, Operation, OperationKind};
use counterfoil_core::payments::payout::{self, Payout};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::id::{AccountId, ChargeId, PayoutId, SubjectId, TenantId};
use counterfoil_core::types::reference::{ReferenceKind, References};
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

#[test]
fn a_charge_moves_only_forward() {
    for from in STATUSES {
        let reaches: &[ChargeStatus] = match from {
            ChargeStatus::Processing | ChargeStatus::Parked => &STATUSES,
            ChargeStatus::RequiresCapture => &[
                ChargeStatus::RequiresCapture,
                ChargeStatus::Succeeded,
                ChargeStatus::Voided,
                ChargeStatus::Parked,
            ],
            ChargeStatus::Succeeded => {
                &[ChargeStatus::Succeeded, ChargeStatus::PartiallyRefunded, ChargeStatus::Refunded]
            }
            ChargeStatus::PartiallyRefunded => &[ChargeStatus::PartiallyRefunded, ChargeStatus::Refunded],
            ChargeStatus::Failed => &[ChargeStatus::Failed],
            ChargeStatus::Voided => &[ChargeStatus::Voided],
            ChargeStatus::Refunded => &[ChargeStatus::Refunded],
        };
        for to in STATUSES {
            assert_eq!(from.may_become(to), reaches.contains(&to), "{from:?} {to:?}");
            let (old, new) = (Charge { status: from, ..charge() }, Charge { status: to, ..charge() });
            assert_eq!(old.may_become(&new), reaches.contains(&to), "the row holds to it: {from:?} {to:?}");
        }
    }
}

#[test]
fn refunded_charges_count_as_captured() {
    let captured = [ChargeStatus::Succeeded, ChargeStatus::Refunded, ChargeStatus::PartiallyRefunded];
    for status in STATUSES {
        assert_eq!(status.is_captured(), captured.contains(&status), "{status:?}");
    }
}

fn sums(captured: i64, refunded: i64, refunding: i64) -> ChargeSums {
    ChargeSums { captured, refunded, refunding }
}

#[test]
fn the_refundable_amount_excludes_all_refunds() {
    assert_eq!(sums(1_250, 200, 50).refundable(), 1_000);
    assert_eq!(sums(1_250, 1_200, 50).refundable(), 0);
    assert_eq!(sums(1_250, 1_200, 53).refundable(), -3);
}

#[test]
fn negative_or_excessive_sums_are_not_sound() {
    for bad in [sums(100, 101, 0), sums(100, 0, 101), sums(100, 60, 41), sums(100, -1, 0), sums(100, 0, -1)] {
        assert!(!bad.are_sound(), "{bad:?}");
    }
    assert!(!sums(-1, 0, 0).are_sound() && !sums(-1, -1, -1).are_sound());
    for good in [sums(0, 0, 0), sums(100, 60, 40), sums(100, 0, 100), sums(100, 100, 0)] {
        assert!(good.are_sound(), "{good:?}");
    }
}

#[test]
fn the_card_pays_the_rest_of_the_wallet() {
    assert_eq!(charge().order.card(), 1_250);
    assert_eq!(split().order.card(), 1_000);
}

#[test]
fn a_charge_keeps_its_order_and_its_sums_never_fall() {
    let old = Charge { status: ChargeStatus::PartiallyRefunded, sums: sums(1_000, 300, 200), ..charge() };
    let spoil: [fn(&mut Charge); 8] = [
        |charge| charge.status = ChargeStatus::Processing,
        |charge| Arc::make_mut(&mut charge.order).amount = usd(1_251),
        |charge| charge.tenant = TenantId::from_i64(2),
        |charge| charge.provider.endpoint = "http://another".into(),
        |charge| charge.provider.profile = "another".into(),
        |charge| charge.sums.captured = 999,
        |charge| charge.sums.refunded = 299,
        |charge| charge.sums.refunding = 701,
    ];
    for (index, spoil) in spoil.into_iter().enumerate() {
        let mut next = Charge { revision: 2, ..old.clone() };
        assert!(old.may_become(&next));
        spoil(&mut next);
        assert!(!old.may_become(&next), "{index}: {next:?}");
    }
    let more = Charge { sums: sums(1_001, 500, 0), ..old.clone() };
    assert!(old.may_become(&more));
}

fn failure() -> PaymentFailure {
    PaymentFailure { code: FailureCode::CardDeclined, decline_code: None }
}

#[test]
fn an_operation_ends_once_and_keeps_its_order() {
    let old = operation(OperationKind::Refund, 300);
    let ended = Operation {
        status: operation::OperationStatus::Failed,
        provider_reference: Some("re_1".into()),
        failure: Some(failure()),
        revision: 4,
        ..old.clone()
    };
    let parked = Operation { status: operation::OperationStatus::Parked, ..old.clone() };
    assert!(old.may_become(&ended) && old.may_become(&parked) && parked.may_become(&ended));
    assert!(!ended.may_become(&ended), "an end is an end");
    let done = Operation { status: operation::OperationStatus::Succeeded, ..old.clone() };
    assert!(!done.may_become(&Operation { revision: 5, ..done.clone() }));
    let spoil: [fn(&mut Operation); 5] = [
        |operation| operation.amount = usd(301),
        |operation| operation.kind = OperationKind::Capture,
        |operation| operation.charge = ChargeId::from_i64(8),
        |operation| operation.tenant = TenantId::from_i64(2),
        |operation| operation.created_at = at(1),
    ];
    for spoil in spoil {
        let mut next = ended.clone();
        spoil(&mut next);
        assert!(!old.may_become(&next), "{next:?}");
    }
}

#[test]
fn an_operation_needs_a_fitting_status() {
    for status in STATUSES {
        let held = status == ChargeStatus::RequiresCapture;
        let taken = matches!(status, ChargeStatus::Succeeded | ChargeStatus::PartiallyRefunded);
        assert_eq!(OperationKind::Capture.fits(status), held, "{status:?}");
        assert_eq!(OperationKind::Void.fits(status), held, "{status:?}");
        assert_eq!(OperationKind::Refund.fits(status), taken, "{status:?}");
    }
}

fn payout() -> Payout {
    Payout {
        id: PayoutId::from_i64(7),
        tenant: TenantId::from_i64(1),
        order: Arc::new(payout::PayoutOrder {
            amount: usd(800),
            account: AccountId::from_i64(2),
            destination: None,
            description: None,
            metadata: std::collections::BTreeMap::new(),
        }),
        status: payout::PayoutStatus::Processing,
        provider: crate::given::provider(),
        provider_reference: None,
        failure: None,
        created_at: at(0),
        revision: 1,
    }
}

#[test]
fn a_payout_ends_once_and_keeps_its_order() {
    let old = payout();
    let failed = Payout {
        status: payout::PayoutStatus::Failed,
        provider_reference: Some("po_1".into()),
        failure: Some(failure()),
        revision: 2,
        ..old.clone()
    };
    let parked = Payout { status: payout::PayoutStatus::Parked, ..old.clone() };
    assert!(old.may_become(&failed) && old.may_become(&parked) && parked.may_become(&failed));
    let paid = Payout { status: payout::PayoutStatus::Paid, ..old.clone() };
    assert!(!failed.may_become(&failed) && !paid.may_become(&paid), "an end is an end");
    let dearer = Payout {
        order: Arc::new(payout::PayoutOrder { amount: usd(801), ..payout::PayoutOrder::clone(&old.order) }),
        ..failed.clone()
    };
    assert!(!old.may_become(&dearer));
    assert!(!old.may_become(&Payout { tenant: TenantId::from_i64(2), ..failed }));
}

#[test]
fn work_keeps_its_provider_its_payment_and_its_saga() {
    let old = Outbox { history: History { generation: 2, ..outbox().history }, ..outbox() };
    let spoil: [fn(&mut Outbox); 7] = [
        |outbox| {
            outbox.provider = ProviderBinding { endpoint: "http://another".into(), ..outbox.provider.clone() }
        },
        |outbox| outbox.provider.profile = "another".into(),
        |outbox| outbox.payment = Payment::Charge(ChargeId::from_i64(8)),
        |outbox| outbox.payment = Payment::Payout(PayoutId::from_i64(7)),
        |outbox| outbox.saga = Saga { flow: Flow::Authorize, ..outbox.saga },
        |outbox| outbox.saga = Saga { version: 2, ..outbox.saga },
        |outbox| outbox.history.generation = 1,
    ];
    for (index, spoil) in spoil.into_iter().enumerate() {
        let mut next = Outbox { revision: 2, ..old.clone() };
        assert!(old.may_become(&next), "the same generation stays");
        spoil(&mut next);
        assert!(!old.may_become(&next), "{index}: {next:?}");
    }
    let younger = Outbox { history: History { generation: 3, ..old.history }, ..old.clone() };
    assert!(old.may_become(&younger));
}

#[test]
fn another_step_begins_with_its_own_key() {
    let old = Outbox { history: History { generation: 2, ..outbox().history }, ..outbox() };
    for progress in
        [SagaProgress { step: 1, way: Direction::Forward }, SagaProgress { step: 0, way: Direction::Back }]
    {
        let next =
            Outbox { saga: Saga { progress, ..old.saga }, history: History::begun(at(10)), ..old.clone() };
        assert!(old.may_become(&next), "{progress:?}");
    }
}

#[test]
fn a_payments_reference_has_the_prefix_of_its_kind() {
    let references = References::new(MacKey::new(&[42; 32]));
    let charge = Payment::Charge(ChargeId::from_i64(7));
    let payout = Payment::Payout(PayoutId::from_i64(7));
    assert_eq!(charge.subject(), SubjectId::from_i64(7));
    assert_eq!(payout.subject(), SubjectId::from_i64(7));
    assert_eq!(charge.reference(&references), references.seal(ReferenceKind::Charge, 7));
    assert_eq!(payout.reference(&references), references.seal(ReferenceKind::Payout, 7));
}

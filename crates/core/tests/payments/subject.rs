//! The subject of work: its amount, its instrument, and its place in the payment's timeline.

use crate::given::{charge, outbox};
use crate::{operation, split, usd, work};
use counterfoil_core::idempotency::claim::Claim;
use counterfoil_core::outbox::Flow;
use counterfoil_core::payments::charge::{Charge, ChargeStatus};
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::payments::payout::{self, Payout};
use counterfoil_core::payments::provider::{ProviderStep, Rules};
use counterfoil_core::payments::{PaymentSubject, Work, audit_order_after};
use counterfoil_core::types::id::{AccountId, PayoutId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Span;
use std::collections::BTreeMap;
use std::sync::Arc;

fn paid_out() -> PaymentSubject {
    PaymentSubject::Payout(Payout {
        id: PayoutId::from_i64(7),
        tenant: TenantId::from_i64(1),
        order: Arc::new(payout::PayoutOrder {
            amount: usd(800),
            account: AccountId::from_i64(2),
            destination: Some(Masked::new("ba_1".into())),
            description: None,
            metadata: BTreeMap::new(),
        }),
        status: payout::PayoutStatus::Paid,
        provider: outbox().provider,
        provider_reference: Some("po_1".into()),
        failure: None,
        created_at: outbox().created_at,
        revision: 6,
    })
}

fn charged() -> Charge {
    Charge {
        status: ChargeStatus::Succeeded,
        provider_reference: Some("pi_1".into()),
        revision: 5,
        ..split()
    }
}

#[test]
fn the_amount_of_work_is_the_providers_part() {
    assert_eq!(PaymentSubject::Charge(charge(), None).amount(), usd(1_250));
    assert_eq!(PaymentSubject::Charge(split(), None).amount(), usd(1_000), "the wallet pays the rest");
    let refund = operation(OperationKind::Refund, 300);
    assert_eq!(PaymentSubject::Charge(split(), Some(refund)).amount(), usd(300));
    assert_eq!(paid_out().amount(), usd(800));
}

#[test]
fn a_subject_exposes_its_payments_fields() {
    let about = PaymentSubject::Charge(charged(), None);
    assert_eq!(about.provider_reference().map(String::as_str), Some("pi_1"));
    assert_eq!(about.instrument().unwrap().reveal(), "pm_card_visa");
    assert_eq!((about.revision(), about.status(), about.operation()), (5, "succeeded", None));
    assert_eq!(PaymentSubject::Charge(charge(), None).provider_reference(), None);

    let refund = operation(OperationKind::Refund, 300);
    let about = PaymentSubject::Charge(charged(), Some(refund.clone()));
    assert_eq!(about.operation(), Some(&refund));

    let about = paid_out();
    assert_eq!(about.provider_reference().map(String::as_str), Some("po_1"));
    assert_eq!(about.instrument().unwrap().reveal(), "ba_1");
    assert_eq!((about.revision(), about.status(), about.operation()), (6, "paid", None));
}

/// Records of one millisecond sort by their audit order.
#[test]
fn golden_audit_orders() {
    let claim = |work: Work, revision| Work { claim: Claim { revision, ..work.claim }, ..work };
    let making = work(Flow::Split, charged(), None);
    assert_eq!(claim(making, 9).audit_order(), 9, "a payment's creation is ordered by its claim");
    let refund = work(Flow::Refund, charged(), Some(operation(OperationKind::Refund, 300)));
    assert_eq!(claim(refund, 9).audit_order(), 65_536 + 5 * 16 + 9, "operations follow the creation");
    for (revision, place) in [(0, 0), (1, 1), (14, 14), (15, 15), (16, 15), (u64::MAX, 15)] {
        assert_eq!(audit_order_after(5, revision), 65_536 + 5 * 16 + place);
    }
    assert_eq!(audit_order_after(u64::MAX, 1), u64::MAX);
}

#[test]
fn refunds_and_payouts_cannot_be_looked_up() {
    let rules = Rules {
        dedup_window: Some(Span::from_ms(86_400_000)),
        stores_errors: true,
        reexecutes_errors: true,
        queryable: true,
        send_within: Span::from_ms(1),
        late_delivery: Span::from_ms(2),
        query_lag: Span::from_ms(3),
        key_bytes_max: 64,
    };
    for step in [ProviderStep::Charge, ProviderStep::Authorize, ProviderStep::Capture, ProviderStep::Void] {
        assert_eq!(rules.of(step), rules, "{step:?}");
    }
    for step in [ProviderStep::Refund, ProviderStep::Payout] {
        assert_eq!(rules.of(step), Rules { queryable: false, ..rules }, "{step:?}");
    }
}

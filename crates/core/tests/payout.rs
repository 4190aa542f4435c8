//! Payouts: the decision at creation, and the consequences of provider answers.

#![allow(clippy::unwrap_used, reason = "a failed setup step must stop the test")]

mod given;

use counterfoil_core::audit::AuditKind;
use counterfoil_core::idempotency::claim::{ClaimId, ClaimState, LeasePolicy, Resource};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::outbox::{Flow, ParkReason, Payment};
use counterfoil_core::payments::attempt::judge::AttemptVerdict;
use counterfoil_core::payments::charge::{FailureCode, PaymentFailure};
use counterfoil_core::payments::flow::SagaAction;
use counterfoil_core::payments::follow::{Consequences, NextStep, follow};
use counterfoil_core::payments::payout::create::{CreatePayout, NewPayout, PayoutIds, decide};
use counterfoil_core::payments::payout::{Payout, PayoutStatus};
use counterfoil_core::payments::provider::{Approval, ProviderStep, Rules, Stands, downstream_key};
use counterfoil_core::payments::{Opening, PaymentSubject};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::{Digest, MacKey};
use counterfoil_core::types::id::{AccountId, HoldId, Holder, PayoutId, SubjectId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::Span;
use counterfoil_core::types::ulid::Ulid;
use given::{at, fingerprint, provider};
use std::collections::BTreeMap;

fn usd() -> Asset {
    Asset::parse("USD").unwrap()
}

fn opening() -> Opening {
    let command = CreatePayout {
        request: Request {
            tenant: TenantId::from_i64(1),
            claim: ClaimId::from_digest(Digest::from_bytes([1; 32])),
            fingerprint: fingerprint(1),
            id: Ulid::new(at(0), 1),
        },
        wanted: NewPayout {
            amount: Money::new(800, usd()).unwrap(),
            account: None,
            peer: None,
            destination: Some(Masked::new("ba_1".into())),
            description: None,
            metadata: BTreeMap::new(),
        },
    };
    let minted = PayoutIds {
        payout: PayoutId::from_i64(7),
        now: at(0),
        chance: 42,
        holder: Holder { slot: 1, epoch: 1 },
        account: AccountId::from_i64(2),
    };
    let lease = LeasePolicy { lease: Span::from_ms(30_000), ceiling: Span::from_ms(180_000) };
    decide(command, provider(), lease, minted, None).unwrap()
}

fn payout(subject: &PaymentSubject) -> &Payout {
    match subject {
        PaymentSubject::Payout(payout) => payout,
        PaymentSubject::Charge(charge, _) => panic!("{charge:?}"),
    }
}

fn after(verdict: &AttemptVerdict) -> Consequences {
    follow(&opening().work, verdict, at(10)).unwrap()
}

#[test]
fn a_payout_has_one_number_and_one_provider() {
    let Opening { work, ledger, audit } = opening();
    assert_eq!(ledger, [SagaAction::Reserve]);
    let (outbox, made) = (&work.outbox, payout(&work.subject));
    assert_eq!((outbox.id, outbox.payment), (made.id.into(), Payment::Payout(made.id)));
    assert_eq!((outbox.hold, outbox.saga.flow), (Some(HoldId::from_i64(7)), Flow::Payout));
    assert_eq!((&outbox.provider, &made.provider), (&provider(), &provider()));
    assert_eq!((made.status, made.order.account), (PayoutStatus::Processing, AccountId::from_i64(2)));
    assert_eq!((work.claim.subject, work.claim.makes), (made.id.into(), Resource::Payout));
    assert!(matches!(work.claim.state, ClaimState::InFlight(lease) if lease.until == outbox.due_at));
    assert_eq!((audit.subject, audit.kind), (SubjectId::from_i64(7), AuditKind::Claimed));
    assert_eq!(work.subject.amount().minor(), 800);
}

#[test]
fn an_accepted_payout_is_posted() {
    let approval = Approval {
        reference: "po_1".into(),
        stands: Stands::PaidOut,
        amount_minor: 800,
        asset: Some(usd()),
        payment: None,
    };
    let Consequences { subject, ledger, next_step } = after(&AttemptVerdict::Done(approval));
    assert_eq!((ledger, next_step), (vec![SagaAction::Post], NextStep::Completed));
    let paid = payout(&subject);
    assert_eq!((paid.status, paid.revision), (PayoutStatus::Paid, 2));
    assert_eq!(paid.provider_reference.as_deref(), Some("po_1"));
    assert!(payout(&opening().work.subject).may_become(paid));
    assert!(!paid.may_become(&Payout { status: PayoutStatus::Failed, revision: 3, ..paid.clone() }));
}

#[test]
fn a_refused_payout_frees_its_money_and_keeps_the_reason() {
    let failure =
        PaymentFailure { code: FailureCode::PayoutFailed, decline_code: Some("account_closed".into()) };
    let refused = AttemptVerdict::Failed { failure: failure.clone(), reference: Some("po_1".into()) };
    let Consequences { subject, ledger, next_step } = after(&refused);
    assert_eq!((ledger, next_step), (vec![SagaAction::Release], NextStep::Failed(failure.clone())));
    let failed = payout(&subject);
    assert_eq!((failed.status, &failed.failure), (PayoutStatus::Failed, &Some(failure)));
    assert_eq!(failed.provider_reference.as_deref(), Some("po_1"));
}

#[test]
fn a_parked_payout_keeps_its_money_reserved() {
    let parked = AttemptVerdict::Park { reason: ParkReason::AnswerDiffers, reference: Some("po_1".into()) };
    let Consequences { subject, ledger, next_step } = after(&parked);
    assert_eq!(ledger, []);
    assert!(
        matches!(next_step, NextStep::Parked(outbox) if outbox.parked == Some(ParkReason::AnswerDiffers))
    );
    let kept = payout(&subject);
    assert_eq!((kept.status, kept.provider_reference.as_deref()), (PayoutStatus::Parked, Some("po_1")));
}

/// Providers remember keys: another key for a step in progress would execute it twice.
#[test]
fn golden_downstream_keys() {
    let rules = Rules {
        dedup_window: None,
        stores_errors: true,
        reexecutes_errors: false,
        queryable: false,
        send_within: Span::ZERO,
        late_delivery: Span::ZERO,
        query_lag: Span::ZERO,
        key_bytes_max: 255,
    };
    let mac = MacKey::new(&[42; 32]);
    let key = |step| downstream_key(&mac, SubjectId::from_i64(7), step, 1, &rules);
    let steps = [
        ProviderStep::Charge,
        ProviderStep::Authorize,
        ProviderStep::Capture,
        ProviderStep::Void,
        ProviderStep::Refund,
        ProviderStep::Payout,
    ]
    .map(key);
    assert_eq!(
        steps,
        [
            "cf11705nqxhpg71gs3xj8ezr0xgxgh550f",
            "cfxtnzx3xjykpk64ckfcjka7npsydejr9m",
            "cfqjhcgqmhjp5dpz3qqh0sz1whfxtfe4mm",
            "cfsb9am140f5amqrkkcq91nw005e6pbyda",
            "cfkygpxgxyee19jy167hr1te89smf7srgk",
            "cfd308pqjd10kycvrgfwbhavskmw290ve0",
        ]
    );
    let short = Rules { key_bytes_max: 30, ..rules };
    assert_eq!(
        downstream_key(&mac, SubjectId::from_i64(7), ProviderStep::Payout, 1, &short),
        key(ProviderStep::Payout)[..30]
    );
    assert_ne!(
        downstream_key(&mac, SubjectId::from_i64(7), ProviderStep::Payout, 2, &rules),
        key(ProviderStep::Payout)
    );
}

//! The beginning of charges and operations: one decision with everything to commit before the
//! provider call.

use crate::given::{at, charge, claim_in, provider};
use crate::{LEASE, request, split, usd};
use counterfoil_core::audit::{AuditKind, record_id};
use counterfoil_core::idempotency::claim::{Claim, ClaimState, Resource};
use counterfoil_core::outbox::{Flow, History, Outbox, Payment, Saga};
use counterfoil_core::payments::charge::create::{ChargeIds, CreateCharge, NewCharge, decide};
use counterfoil_core::payments::charge::{Charge, ChargeStatus, ChargeSums, Wallet};
use counterfoil_core::payments::flow::SagaAction;
use counterfoil_core::payments::operation::launch::{
    Operate, OperationIds, OperationLaunch, OperationRefusal, allowed, launch,
};
use counterfoil_core::payments::operation::{self, Operation, OperationKind};
use counterfoil_core::payments::{Opening, PaymentSubject};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::types::id::{AccountId, ChargeId, HoldId, Holder, OperationId};
use counterfoil_core::types::mask::Masked;
use std::collections::BTreeMap;

const HOLDER: Holder = Holder { slot: 1, epoch: 1 };
const WALLET: Wallet = Wallet { account: AccountId::from_i64(3), amount: 250 };

fn wanted(capture: bool, wallet: Option<Wallet>) -> NewCharge {
    NewCharge {
        amount: usd(1_250),
        payment_method: Masked::new("pm_card_visa".into()),
        capture,
        destination: None,
        wallet,
        description: None,
        metadata: BTreeMap::new(),
    }
}

fn open(wanted: NewCharge, expired: Option<&Claim>) -> Opening {
    let made = ChargeIds {
        charge: ChargeId::from_i64(7),
        hold: wanted.wallet.map(|_| HoldId::from_i64(11)),
        now: at(0),
        chance: 42,
        holder: HOLDER,
        destination: AccountId::from_i64(2),
    };
    decide(CreateCharge { request: request(), wanted }, provider(), LEASE, &made, expired).unwrap()
}

#[test]
fn a_charge_is_captured_held_or_split() {
    for (wanted, flow, ledger) in [
        (wanted(true, None), Flow::Charge, vec![]),
        (wanted(false, None), Flow::Authorize, vec![]),
        (wanted(true, Some(WALLET)), Flow::Split, vec![SagaAction::Reserve]),
    ] {
        assert_eq!(wanted.flow(), flow);
        let opening = open(wanted, None);
        assert_eq!((opening.work.outbox.saga.flow, opening.ledger), (flow, ledger));
    }
}

#[test]
fn a_new_charge_is_one_decision() {
    let Opening { work, audit, .. } = open(wanted(true, Some(WALLET)), None);
    let lease = LEASE.grant(HOLDER, at(0));
    assert_eq!(work.subject, PaymentSubject::Charge(split(), None));
    assert_eq!((work.claim.subject, work.claim.makes), (ChargeId::from_i64(7).into(), Resource::Charge));
    assert_eq!(
        (work.claim.state, work.claim.fence, work.claim.revision),
        (ClaimState::InFlight(lease), 1, 1)
    );
    let expected = Outbox {
        id: ChargeId::from_i64(7).into(),
        payment: Payment::Charge(ChargeId::from_i64(7)),
        saga: Saga {
            flow: Flow::Split,
            version: 1,
            progress: SagaProgress { step: 1, way: Direction::Forward },
        },
        hold: Some(HoldId::from_i64(11)),
        claim: request().claim,
        tenant: request().tenant,
        provider: provider(),
        due_at: lease.until,
        created_at: at(0),
        history: History::begun(at(0)),
        parked: None,
        revision: 1,
    };
    assert_eq!(work.outbox, expected);
    assert_eq!((audit.id, audit.kind), (record_id(at(0), 1, 42), AuditKind::Claimed));
    assert_eq!((audit.subject, audit.fence), (ChargeId::from_i64(7).into(), 1));
    assert_eq!(audit.detail, format!("request=req_{} reused=false", request().id));
}

#[test]
fn a_reused_key_is_claimed_above_its_old_fence() {
    let old = claim_in(ClaimState::Expired { tombstone_until: at(0) });
    let Opening { work, audit, .. } = open(wanted(true, None), Some(&old));
    assert_eq!((work.claim.fence, work.claim.revision), (old.fence + 1, old.revision + 1));
    assert_eq!(audit.fence, old.fence + 1);
    assert!(audit.detail.ends_with("reused=true"), "{}", audit.detail);
}

fn held() -> Charge {
    Charge { status: ChargeStatus::RequiresCapture, revision: 5, ..split() }
}

fn taken(refunded: i64, refunding: i64) -> Charge {
    let status = if refunded > 0 { ChargeStatus::PartiallyRefunded } else { ChargeStatus::Succeeded };
    Charge { status, sums: ChargeSums { captured: 1_000, refunded, refunding }, revision: 5, ..split() }
}

#[test]
fn an_operation_in_progress_decides_first() {
    let working = Charge { working: Some(OperationId::from_i64(8)), ..held() };
    for kind in [OperationKind::Capture, OperationKind::Void, OperationKind::Refund] {
        assert_eq!(
            allowed(kind, None, &charge()),
            Err(OperationRefusal::Busy),
            "it is still processing: {kind:?}"
        );
        assert_eq!(allowed(kind, None, &working), Err(OperationRefusal::Busy), "{kind:?}");
    }
}

#[test]
fn operations_the_status_does_not_allow_are_refused() {
    assert_eq!(allowed(OperationKind::Refund, None, &held()), Err(OperationRefusal::Status));
    assert_eq!(allowed(OperationKind::Capture, None, &taken(0, 0)), Err(OperationRefusal::Status));
    assert_eq!(allowed(OperationKind::Void, None, &taken(0, 0)), Err(OperationRefusal::Status));
    let failed = Charge { status: ChargeStatus::Failed, ..charge() };
    assert_eq!(allowed(OperationKind::Refund, Some(1), &failed), Err(OperationRefusal::Status));
}

#[test]
fn captures_never_exceed_the_held_amount() {
    assert_eq!(
        allowed(OperationKind::Capture, Some(1_001), &held()),
        Err(OperationRefusal::Exceeds { available: 1_000 })
    );
    for none in [0, -1] {
        let refused = Err(OperationRefusal::Exceeds { available: 1_000 });
        assert_eq!(allowed(OperationKind::Capture, Some(none), &held()), refused, "{none}");
    }
    assert_eq!(allowed(OperationKind::Capture, Some(1_000), &held()), Ok(1_000));
    assert_eq!(allowed(OperationKind::Capture, Some(1), &held()), Ok(1));
    assert_eq!(allowed(OperationKind::Capture, None, &held()), Ok(1_000));
    assert_eq!(allowed(OperationKind::Void, None, &held()), Ok(1_000));
}

#[test]
fn refunds_never_exceed_the_captured_amount() {
    let refunding = taken(200, 300);
    assert_eq!(allowed(OperationKind::Refund, Some(500), &refunding), Ok(500));
    assert_eq!(allowed(OperationKind::Refund, None, &refunding), Ok(500));
    for maybe in [501, 800] {
        let verdict = allowed(OperationKind::Refund, Some(maybe), &refunding);
        assert_eq!(verdict, Err(OperationRefusal::Busy), "a refund under way may still be refused: {maybe}");
    }
    assert_eq!(
        allowed(OperationKind::Refund, Some(801), &refunding),
        Err(OperationRefusal::Exceeds { available: 500 })
    );
    for wanted in [801, 0, -1] {
        let refused = Err(OperationRefusal::Exceeds { available: 800 });
        assert_eq!(allowed(OperationKind::Refund, Some(wanted), &taken(200, 0)), refused, "{wanted}");
    }
}

fn launched(
    kind: OperationKind,
    amount: Option<i64>,
    charge: &Charge,
) -> Result<OperationLaunch, OperationRefusal> {
    let command = Operate { request: request(), charge: charge.id, kind, amount };
    let minted =
        OperationIds { operation: OperationId::from_i64(9), now: at(10), chance: 42, holder: HOLDER };
    launch(&command, charge, provider(), LEASE, minted, None)
}

#[test]
fn refused_operations_are_not_launched() {
    assert_eq!(
        launched(OperationKind::Refund, Some(801), &taken(200, 0)),
        Err(OperationRefusal::Exceeds { available: 800 })
    );
    assert_eq!(launched(OperationKind::Void, None, &charge()), Err(OperationRefusal::Busy));
}

#[test]
fn a_refund_reserves_its_amount_under_its_own_number() {
    let before = taken(200, 100);
    let OperationLaunch { work, expect, transition, audit } =
        launched(OperationKind::Refund, Some(300), &before).unwrap();
    let lease = LEASE.grant(HOLDER, at(10));
    let id = OperationId::from_i64(9);
    let refund = Operation {
        id,
        tenant: request().tenant,
        charge: before.id,
        kind: OperationKind::Refund,
        amount: usd(300),
        status: operation::OperationStatus::Processing,
        provider_reference: None,
        failure: None,
        created_at: at(10),
        revision: 1,
    };
    let after = Charge { sums: ChargeSums { refunding: 400, ..before.sums }, revision: 6, ..before.clone() };
    assert_eq!(work.subject, PaymentSubject::Charge(after, Some(refund)));
    assert_eq!((expect, transition.ledger), (5, vec![SagaAction::Reserve]));
    assert_eq!((work.outbox.id, work.outbox.payment), (id.into(), Payment::Charge(before.id)));
    assert_eq!((work.outbox.hold, work.outbox.due_at), (Some(HoldId::from_i64(9)), lease.until));
    assert_eq!((work.claim.subject, work.claim.makes), (id.into(), Resource::Refund));
    assert_eq!((audit.subject, audit.kind), (before.id.into(), AuditKind::Claimed));
    assert_eq!(audit.id, record_id(at(10), 65_536 + 6 * 16 + 1, 42));
    assert_eq!(audit.detail, format!("request=req_{} reused=false step=refund amount=300", request().id));
}

#[test]
fn a_capture_or_void_holds_the_charge_and_reserves_nothing() {
    for (kind, makes, amount) in
        [(OperationKind::Capture, Resource::Capture, 400), (OperationKind::Void, Resource::Void, 1_000)]
    {
        let wanted = (kind == OperationKind::Capture).then_some(400);
        let OperationLaunch { work, expect, transition, .. } = launched(kind, wanted, &held()).unwrap();
        let working = Some(OperationId::from_i64(9));
        let PaymentSubject::Charge(charge, operation) = work.subject else { panic!("{kind:?}") };
        assert_eq!(charge, Charge { working, revision: 6, ..held() });
        assert_eq!(operation.unwrap().amount, usd(amount));
        assert_eq!((expect, transition.ledger, work.outbox.hold), (5, vec![], None));
        assert_eq!((work.claim.makes, work.outbox.saga.flow), (makes, kind.flow()));
    }
}

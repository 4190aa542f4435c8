//! Fixtures shared by the tests of several forms.

use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::account::{Account, AccountCode, Guard, Side};
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::ledger::transaction::{Layer, Leg, Legs, Transaction, TransactionKind};
use counterfoil_core::outbox::{Flow, History, Outbox, ParkReason, Payment, ProviderBinding, Saga};
use counterfoil_core::payments::PaymentSubject;
use counterfoil_core::payments::charge::{Charge, ChargeOrder, ChargeStatus, ChargeSums};
use counterfoil_core::payments::ledger::Metadata;
use counterfoil_core::payments::operation::{self, Operation, OperationKind};
use counterfoil_core::payments::payout::{self, Payout};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::{Digest, MacKey};
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::{
    AccountId, ChargeId, HoldId, OperationId, PayoutId, TenantId, TransactionId,
};
use counterfoil_core::types::json::Json;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_core::types::time::Time;
use counterfoil_engine::service::DeadLetter;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

pub(crate) fn references() -> References {
    References::new(MacKey::new(&[42; 32]))
}

pub(crate) fn sealed(kind: ReferenceKind, number: i64) -> String {
    references().seal(kind, number).to_string()
}

pub(crate) fn usd() -> Asset {
    Asset::parse("USD").unwrap()
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

pub(crate) fn metadata() -> Metadata {
    Metadata::from([("order".to_owned(), Masked::new("42".to_owned()))])
}

pub(crate) fn account() -> Account {
    Account {
        id: AccountId::from_i64(7),
        tenant: TenantId::from_i64(2),
        code: AccountCode::parse("customer:42").unwrap(),
        asset: usd(),
        normal: Side::Credit,
        guard: Guard { floor: Some(-5), cap: None },
        shards: 16,
        widest: 64,
        metadata: metadata(),
        created_at: Time::EPOCH,
        revision: 3,
    }
}

pub(crate) fn transaction(kind: TransactionKind) -> Transaction {
    let leg = |account, side| Leg {
        account: AccountId::from_i64(account),
        side,
        layer: Layer::Posted,
        amount: 1_250,
        asset: usd(),
    };
    Transaction {
        id: TransactionId::from_i64(3),
        tenant: TenantId::from_i64(2),
        kind,
        legs: Legs::balanced(vec![leg(7, Side::Debit), leg(8, Side::Credit)]).unwrap(),
        metadata: metadata(),
        at: Time::EPOCH,
    }
}

pub(crate) fn hold(state: HoldState) -> Hold {
    Hold {
        id: HoldId::from_i64(4),
        tenant: TenantId::from_i64(2),
        from: AccountId::from_i64(7),
        to: AccountId::from_i64(8),
        amount: 1_250,
        asset: usd(),
        expires_at: Time::from_ms(60_000),
        state,
        metadata: Metadata::new(),
        created_at: Time::EPOCH,
        revision: 1,
    }
}

pub(crate) fn charge() -> Charge {
    Charge {
        id: ChargeId::from_i64(1),
        tenant: TenantId::from_i64(2),
        order: Arc::new(ChargeOrder {
            amount: Money::new(1_250, usd()).unwrap(),
            payment_method: Masked::new("pm_card_visa".to_owned()),
            capture: true,
            destination: AccountId::from_i64(7),
            wallet: None,
            description: None,
            metadata: Metadata::new(),
        }),
        status: ChargeStatus::Succeeded,
        sums: ChargeSums { captured: 1_250, ..ChargeSums::default() },
        working: None,
        provider: provider(),
        provider_reference: Some("pi_1".to_owned()),
        failure: None,
        created_at: Time::EPOCH,
        revision: 2,
    }
}

fn provider() -> ProviderBinding {
    ProviderBinding { profile: "stripe".into(), endpoint: "https://api.stripe.test:443".into() }
}

pub(crate) fn operation(kind: OperationKind) -> Operation {
    Operation {
        id: OperationId::from_i64(5),
        tenant: TenantId::from_i64(2),
        charge: ChargeId::from_i64(1),
        kind,
        amount: Money::new(500, usd()).unwrap(),
        status: operation::OperationStatus::Succeeded,
        provider_reference: Some("re_1".to_owned()),
        failure: None,
        created_at: Time::EPOCH,
        revision: 2,
    }
}

/// A dead letter about creating a charge, or about an operation on one.
pub(crate) fn letter(why: ParkReason, asked: Option<OperationKind>) -> DeadLetter {
    let operation = asked.map(operation);
    let id = operation.as_ref().map_or(ChargeId::from_i64(1).into(), |operation| operation.id.into());
    let outbox = Outbox {
        id,
        payment: Payment::Charge(ChargeId::from_i64(1)),
        saga: Saga {
            flow: asked.map_or(Flow::Charge, OperationKind::flow),
            version: 1,
            // A refund's first step is to reserve.
            progress: SagaProgress {
                step: u8::from(asked == Some(OperationKind::Refund)),
                way: Direction::Forward,
            },
        },
        hold: None,
        claim: ClaimId::from_digest(Digest::from_bytes([1; 32])),
        tenant: TenantId::from_i64(2),
        provider: provider(),
        due_at: Time::EPOCH,
        created_at: Time::EPOCH,
        history: History {
            generation: 2,
            idle_calls: 3,
            unknown: true,
            server_errors: 4,
            first_sent_at: Time::from_ms(1_000),
            last_sent_at: Time::from_ms(2_000),
        },
        parked: Some(why),
        revision: 9,
    };
    DeadLetter { outbox, subject: PaymentSubject::Charge(charge(), operation) }
}

/// A dead letter about a payout.
pub(crate) fn payout_letter(why: ParkReason) -> DeadLetter {
    let payout = Payout { status: payout::PayoutStatus::Parked, ..payout() };
    let DeadLetter { outbox, .. } = letter(why, None);
    let outbox = Outbox {
        id: payout.id.into(),
        payment: Payment::Payout(payout.id),
        saga: Saga {
            flow: Flow::Payout,
            version: 1,
            progress: SagaProgress { step: 1, way: Direction::Forward },
        },
        ..outbox
    };
    DeadLetter { outbox, subject: PaymentSubject::Payout(payout) }
}

pub(crate) fn payout() -> Payout {
    Payout {
        id: PayoutId::from_i64(6),
        tenant: TenantId::from_i64(2),
        order: Arc::new(payout::PayoutOrder {
            amount: Money::new(800, usd()).unwrap(),
            account: AccountId::from_i64(7),
            destination: Some(Masked::new("ba_1".to_owned())),
            description: None,
            metadata: metadata(),
        }),
        status: payout::PayoutStatus::Paid,
        provider: provider(),
        provider_reference: Some("po_1".to_owned()),
        failure: None,
        created_at: Time::EPOCH,
        revision: 2,
    }
}

/// Checks the places and messages of the refusals of each body, in order.
pub(crate) fn refusals<T: Debug>(
    read: impl Fn(&Json) -> Result<T, Vec<Flaw>>,
    cases: &[(&str, &[(&str, &str)])],
) {
    for (body, expected) in cases {
        let found = read(&json(body)).unwrap_err();
        assert_eq!(found.len(), expected.len(), "{body}: {found:?}");
        for (flaw, (place, words)) in found.iter().zip(*expected) {
            assert_eq!(flaw.pointer, *place, "{body}");
            assert!(flaw.message.contains(words), "{body}: {:?} lacks {words:?}", flaw.message);
        }
    }
}

/// The members of a written object.
pub(crate) fn fields_written(text: &[u8]) -> BTreeSet<String> {
    members(&serde_json::from_slice(text).unwrap())
}

pub(crate) fn members(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// The properties that a schema describes.
pub(crate) fn fields_of(schema: utoipa::openapi::RefOr<utoipa::openapi::Schema>) -> BTreeSet<String> {
    members(&serde_json::to_value(schema).unwrap()["properties"])
}

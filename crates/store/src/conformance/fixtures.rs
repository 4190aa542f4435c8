//! Valid rows built from small numbers. Equal numbers give equal rows.

pub mod ledger;

use crate::change::ChangeSet;
use counterfoil_core::audit::{AuditKind, AuditRecord};
use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Lease, Resource, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::outbox::{Flow, History, Outbox, Payment, ProviderBinding, Saga};
use counterfoil_core::payments::charge::{Charge, ChargeOrder, ChargeStatus, ChargeSums};
use counterfoil_core::payments::operation::{self, Operation};
use counterfoil_core::payments::payout::{self, Payout};
use counterfoil_core::saga::progress::SagaProgress;
use counterfoil_core::tenancy::{ApiKey, Scopes, Tenant, TenantName};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{
    AccountId, ChargeId, HoldId, Holder, OperationId, PayoutId, SetId, Slot, TenantId,
};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The time of the fixtures: 2026-09-21T14:13:20Z.
pub const NOW: Time = Time::from_ms(1_790_000_000_000);

/// The tenant of all fixtures, unless a case says otherwise.
pub const TENANT: TenantId = TenantId::from_i64(1);

/// `ms` milliseconds after [`NOW`].
pub const fn at(ms: u64) -> Time {
    NOW.plus(Span::from_ms(ms))
}

pub fn set(number: i64) -> ChangeSet {
    ChangeSet::new(SetId::from_i64(number))
}

/// The set that opens a charge: claim, charge, outbox row and audit record.
pub fn opening(number: i64) -> ChangeSet {
    set(number).insert(claim(number)).insert(charge(number)).insert(outbox(number)).insert(audit(number, 0))
}

pub const fn charge_id(number: i64) -> ChargeId {
    ChargeId::from_i64(number)
}

/// The claim of the charge with that number. Claim ids are digests, so their order differs from the
/// order of numbers.
pub fn claim_id(number: i64) -> ClaimId {
    ClaimId::from_digest(digest("fixture/claim", number))
}

pub fn fingerprint(number: i64) -> Fingerprint {
    Fingerprint::from_digest(digest("fixture/fingerprint", number))
}

fn digest(domain: &str, number: i64) -> Digest {
    Digest::of(domain, &[&number.to_be_bytes()])
}

/// The process that holds slot 3 for the second time.
pub const HOLDER: Holder = Holder { slot: 3, epoch: 2 };

/// A lease of half a minute from `now`, renewable up to three minutes.
pub const fn lease(now: Time) -> Lease {
    Lease {
        holder: HOLDER,
        until: now.plus(Span::from_ms(30_000)),
        ceiling: now.plus(Span::from_ms(180_000)),
    }
}

/// A claim in flight since [`NOW`].
pub fn claim(number: i64) -> Claim {
    claim_in(number, ClaimState::InFlight(lease(NOW)))
}

pub fn claim_in(number: i64, state: ClaimState) -> Claim {
    Claim {
        id: claim_id(number),
        tenant: TENANT,
        fingerprint: fingerprint(number),
        subject: charge_id(number).into(),
        makes: Resource::Charge,
        request: Ulid::new(NOW, 77),
        created_at: NOW,
        fence: 1,
        revision: 1,
        attempts: 1,
        state,
    }
}

/// A claim that reuses the key of `old` for another subject.
pub fn reclaimed(old: &Claim, subject: i64) -> Claim {
    Claim {
        fingerprint: fingerprint(subject),
        subject: charge_id(subject).into(),
        created_at: at(100_000_000),
        fence: old.fence.saturating_add(1),
        revision: old.revision.saturating_add(1),
        attempts: 1,
        state: ClaimState::InFlight(lease(at(100_000_000))),
        ..old.clone()
    }
}

/// An answer with that body, replayed until `replay_until` and remembered for another day.
pub fn settled(body: &[u8], replay_until: Time) -> Settled {
    Settled {
        reply: Reply {
            status: 201,
            media: ReplyMedia::Json,
            location: Some("/v1/charges/ch_fixture".into()),
            body: body.to_vec().into(),
        },
        windows: Windows { replay_until, tombstone_until: replay_until.plus(Span::from_ms(86_400_000)) },
    }
}

/// A charge of 12.50 USD, processing.
pub fn charge(number: i64) -> Charge {
    let usd = Asset::parse("USD").expect("USD is in the table");
    Charge {
        id: charge_id(number),
        tenant: TENANT,
        order: Arc::new(ChargeOrder {
            amount: Money::new(1_250, usd).expect("12.50 is an amount"),
            payment_method: Masked::new("pm_card_visa".into()),
            capture: true,
            destination: AccountId::from_i64(9),
            wallet: None,
            description: None,
            metadata: BTreeMap::new(),
        }),
        status: ChargeStatus::Processing,
        sums: ChargeSums::default(),
        working: None,
        provider: binding(),
        provider_reference: None,
        failure: None,
        created_at: NOW,
        revision: 1,
    }
}

/// The provider of all fixtures.
pub fn binding() -> ProviderBinding {
    ProviderBinding { profile: "stripe".into(), endpoint: "http://127.0.0.1:8090".into() }
}

/// A refund of 1.00 USD of that charge, in progress.
pub fn operation(number: i64, charge: i64) -> Operation {
    let usd = Asset::parse("USD").expect("USD is in the table");
    Operation {
        id: OperationId::from_i64(number),
        tenant: TENANT,
        charge: charge_id(charge),
        kind: operation::OperationKind::Refund,
        amount: Money::new(100, usd).expect("1.00 is an amount"),
        status: operation::OperationStatus::Processing,
        provider_reference: None,
        failure: None,
        created_at: NOW,
        revision: 1,
    }
}

/// A payout of 8.00 USD, in progress.
pub fn payout(number: i64) -> Payout {
    let usd = Asset::parse("USD").expect("USD is in the table");
    Payout {
        id: PayoutId::from_i64(number),
        tenant: TENANT,
        order: Arc::new(payout::PayoutOrder {
            amount: Money::new(800, usd).expect("8.00 is an amount"),
            account: AccountId::from_i64(9),
            destination: None,
            description: None,
            metadata: BTreeMap::new(),
        }),
        status: payout::PayoutStatus::Processing,
        provider: binding(),
        provider_reference: None,
        failure: None,
        created_at: NOW,
        revision: 1,
    }
}

/// The outbox row of that payout, due at the end of its claim's lease.
pub fn payout_work(number: i64) -> Outbox {
    let id = PayoutId::from_i64(number);
    Outbox {
        id: id.into(),
        payment: Payment::Payout(id),
        saga: Saga {
            flow: Flow::Payout,
            version: 1,
            progress: SagaProgress { step: 1, ..SagaProgress::START },
        },
        hold: Some(HoldId::from_i64(number)),
        ..outbox(number)
    }
}

/// The outbox row of that charge, due at the end of its claim's lease.
pub fn outbox(number: i64) -> Outbox {
    Outbox {
        id: charge_id(number).into(),
        payment: Payment::Charge(charge_id(number)),
        saga: Saga { flow: Flow::Charge, version: 1, progress: SagaProgress::START },
        hold: None,
        claim: claim_id(number),
        tenant: TENANT,
        provider: binding(),
        due_at: lease(NOW).until,
        created_at: NOW,
        history: History::begun(NOW),
        parked: None,
        revision: 1,
    }
}

/// The outbox row of that charge, due `ms` milliseconds after [`NOW`].
pub fn work_due(number: i64, ms: u64) -> Outbox {
    Outbox { due_at: at(ms), ..outbox(number) }
}

/// The `step`th audit record of that charge.
pub fn audit(number: i64, step: u64) -> AuditRecord {
    AuditRecord {
        id: Ulid::new(at(step), u128::from(step)),
        tenant: TENANT,
        subject: charge_id(number).into(),
        at: at(step),
        fence: 1,
        kind: AuditKind::Claimed,
        detail: format!("step={step}"),
    }
}

pub fn tenant_name(name: &str) -> TenantName {
    TenantName::parse(name).expect("fixtures use valid names")
}

pub fn tenant(name: &str, id: i64) -> Tenant {
    Tenant {
        id: TenantId::from_i64(id),
        name: tenant_name(name),
        key_policy: None,
        created_at: NOW,
        revision: 1,
    }
}

pub fn api_key(number: i64) -> ApiKey {
    ApiKey {
        digest: digest("fixture/api-key", number),
        id: format!("key_{number}"),
        tenant: tenant_name("acme"),
        scopes: Scopes::DEFAULT,
        created_at: NOW,
        revoked_at: None,
        revision: 1,
    }
}

/// A worker slot, held for a minute.
pub fn slot(number: u16) -> Slot {
    Slot::first(number, NOW, Span::from_ms(60_000))
}

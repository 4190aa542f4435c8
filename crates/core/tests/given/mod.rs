//! Fixtures: a claim, its charge and its outbox row, at one instant.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of these fixtures, and an invalid one must stop it"
)]

use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Custody, Lease, Resource, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::outbox::{Flow, History, Outbox, Payment, ProviderBinding, Saga};
use counterfoil_core::payments::charge::{Charge, ChargeOrder, ChargeStatus, ChargeSums};
use counterfoil_core::saga::progress::SagaProgress;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{AccountId, ChargeId, Holder, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `ms` milliseconds after the first instant of every script.
pub(crate) const fn at(ms: u64) -> Time {
    Time::from_ms(1_790_000_000_000).plus(Span::from_ms(ms))
}

pub(crate) const fn lease_until(ms: u64) -> Lease {
    Lease { holder: Holder { slot: 1, epoch: 1 }, until: at(ms), ceiling: at(180_000) }
}

pub(crate) fn fingerprint(byte: u8) -> Fingerprint {
    Fingerprint::from_digest(Digest::from_bytes([byte; 32]))
}

/// An answer replayed before 1 000 ms and remembered before 2 000 ms.
pub(crate) fn settled(body: &'static [u8]) -> Settled {
    Settled {
        reply: Reply { status: 201, media: ReplyMedia::Json, location: None, body: body.into() },
        windows: Windows { replay_until: at(1_000), tombstone_until: at(2_000) },
    }
}

pub(crate) fn claim_in(state: ClaimState) -> Claim {
    Claim {
        id: ClaimId::from_digest(Digest::from_bytes([1; 32])),
        tenant: TenantId::from_i64(1),
        fingerprint: fingerprint(1),
        subject: ChargeId::from_i64(7).into(),
        makes: Resource::Charge,
        request: Ulid::new(at(0), 1),
        created_at: at(0),
        fence: 4,
        revision: 9,
        attempts: 3,
        state,
    }
}

/// Every state by a name that distinguishes the two kinds of uncertainty.
pub(crate) fn states() -> [(&'static str, ClaimState); 7] {
    [
        ("in_flight", ClaimState::InFlight(lease_until(30_000))),
        ("failed_retry", ClaimState::FailedRetry { not_before: at(500) }),
        ("waiting", ClaimState::Uncertain(Custody::Waiting { not_before: at(500) })),
        ("held", ClaimState::Uncertain(Custody::Held(lease_until(30_000)))),
        ("completed", ClaimState::Completed(settled(b"yes"))),
        ("failed_terminal", ClaimState::FailedTerminal(settled(b"no"))),
        ("expired", ClaimState::Expired { tombstone_until: at(2_000) }),
    ]
}

pub(crate) fn charge() -> Charge {
    Charge {
        id: ChargeId::from_i64(7),
        tenant: TenantId::from_i64(1),
        order: Arc::new(ChargeOrder {
            amount: Money::new(1_250, Asset::parse("USD").unwrap()).unwrap(),
            payment_method: Masked::new("pm_card_visa".into()),
            capture: true,
            destination: AccountId::from_i64(2),
            wallet: None,
            description: None,
            metadata: BTreeMap::new(),
        }),
        status: ChargeStatus::Processing,
        sums: ChargeSums::default(),
        working: None,
        provider: provider(),
        provider_reference: None,
        failure: None,
        created_at: at(0),
        revision: 1,
    }
}

pub(crate) fn provider() -> ProviderBinding {
    ProviderBinding { profile: "stripe".into(), endpoint: "http://provider".into() }
}

pub(crate) fn outbox() -> Outbox {
    Outbox {
        id: ChargeId::from_i64(7).into(),
        payment: Payment::Charge(ChargeId::from_i64(7)),
        saga: Saga { flow: Flow::Charge, version: 1, progress: SagaProgress::START },
        hold: None,
        claim: ClaimId::from_digest(Digest::from_bytes([1; 32])),
        tenant: TenantId::from_i64(1),
        provider: provider(),
        due_at: at(30_000),
        created_at: at(0),
        history: History::begun(at(0)),
        parked: None,
        revision: 1,
    }
}

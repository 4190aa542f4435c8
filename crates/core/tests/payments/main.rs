//! Payments: legal transitions of charges and operations, their beginning, and the consequences of
//! provider answers.

#![allow(clippy::unwrap_used, reason = "a failed setup step must stop the test")]

#[path = "../given/mod.rs"]
mod given;

mod begin;
mod follow;
mod rows;
mod subject;
mod words;

use counterfoil_core::idempotency::claim::{ClaimId, ClaimState, LeasePolicy};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::outbox::{Flow, Outbox};
use counterfoil_core::payments::charge::{Charge, ChargeOrder, Wallet};
use counterfoil_core::payments::flow::{AfterStep, begin};
use counterfoil_core::payments::operation::{Operation, OperationKind, OperationStatus};
use counterfoil_core::payments::{PaymentSubject, Work};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{AccountId, ChargeId, OperationId, TenantId};
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::Span;
use counterfoil_core::types::ulid::Ulid;
use given::{at, charge, claim_in, fingerprint, lease_until, outbox};
use std::sync::Arc;

const LEASE: LeasePolicy = LeasePolicy { lease: Span::from_ms(30_000), ceiling: Span::from_ms(180_000) };

fn usd(minor: i64) -> Money {
    Money::new(minor, Asset::parse("USD").unwrap()).unwrap()
}

fn request() -> Request {
    Request {
        tenant: TenantId::from_i64(1),
        claim: ClaimId::from_digest(Digest::from_bytes([1; 32])),
        fingerprint: fingerprint(1),
        id: Ulid::new(at(0), 1),
    }
}

/// A charge of 12.50 of which a wallet pays 2.50.
fn split() -> Charge {
    let wallet = Some(Wallet { account: AccountId::from_i64(3), amount: 250 });
    Charge { order: Arc::new(ChargeOrder { wallet, ..ChargeOrder::clone(&charge().order) }), ..charge() }
}

fn operation(kind: OperationKind, minor: i64) -> Operation {
    Operation {
        id: OperationId::from_i64(9),
        tenant: TenantId::from_i64(1),
        charge: ChargeId::from_i64(7),
        kind,
        amount: usd(minor),
        status: OperationStatus::Processing,
        provider_reference: None,
        failure: None,
        created_at: at(0),
        revision: 3,
    }
}

/// Work at the first call of its flow.
fn work(flow: Flow, charge: Charge, operation: Option<Operation>) -> Work {
    let AfterStep::Call(_, saga) = begin(flow).unwrap().next else { panic!("{flow:?} begins with a call") };
    Work {
        claim: claim_in(ClaimState::InFlight(lease_until(30_000))),
        subject: PaymentSubject::Charge(charge, operation),
        outbox: Outbox { saga, ..outbox() },
    }
}

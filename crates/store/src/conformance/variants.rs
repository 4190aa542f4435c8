//! Rows of every kind in every variant: the values that a store's codec must carry.

pub mod ledger;

use super::fixtures::ledger::{
    account, cursor, definition, hold, name, opened, reversal, snapshot, transfer,
};
use super::fixtures::{
    api_key, at, audit, charge, charge_id, claim_in, lease, operation, outbox, payout, settled, slot, tenant,
};
use crate::row::Row;
use counterfoil_core::audit::{AuditKind, AuditRecord};
use counterfoil_core::idempotency::claim::{Claim, ClaimState, Custody, Resource, Settled};
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::ledger::balance::Balance;
use counterfoil_core::outbox::{FLOWS, Flow, History, Outbox, ParkReason, Payment, Saga};
use counterfoil_core::payments::charge::{
    Charge, ChargeOrder, ChargeStatus, ChargeSums, FailureCode, PaymentFailure, Wallet,
};
use counterfoil_core::payments::operation::{self, Operation};
use counterfoil_core::payments::payout::{self, Payout};
use counterfoil_core::saga::progress::{Direction, SagaProgress};
use counterfoil_core::tenancy::{ApiKey, KeyPolicy, Scopes, Tenant};
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::id::{
    AccountId, ChargeId, HoldId, Holder, OperationId, PayoutId, Slot, TenantId,
};
use counterfoil_core::types::limits::{
    AMOUNT_MAX, DESCRIPTION_BYTES_MAX, METADATA_NAME_BYTES_MAX, METADATA_PAIRS_MAX, METADATA_VALUE_BYTES_MAX,
    WORKER_SLOTS,
};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Text that a careless codec mangles. U+0000 is absent because PostgreSQL's `text` cannot hold it.
pub const HARD_TEXT: &str = "Ünï → 支払い 🧾 \"q\" \\ \u{1}\t\r\n\u{7f} e\u{301} '; --";

/// Bodies that a careless codec mangles: empty, every byte, invalid UTF-8, long.
pub fn bodies() -> Vec<Vec<u8>> {
    vec![
        Vec::new(),
        br#"{"id":"ch_1"}"#.to_vec(),
        (0..=255).collect(),
        vec![0xff, 0xfe, 0x00, 0x80],
        vec![0; 3],
        b"long ".repeat(40_000),
    ]
}

/// Every state, with and without every optional part.
pub fn states() -> Vec<ClaimState> {
    let problem = Settled {
        reply: Reply {
            status: 402,
            media: ReplyMedia::Problem,
            location: None,
            body: bodies().concat().into(),
        },
        windows: Windows { replay_until: at(7), tombstone_until: Time::MAX },
    };
    let mut far = lease(at(9));
    far.holder = Holder { slot: WORKER_SLOTS.saturating_sub(1), epoch: u32::MAX };
    vec![
        ClaimState::InFlight(lease(at(0))),
        ClaimState::InFlight(far),
        ClaimState::FailedRetry { not_before: at(1) },
        ClaimState::Uncertain(Custody::Waiting { not_before: at(2) }),
        ClaimState::Uncertain(Custody::Held(lease(at(3)))),
        ClaimState::Completed(settled(b"{}", at(4))),
        ClaimState::Completed(problem.clone()),
        ClaimState::FailedTerminal(settled(b"", at(5))),
        ClaimState::FailedTerminal(problem),
        ClaimState::Expired { tombstone_until: at(6) },
        ClaimState::Expired { tombstone_until: Time::MAX },
    ]
}

/// Metadata at its bounds: the most pairs, the longest names and values.
pub fn metadata_full() -> BTreeMap<String, Masked<String>> {
    (0..METADATA_PAIRS_MAX)
        .map(|n| {
            let name = format!("{n:0METADATA_NAME_BYTES_MAX$}");
            (name, Masked::new("v".repeat(METADATA_VALUE_BYTES_MAX)))
        })
        .collect()
}

/// Metadata with an empty name, an empty value, and difficult text.
pub fn metadata_odd() -> BTreeMap<String, Masked<String>> {
    [(String::new(), Masked::new(HARD_TEXT.to_owned())), (HARD_TEXT.to_owned(), Masked::new(String::new()))]
        .into()
}

/// A claim in each of [`states`], numbered from 1, and one for each resource.
pub fn claims() -> Vec<Claim> {
    let large = |claim: Claim| Claim {
        tenant: TenantId::from_i64(i64::MAX),
        request: Ulid::from_bytes([0xff; 16]),
        fence: 4_000_000_000_000,
        attempts: u32::MAX,
        revision: 5_000_000_000_000,
        ..claim
    };
    let mut claims: Vec<Claim> = (1..).zip(states()).map(|(n, state)| claim_in(n, state)).collect();
    claims.extend((100..).zip(states()).map(|(n, state)| large(claim_in(n, state))));
    let makes = [
        Resource::Charge,
        Resource::Account,
        Resource::Asset,
        Resource::Transfer,
        Resource::Transaction,
        Resource::Bulk,
        Resource::Shards,
        Resource::Capture,
        Resource::Void,
        Resource::Refund,
        Resource::Resolution,
        Resource::Payout,
    ];
    let settled = |n| claim_in(n, ClaimState::Completed(settled(b"{}", at(4))));
    claims.extend((200..).zip(makes).map(|(n, makes)| Claim { makes, ..settled(n) }));
    claims
}

/// Charges of every status and failure, with and without every optional part.
pub fn charges() -> Vec<Charge> {
    let plain = charge(0);
    let rich = ChargeOrder {
        amount: money(AMOUNT_MAX, "JPY"),
        payment_method: Masked::new(HARD_TEXT.into()),
        capture: false,
        destination: AccountId::from_i64(i64::MAX),
        wallet: Some(Wallet { account: AccountId::from_i64(i64::MAX), amount: AMOUNT_MAX - 1 }),
        description: Some(Masked::new("é".repeat(DESCRIPTION_BYTES_MAX / 2))),
        metadata: metadata_full(),
    };
    let odd = ChargeOrder {
        amount: money(1, "CLF"),
        description: Some(Masked::new(String::new())),
        metadata: metadata_odd(),
        ..ChargeOrder::clone(&plain.order)
    };
    let failure = |code, decline_code: Option<&str>| {
        Some(PaymentFailure { code, decline_code: decline_code.map(str::to_owned) })
    };
    let variants = [
        (ChargeStatus::Processing, None, None),
        (ChargeStatus::RequiresCapture, Some("pi_1"), None),
        (ChargeStatus::Succeeded, Some(HARD_TEXT), None),
        (ChargeStatus::Failed, Some(""), failure(FailureCode::CardDeclined, Some("insufficient_funds"))),
        (ChargeStatus::Failed, None, failure(FailureCode::CardDeclined, None)),
        (ChargeStatus::Failed, None, failure(FailureCode::GatewayRejected, None)),
        (ChargeStatus::Failed, None, failure(FailureCode::GatewayUnauthorized, None)),
        (ChargeStatus::Failed, None, failure(FailureCode::GatewayUnavailable, Some(HARD_TEXT))),
        (ChargeStatus::Failed, None, failure(FailureCode::MarkedFailed, None)),
        (ChargeStatus::Voided, Some("pi_2"), None),
        (ChargeStatus::Refunded, Some("pi_3"), None),
        (ChargeStatus::PartiallyRefunded, Some("pi_4"), None),
        (ChargeStatus::Parked, Some("pi_5"), None),
    ];
    let large = ChargeSums { captured: AMOUNT_MAX, refunded: 2, refunding: AMOUNT_MAX - 2 };
    let orders = [plain.order.clone(), Arc::new(rich), Arc::new(odd)];
    let all = orders.iter().flat_map(|order| variants.iter().map(move |variant| (order, variant)));
    (1..)
        .zip(all)
        .map(|(number, (order, (status, reference, failure)))| Charge {
            id: ChargeId::from_i64(number),
            order: order.clone(),
            status: *status,
            provider_reference: reference.map(str::to_owned),
            failure: failure.clone(),
            sums: if status.is_captured() { large } else { ChargeSums::default() },
            working: matches!(status, ChargeStatus::Parked).then_some(OperationId::from_i64(i64::MAX)),
            ..plain.clone()
        })
        .collect()
}

/// Operations of every kind and status, with and without every optional part.
pub fn operations() -> Vec<Operation> {
    let kinds =
        [operation::OperationKind::Capture, operation::OperationKind::Void, operation::OperationKind::Refund];
    let failure = |code, decline_code: Option<&str>| {
        Some(PaymentFailure { code, decline_code: decline_code.map(str::to_owned) })
    };
    let variants = [
        (operation::OperationStatus::Processing, None, None),
        (operation::OperationStatus::Succeeded, Some(HARD_TEXT), None),
        (operation::OperationStatus::Failed, None, failure(FailureCode::GatewayRejected, Some(HARD_TEXT))),
        (operation::OperationStatus::Failed, Some("re_1"), failure(FailureCode::CardDeclined, None)),
        (operation::OperationStatus::Parked, Some(""), None),
    ];
    let all = kinds.into_iter().flat_map(|kind| variants.iter().map(move |variant| (kind, variant)));
    (1..)
        .zip(all)
        .map(|(number, (kind, (status, reference, failure)))| Operation {
            kind,
            amount: money(AMOUNT_MAX, "JPY"),
            status: *status,
            provider_reference: reference.map(str::to_owned),
            failure: failure.clone(),
            ..operation(number, 1)
        })
        .collect()
}

/// Payouts of every status and failure, with and without every optional part.
pub fn payouts() -> Vec<Payout> {
    let plain = payout(0);
    let rich = payout::PayoutOrder {
        amount: money(AMOUNT_MAX, "JPY"),
        account: AccountId::from_i64(i64::MAX),
        destination: Some(Masked::new(HARD_TEXT.into())),
        description: Some(Masked::new("é".repeat(DESCRIPTION_BYTES_MAX / 2))),
        metadata: metadata_full(),
    };
    let odd = payout::PayoutOrder {
        destination: Some(Masked::new(String::new())),
        description: Some(Masked::new(String::new())),
        metadata: metadata_odd(),
        ..payout::PayoutOrder::clone(&plain.order)
    };
    let failure = |code, decline_code: Option<&str>| {
        Some(PaymentFailure { code, decline_code: decline_code.map(str::to_owned) })
    };
    let variants = [
        (payout::PayoutStatus::Processing, None, None),
        (payout::PayoutStatus::Paid, Some(HARD_TEXT), None),
        (
            payout::PayoutStatus::Failed,
            Some("po_1"),
            failure(FailureCode::PayoutFailed, Some("account_closed")),
        ),
        (payout::PayoutStatus::Failed, None, failure(FailureCode::MarkedFailed, None)),
        (payout::PayoutStatus::Parked, Some(""), None),
    ];
    let orders = [plain.order.clone(), Arc::new(rich), Arc::new(odd)];
    let all = orders.iter().flat_map(|order| variants.iter().map(move |variant| (order, variant)));
    (1..)
        .zip(all)
        .map(|(number, (order, (status, reference, failure)))| Payout {
            order: order.clone(),
            status: *status,
            provider_reference: reference.map(str::to_owned),
            failure: failure.clone(),
            ..payout(number)
        })
        .collect()
}

fn money(minor: i64, code: &str) -> Money {
    let asset = Asset::parse(code).expect("fixtures use currencies of the table");
    Money::new(minor, asset).expect("fixtures use valid amounts")
}

/// Outbox rows: parked for every reason and not parked, new and retried.
pub fn work() -> Vec<Outbox> {
    let tried = History {
        generation: u16::MAX,
        idle_calls: u32::MAX,
        unknown: true,
        server_errors: 3,
        first_sent_at: at(1),
        last_sent_at: at(2),
    };
    let parks = [
        None,
        Some(ParkReason::AnswerDiffers),
        Some(ParkReason::NoEvidence),
        Some(ParkReason::Contradiction),
        Some(ParkReason::CannotUndo),
    ];
    let all =
        parks.into_iter().flat_map(|parked| [outbox(0).history, tried].map(|history| (parked, history)));
    let mut work: Vec<Outbox> = (1..)
        .zip(all)
        .map(|(number, (parked, history))| Outbox {
            due_at: if parked.is_some() { Time::MAX } else { at(3) },
            parked,
            history,
            ..outbox(number)
        })
        .collect();
    // Every flow, on its way back from its last step, for an operation of a payment with a hold.
    work.extend((100..).zip(FLOWS).map(|(number, flow)| Outbox {
        payment: match flow {
            Flow::Payout => Payment::Payout(PayoutId::from_i64(i64::MAX)),
            Flow::Charge | Flow::Authorize | Flow::Split | Flow::Capture | Flow::Void | Flow::Refund => {
                Payment::Charge(charge_id(1))
            }
        },
        saga: Saga {
            flow,
            version: u16::MAX,
            progress: SagaProgress { step: u8::MAX, way: Direction::Back },
        },
        hold: Some(HoldId::from_i64(i64::MAX)),
        ..outbox(number)
    }));
    work
}

/// Audit records of every kind.
pub fn records() -> Vec<AuditRecord> {
    let kinds = [
        AuditKind::Claimed,
        AuditKind::TakenOver,
        AuditKind::ProviderAnswered,
        AuditKind::ProviderQueried,
        AuditKind::Pending,
        AuditKind::Settled,
        AuditKind::Parked,
        AuditKind::Opened,
        AuditKind::Posted,
        AuditKind::Refused,
        AuditKind::Resolved,
    ];
    let mut records: Vec<AuditRecord> =
        (0..).zip(kinds).map(|(step, kind)| AuditRecord { kind, ..audit(1, step) }).collect();
    records.push(AuditRecord {
        id: Ulid::from_bytes([0xff; 16]),
        subject: charge_id(i64::MAX).into(),
        detail: String::new(),
        ..audit(2, 0)
    });
    records
}

/// Tenants of every key policy.
pub fn tenants() -> Vec<Tenant> {
    let policies =
        [("a", None), ("acme-1_x", Some(KeyPolicy::Optional)), ("zeta", Some(KeyPolicy::Required))];
    (1..).zip(policies).map(|(id, (name, key_policy))| Tenant { key_policy, ..tenant(name, id) }).collect()
}

/// API keys of several scopes, revoked and not.
pub fn api_keys() -> Vec<ApiKey> {
    let read = Scopes::parse("read").expect("a scope of the list");
    let variants = [(Scopes::DEFAULT, None), (Scopes::ALL, Some(at(5))), (read, Some(at(6))), (read, None)];
    (1..)
        .zip(variants)
        .map(|(number, (scopes, revoked_at))| ApiKey { scopes, revoked_at, ..api_key(number) })
        .collect()
}

/// The first and the last slot.
pub fn slots() -> Vec<Slot> {
    let last = Slot { epoch: u32::MAX, ..slot(WORKER_SLOTS.saturating_sub(1)) };
    vec![slot(0), last]
}

pub fn one_of_each() -> [Row; 18] {
    [
        claim_in(1, ClaimState::InFlight(lease(at(0)))).into(),
        charge(1).into(),
        operation(1, 1).into(),
        payout(1).into(),
        outbox(1).into(),
        audit(1, 0).into(),
        tenant("acme", 1).into(),
        api_key(1).into(),
        slot(1).into(),
        account(1).into(),
        name(1).into(),
        definition("POINTS").into(),
        Balance { shard: 1, ..opened(1, Some(-5), Some(5)) }.into(),
        transfer(1, 1, 2, 1).into(),
        reversal(1).into(),
        hold(1).into(),
        snapshot(1, 1).into(),
        cursor(1).into(),
    ]
}

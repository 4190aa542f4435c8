//! Rows for tests and measurements: a charge in two sets, as the engine writes it.

use counterfoil_core::audit::{AuditKind, AuditRecord};
use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Lease, Resource, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
use counterfoil_core::idempotency::window::{Reuse, WindowPolicy};
use counterfoil_core::outbox::{Flow, History, Outbox, Payment, ProviderBinding, Saga};
use counterfoil_core::payments::charge::{Charge, ChargeOrder, ChargeStatus, ChargeSums};
use counterfoil_core::saga::progress::SagaProgress;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::id::{AccountId, ChargeId, Holder, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::{ChangeSet, RowKey};
use std::collections::BTreeMap;
use std::sync::Arc;

const HOUR: Span = Span::from_ms(3_600_000);

/// The rows of one charge.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) claim: Claim,
    pub(crate) charge: Charge,
    pub(crate) outbox: Outbox,
    pub(crate) audit: AuditRecord,
}

/// A charge with id `number`, made at `now`.
pub(crate) fn work(number: i64, now: Time) -> Work {
    let charge = ChargeId::from_i64(number);
    let tenant = TenantId::from_i64(1 + number % 4);
    let seed = Digest::of("test", &[&number.to_be_bytes()]);
    let id = ClaimId::from_digest(seed);
    let until = now.plus(Span::from_ms(30_000));
    let provider = ProviderBinding { profile: "simulator".into(), endpoint: "http://127.0.0.1:4242".into() };
    let holder = Holder { slot: 1, epoch: 1 };
    let chance = u128::from_be_bytes(std::array::from_fn(|at| seed.as_bytes()[at]));
    Work {
        claim: Claim {
            id,
            tenant,
            fingerprint: Fingerprint::from_digest(seed),
            subject: charge.into(),
            makes: Resource::Charge,
            request: Ulid::new(now, chance),
            created_at: now,
            fence: 1,
            revision: 1,
            attempts: 1,
            state: ClaimState::InFlight(Lease { holder, until, ceiling: now.plus(HOUR) }),
        },
        charge: Charge {
            id: charge,
            tenant,
            order: Arc::new(ChargeOrder {
                amount: Money::new(1_250, Asset::parse("usd").unwrap()).unwrap(),
                payment_method: Masked::new("pm_card_visa".to_owned()),
                capture: true,
                destination: AccountId::from_i64(7),
                wallet: None,
                description: Some(Masked::new("Order 1001".to_owned())),
                metadata: BTreeMap::from([("order".to_owned(), Masked::new("1001".to_owned()))]),
            }),
            status: ChargeStatus::Processing,
            sums: ChargeSums::default(),
            working: None,
            provider: provider.clone(),
            provider_reference: None,
            failure: None,
            created_at: now,
            revision: 1,
        },
        outbox: Outbox {
            id: charge.into(),
            payment: Payment::Charge(charge),
            saga: Saga { flow: Flow::Charge, version: 1, progress: SagaProgress::START },
            hold: None,
            claim: id,
            tenant,
            provider,
            due_at: until,
            created_at: now,
            history: History::begun(now),
            parked: None,
            revision: 1,
        },
        audit: AuditRecord {
            id: Ulid::new(now, chance),
            tenant,
            subject: charge.into(),
            at: now,
            fence: 1,
            kind: AuditKind::Claimed,
            detail: "request=req_01JD0000000000000000000000 reused=false".to_owned(),
        },
    }
}

impl Work {
    /// The first set inserts claim, charge, work and an audit record.
    pub(crate) fn opening(&self, set: i64) -> ChangeSet {
        ChangeSet::new(SetId::from_i64(set))
            .insert(self.claim.clone())
            .insert(self.charge.clone())
            .insert(self.outbox.clone())
            .insert(self.audit.clone())
    }

    /// The claim after its answer is stored.
    pub(crate) fn answered(&self, now: Time, body: bytes::Bytes) -> Claim {
        let policy = WindowPolicy {
            replay: Span::from_ms(24 * HOUR.ms()),
            tombstone: HOUR,
            reuse: Reuse::AfterTombstone,
        };
        Claim {
            revision: self.claim.revision + 1,
            state: ClaimState::Completed(Settled {
                reply: Reply {
                    status: 201,
                    media: ReplyMedia::Json,
                    location: Some("/v1/charges/ch_0000000000000000000000".into()),
                    body,
                },
                windows: policy.windows(self.claim.id, now),
            }),
            ..self.claim.clone()
        }
    }

    /// The second set stores the answer, ends the charge, removes the work and adds two audit
    /// records.
    pub(crate) fn settling(&self, set: i64, now: Time, body: bytes::Bytes) -> ChangeSet {
        let charge = Charge {
            status: ChargeStatus::Succeeded,
            sums: ChargeSums { captured: self.charge.order.card(), ..ChargeSums::default() },
            provider_reference: Some("pi_3PabcDEFghiJKLmn0000000".to_owned()),
            revision: self.charge.revision + 1,
            ..self.charge.clone()
        };
        let record = |steps: u8, kind| AuditRecord {
            id: self.audit.id.after(steps),
            at: now,
            kind,
            detail: "outcome=approved generation=1".to_owned(),
            ..self.audit.clone()
        };
        ChangeSet::new(SetId::from_i64(set))
            .replace(self.answered(now, body), self.claim.revision)
            .replace(charge, self.charge.revision)
            .remove(RowKey::Outbox(self.outbox.tenant, self.outbox.id), self.outbox.revision)
            .insert(record(1, AuditKind::ProviderAnswered))
            .insert(record(2, AuditKind::Settled))
    }
}

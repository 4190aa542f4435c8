//! A scripted engine: it says what the script says, or else behaves like a small honest one.

use bytes::Bytes;
use counterfoil_core::audit::{Kind, Record};
use counterfoil_core::idempotency::claim::{Claim, ClaimId, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::outbox::Park;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::payments::charge::{Charge, Order, Status};
use counterfoil_core::tenancy::{ApiKey, KeyPolicy, Scopes, Tenant};
use counterfoil_core::types::digest::{Digest, MacKey};
use counterfoil_core::types::id::{AccountId, ChargeId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::reference::{Kind as Refers, References};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::present::Present;
use counterfoil_engine::service::{AdminError, Answer, NewKey, NewTenant, Principal, Service, Submitted};
use counterfoil_store::{ReadError, Tally};
use counterfoil_wire::charge::Presenter;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) const START: Time = Time::from_ms(1_767_225_600_000);
pub(crate) const ACME: TenantId = TenantId::from_i64(1);
pub(crate) const GLOBEX: TenantId = TenantId::from_i64(2);

/// What the next submission does.
pub(crate) enum Next {
    Say(Submitted),
    Hang,
    Panic,
}

type Kept = HashMap<ClaimId, (Fingerprint, Settled)>;

pub(crate) struct Fake {
    pub(crate) references: References,
    pub(crate) now_ms: AtomicI64,
    ids: AtomicU64,
    pub(crate) script: Mutex<VecDeque<Next>>,
    pub(crate) submitted: Mutex<Vec<CreateCharge>>,
    kept: Mutex<Kept>,
    pub(crate) charges: Mutex<Vec<Charge>>,
    pub(crate) claims: Mutex<HashMap<ClaimId, (Claim, Option<Park>)>>,
    principals: HashMap<Digest, Arc<Principal>>,
    /// How often somebody asked whose API key it is.
    pub(crate) principals_asked: AtomicU64,
    pub(crate) store_down: AtomicBool,
    pub(crate) reads_hang: AtomicBool,
}

impl Fake {
    pub(crate) fn new() -> Arc<Fake> {
        let mut principals = HashMap::new();
        for (secret, tenant, name, scopes, key_policy) in [
            ("sk_acme", ACME, "acme", "read,write", None),
            ("sk_acme_read", ACME, "acme", "read", None),
            ("sk_acme_write", ACME, "acme", "write", None),
            ("sk_globex", GLOBEX, "globex", "read,write", Some(KeyPolicy::Optional)),
        ] {
            let principal = Principal {
                tenant,
                name: name.to_owned(),
                main_account: AccountId::from_i64(100 + tenant.to_i64()),
                scopes: Scopes::parse(scopes).unwrap(),
                key_policy,
            };
            principals.insert(ApiKey::digest_of(&Masked::new(secret.to_owned())), Arc::new(principal));
        }
        Arc::new(Fake {
            references: References::new(MacKey::new(&[42; 32])),
            now_ms: AtomicI64::new(START.ms()),
            ids: AtomicU64::new(1),
            script: Mutex::default(),
            submitted: Mutex::default(),
            kept: Mutex::default(),
            charges: Mutex::default(),
            claims: Mutex::default(),
            principals,
            principals_asked: AtomicU64::new(0),
            store_down: AtomicBool::new(false),
            reads_hang: AtomicBool::new(false),
        })
    }

    pub(crate) fn next(&self, next: Next) {
        self.script.lock().unwrap().push_back(next);
    }

    pub(crate) fn submissions(&self) -> usize {
        self.submitted.lock().unwrap().len()
    }

    /// The fingerprint of the last submission.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.submitted.lock().unwrap().last().unwrap().fingerprint
    }

    pub(crate) fn reference(&self, charge: ChargeId) -> String {
        self.references.seal(Refers::Charge, charge.to_i64()).to_string()
    }

    pub(crate) fn charge_of(&self, id: i64, tenant: TenantId, order: Order) -> Charge {
        Charge {
            id: ChargeId::from_i64(id),
            tenant,
            order,
            status: Status::Succeeded,
            provider: "stripe".to_owned(),
            provider_reference: Some(format!("pi_{id}")),
            failure: None,
            created_at: self.now(),
            revision: 2,
        }
    }

    pub(crate) fn settled(&self, charge: &Charge) -> Settled {
        Settled { reply: Presenter::new(self.references.clone()).charge(charge), windows: self.windows() }
    }

    pub(crate) fn windows(&self) -> Windows {
        Windows {
            replay_until: self.now().plus(Span::from_ms(86_400_000)),
            tombstone_until: self.now().plus(Span::from_ms(172_800_000)),
        }
    }

    fn behave(&self, command: CreateCharge) -> Submitted {
        let mut kept = self.kept.lock().unwrap();
        if let Some((fingerprint, settled)) = kept.get(&command.claim) {
            if *fingerprint != command.fingerprint {
                return Submitted::Mismatch;
            }
            return Submitted::Answer { settled: settled.clone(), replayed: true };
        }
        let mut charges = self.charges.lock().unwrap();
        let id = i64::try_from(charges.len()).unwrap() + 1;
        let charge = self.charge_of(id, command.tenant, command.order);
        let settled = self.settled(&charge);
        charges.push(charge);
        kept.insert(command.claim, (command.fingerprint, settled.clone()));
        Submitted::Answer { settled, replayed: false }
    }

    fn read<T: Send + 'static>(&self, value: T) -> Answer<'_, Result<T, ReadError>> {
        let (down, hang) = (self.store_down.load(Ordering::SeqCst), self.reads_hang.load(Ordering::SeqCst));
        Box::pin(async move {
            if hang {
                std::future::pending::<()>().await;
            }
            if down { Err(ReadError("the disk is gone".to_owned())) } else { Ok(value) }
        })
    }
}

impl Service for Fake {
    fn now(&self) -> Time {
        Time::from_ms(self.now_ms.load(Ordering::SeqCst))
    }

    fn request_id(&self) -> Ulid {
        Ulid::new(self.now(), u128::from(self.ids.fetch_add(1, Ordering::SeqCst)))
    }

    fn references(&self) -> &References {
        &self.references
    }

    fn submit(&self, command: CreateCharge) -> Answer<'_, Submitted> {
        self.submitted.lock().unwrap().push(command.clone());
        let next = self.script.lock().unwrap().pop_front();
        Box::pin(async move {
            match next {
                None => self.behave(command),
                Some(Next::Say(submitted)) => submitted,
                Some(Next::Hang) => std::future::pending().await,
                Some(Next::Panic) => panic!("scripted"),
            }
        })
    }

    fn charge(&self, tenant: TenantId, id: ChargeId) -> Answer<'_, Result<Option<Charge>, ReadError>> {
        let charges = self.charges.lock().unwrap();
        self.read(charges.iter().find(|charge| charge.id == id && charge.tenant == tenant).cloned())
    }

    fn charges(
        &self,
        tenant: TenantId,
        before: Option<ChargeId>,
        limit: usize,
    ) -> Answer<'_, Result<Vec<Charge>, ReadError>> {
        let charges = self.charges.lock().unwrap();
        let found = charges
            .iter()
            .rev()
            .filter(|charge| charge.tenant == tenant && before.is_none_or(|before| charge.id < before))
            .take(limit)
            .cloned()
            .collect();
        self.read(found)
    }

    fn timeline(
        &self,
        tenant: TenantId,
        id: ChargeId,
        after: Option<Ulid>,
        limit: usize,
    ) -> Answer<'_, Result<Option<Vec<Record>>, ReadError>> {
        let charges = self.charges.lock().unwrap();
        let charge = charges.iter().find(|charge| charge.id == id && charge.tenant == tenant);
        let records = charge.map(|charge| {
            [Kind::Claimed, Kind::ProviderAnswered, Kind::Settled]
                .into_iter()
                .zip(0..)
                .map(|(kind, step)| Record {
                    id: Ulid::new(charge.created_at, 0).after(step),
                    tenant,
                    subject: id,
                    at: charge.created_at,
                    fence: 1,
                    kind,
                    detail: format!("step={step}"),
                })
                .filter(|record| after.is_none_or(|after| record.id > after))
                .take(limit)
                .collect()
        });
        self.read(records)
    }

    fn claim(&self, id: ClaimId) -> Answer<'_, Result<Option<(Claim, Option<Park>)>, ReadError>> {
        self.read(self.claims.lock().unwrap().get(&id).cloned())
    }

    fn principal(&self, key: Digest) -> Answer<'_, Result<Option<Arc<Principal>>, ReadError>> {
        self.principals_asked.fetch_add(1, Ordering::SeqCst);
        self.read(self.principals.get(&key).cloned())
    }

    fn tally(&self) -> Answer<'_, Result<Tally, ReadError>> {
        self.read(Tally { pending: 7, parked: 2, stuck: 1, lag_ms: 1_500 })
    }

    fn ready(&self) -> Answer<'_, Result<(), String>> {
        let down = self.store_down.load(Ordering::SeqCst);
        Box::pin(async move { if down { Err("the store does not answer".to_owned()) } else { Ok(()) } })
    }

    fn create_tenant(&self, _: NewTenant) -> Answer<'_, Result<Tenant, AdminError>> {
        Box::pin(async { Err(AdminError::Exists) })
    }

    fn create_key(&self, _: NewKey) -> Answer<'_, Result<ApiKey, AdminError>> {
        Box::pin(async { Err(AdminError::NotFound) })
    }

    fn revoke_key(&self, _: String) -> Answer<'_, Result<ApiKey, AdminError>> {
        Box::pin(async { Err(AdminError::NotFound) })
    }

    fn tenants(&self) -> Answer<'_, Result<Vec<(Tenant, Vec<ApiKey>)>, ReadError>> {
        self.read(Vec::new())
    }
}

/// A stored answer with these bytes.
pub(crate) fn stored(fake: &Fake, status: u16, body: &'static str) -> Settled {
    use counterfoil_core::idempotency::reply::{Media, Reply};
    Settled {
        reply: Reply {
            status,
            media: Media::Problem,
            location: None,
            body: Bytes::from_static(body.as_bytes()),
        },
        windows: fake.windows(),
    }
}

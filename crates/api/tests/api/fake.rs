//! A scripted engine. Without a script entry, it behaves like a small correct engine.

mod ledger;
mod payments;

use bytes::Bytes;
use counterfoil_core::audit::{AuditKind, AuditRecord};
use counterfoil_core::idempotency::claim::{ClaimId, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::key::IdempotencyKey;
use counterfoil_core::idempotency::reply::Reply;
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::idempotency::window::Windows;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::outbox::Payment;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::payments::ledger::{AccountSelector, Item, LedgerCommand};
use counterfoil_core::payments::operation::launch::Operate;
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::payments::payout::create::CreatePayout;
use counterfoil_core::tenancy::{ApiKey, KeyPolicy, Scopes, Tenant};
use counterfoil_core::types::digest::{Digest, MacKey};
use counterfoil_core::types::id::{
    AccountId, ChargeId, OperationId, PayoutId, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::service::{
    AdminError, BalanceView, DeadLetter, KeyView, NewKey, NewTenant, Principal, RefundView, Resolution,
    Service, ServiceFuture, Submitted, TransactionView, TransferView,
};
use counterfoil_store::{ReadError, Tally, Upto};
use counterfoil_wire::present::Presenter;
use ledger::{Asked, Ledger};
use payments::Payments;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) const START: Time = Time::from_ms(1_767_225_600_000);
pub(crate) const ACME: TenantId = TenantId::from_i64(1);
pub(crate) const GLOBEX: TenantId = TenantId::from_i64(2);

/// The scripted result of the next submission.
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
    pub(crate) submitted: Mutex<Vec<Request>>,
    kept: Mutex<Kept>,
    payments: Mutex<Payments>,
    ledger: Mutex<Ledger>,
    pub(crate) claims: Mutex<HashMap<ClaimId, KeyView>>,
    principals: HashMap<Digest, Arc<Principal>>,
    /// Number of look-ups of API keys.
    pub(crate) principals_asked: AtomicU64,
    pub(crate) store_down: AtomicBool,
    /// The payments named by hints.
    pub(crate) hinted: Mutex<Vec<Payment>>,
    pub(crate) reads_hang: AtomicBool,
}

impl Fake {
    pub(crate) fn new() -> Arc<Fake> {
        let mut principals = HashMap::new();
        for (secret, tenant, name, scopes, key_policy) in [
            ("sk_acme", ACME, "acme", "read,write", None),
            ("sk_acme_read", ACME, "acme", "read", None),
            ("sk_acme_write", ACME, "acme", "write", None),
            ("sk_acme_admin", ACME, "acme", "admin", None),
            ("sk_globex", GLOBEX, "globex", "read,write", Some(KeyPolicy::Optional)),
            ("sk_globex_admin", GLOBEX, "globex", "admin", None),
        ] {
            let principal = Principal {
                tenant,
                name: name.to_owned(),
                scopes: Scopes::parse(scopes).unwrap(),
                key_policy,
            };
            principals.insert(ApiKey::digest_of(&Masked::new(secret)), Arc::new(principal));
        }
        Arc::new(Fake {
            references: References::new(MacKey::new(&[42; 32])),
            now_ms: AtomicI64::new(START.ms()),
            ids: AtomicU64::new(1),
            script: Mutex::default(),
            submitted: Mutex::default(),
            kept: Mutex::default(),
            payments: Mutex::default(),
            ledger: Mutex::default(),
            claims: Mutex::default(),
            principals,
            principals_asked: AtomicU64::new(0),
            store_down: AtomicBool::new(false),
            hinted: Mutex::default(),
            reads_hang: AtomicBool::new(false),
        })
    }

    pub(crate) fn next(&self, next: Next) {
        self.script.lock().unwrap().push_back(next);
    }

    pub(crate) fn submissions(&self) -> usize {
        self.submitted.lock().unwrap().len()
    }

    /// Deletes the answer stored under a key of [`ACME`].
    pub(crate) fn forget(&self, key: &str) {
        let key = IdempotencyKey::from_text(key.as_bytes()).unwrap();
        self.kept.lock().unwrap().remove(&ClaimId::new(ACME, &key));
    }

    /// Parks the newest charge and returns the reference of its dead letter.
    pub(crate) fn park(&self) -> String {
        let id = self.payments.lock().unwrap().park(self.now());
        self.references.seal(ReferenceKind::DeadLetter, id.to_i64()).to_string()
    }

    /// The fingerprint of the last submission.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.submitted.lock().unwrap().last().unwrap().fingerprint
    }

    pub(crate) fn reference(&self, charge: ChargeId) -> String {
        self.references.seal(ReferenceKind::Charge, charge.to_i64()).to_string()
    }

    fn presenter(&self) -> Presenter {
        Presenter::new(self.references.clone())
    }

    pub(crate) fn windows(&self) -> Windows {
        Windows {
            replay_until: self.now().plus(Span::from_ms(86_400_000)),
            tombstone_until: self.now().plus(Span::from_ms(172_800_000)),
        }
    }

    /// Replays the stored answer, or does the work and stores its answer.
    fn once(&self, request: Request, work: impl FnOnce() -> Result<Reply, Submitted>) -> Submitted {
        let mut kept = self.kept.lock().unwrap();
        if let Some((fingerprint, settled)) = kept.get(&request.claim) {
            if *fingerprint != request.fingerprint {
                return Submitted::Mismatch;
            }
            return Submitted::Answer { settled: settled.clone(), replayed: true };
        }
        let reply = match work() {
            Ok(reply) => reply,
            Err(submitted) => return submitted,
        };
        let settled = Settled { reply, windows: self.windows() };
        kept.insert(request.claim, (request.fingerprint, settled.clone()));
        Submitted::Answer { settled, replayed: false }
    }

    /// Follows the script, or does the work if the script is empty.
    fn play<'a>(
        &'a self,
        request: Request,
        work: impl FnOnce() -> Result<Reply, Submitted> + Send + 'a,
    ) -> ServiceFuture<'a, Submitted> {
        self.submitted.lock().unwrap().push(request);
        let next = self.script.lock().unwrap().pop_front();
        Box::pin(async move {
            match next {
                None => self.once(request, work),
                Some(Next::Say(submitted)) => submitted,
                Some(Next::Hang) => std::future::pending().await,
                Some(Next::Panic) => panic!("scripted"),
            }
        })
    }

    fn asked(&self, request: &Request) -> Asked {
        Asked { tenant: request.tenant, request: request.id, now: self.now() }
    }

    fn read<T: Send + 'static>(&self, value: T) -> ServiceFuture<'_, Result<T, ReadError>> {
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

    fn submit(&self, command: CreateCharge) -> ServiceFuture<'_, Submitted> {
        let CreateCharge { request, wanted } = command;
        self.play(request, move || {
            Ok(self.payments.lock().unwrap().make(request.tenant, wanted, self.now(), &self.presenter()))
        })
    }

    fn operate(&self, command: Operate) -> ServiceFuture<'_, Submitted> {
        self.play(command.request, move || {
            self.payments.lock().unwrap().operate(command, self.now(), &self.presenter())
        })
    }

    fn pay_out(&self, command: CreatePayout) -> ServiceFuture<'_, Submitted> {
        let CreatePayout { request, wanted } = command;
        self.play(request, move || {
            Ok(self.payments.lock().unwrap().pay_out(request.tenant, wanted, self.now(), &self.presenter()))
        })
    }

    fn payout(&self, tenant: TenantId, id: PayoutId) -> ServiceFuture<'_, Result<Option<Payout>, ReadError>> {
        let own = self.payments.lock().unwrap().payouts(tenant, None, usize::MAX);
        self.read(own.into_iter().find(|payout| payout.id == id))
    }

    fn payouts(
        &self,
        tenant: TenantId,
        before: Option<PayoutId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Payout>, ReadError>> {
        self.read(self.payments.lock().unwrap().payouts(tenant, before, limit))
    }

    fn refund(
        &self,
        tenant: TenantId,
        id: OperationId,
    ) -> ServiceFuture<'_, Result<Option<RefundView>, ReadError>> {
        self.read(self.payments.lock().unwrap().refund(tenant, id))
    }

    fn refunds(
        &self,
        tenant: TenantId,
        before: Option<OperationId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<RefundView>, ReadError>> {
        self.read(self.payments.lock().unwrap().refunds(tenant, before, limit))
    }

    fn dead_letters(
        &self,
        tenant: TenantId,
        before: Option<SubjectId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<DeadLetter>, ReadError>> {
        self.read(self.payments.lock().unwrap().letters(tenant, before, limit))
    }

    fn dead_letter(
        &self,
        tenant: TenantId,
        id: SubjectId,
    ) -> ServiceFuture<'_, Result<Option<DeadLetter>, ReadError>> {
        let letters = self.payments.lock().unwrap().letters(tenant, None, usize::MAX);
        self.read(letters.into_iter().find(|letter| letter.outbox.id == id))
    }

    fn resolve(
        &self,
        request: Request,
        id: SubjectId,
        resolution: Resolution,
    ) -> ServiceFuture<'_, Submitted> {
        self.play(request, move || {
            let present = (&self.presenter(), request.id);
            self.payments.lock().unwrap().resolve(request.tenant, id, &resolution, present)
        })
    }

    fn hint(&self, payment: Payment) -> ServiceFuture<'_, Result<usize, ReadError>> {
        self.hinted.lock().unwrap().push(payment);
        self.read(1)
    }

    fn execute(&self, request: Request, act: LedgerCommand) -> ServiceFuture<'_, Submitted> {
        let asked = self.asked(&request);
        self.play(request, move || self.ledger.lock().unwrap().keep(act, asked, &self.presenter()))
    }

    fn bulk(&self, request: Request, items: Vec<Item>) -> ServiceFuture<'_, Submitted> {
        let asked = self.asked(&request);
        self.play(request, move || Ok(self.ledger.lock().unwrap().bulk(items, asked, &self.presenter())))
    }

    fn account(
        &self,
        tenant: TenantId,
        named: AccountSelector,
    ) -> ServiceFuture<'_, Result<Option<Arc<Account>>, ReadError>> {
        self.read(self.ledger.lock().unwrap().account(tenant, &named))
    }

    fn accounts(
        &self,
        tenant: TenantId,
        before: Option<AccountId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Account>, ReadError>> {
        self.read(self.ledger.lock().unwrap().accounts(tenant, before, limit))
    }

    fn balance(
        &self,
        account: Arc<Account>,
        upto: Upto,
    ) -> ServiceFuture<'_, Result<BalanceView, ReadError>> {
        self.read(self.ledger.lock().unwrap().balance(&account, upto))
    }

    fn entries(
        &self,
        _: TenantId,
        account: AccountId,
        before: Option<(TransactionId, u16)>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<AccountEntry>, ReadError>> {
        self.read(self.ledger.lock().unwrap().entries(account, before, limit))
    }

    fn transfer(
        &self,
        tenant: TenantId,
        id: TransactionId,
    ) -> ServiceFuture<'_, Result<Option<TransferView>, ReadError>> {
        self.read(self.ledger.lock().unwrap().transfer(tenant, id))
    }

    fn transaction(
        &self,
        tenant: TenantId,
        id: TransactionId,
    ) -> ServiceFuture<'_, Result<Option<TransactionView>, ReadError>> {
        self.read(self.ledger.lock().unwrap().transaction(tenant, id))
    }

    fn transactions(
        &self,
        tenant: TenantId,
        before: Option<TransactionId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Transaction>, ReadError>> {
        self.read(self.ledger.lock().unwrap().transactions(tenant, before, limit))
    }

    fn assets(&self, tenant: TenantId) -> ServiceFuture<'_, Result<Vec<AssetDefinition>, ReadError>> {
        self.read(self.ledger.lock().unwrap().assets(tenant))
    }

    fn charge(&self, tenant: TenantId, id: ChargeId) -> ServiceFuture<'_, Result<Option<Charge>, ReadError>> {
        self.read(self.payments.lock().unwrap().charge(tenant, id))
    }

    fn charges(
        &self,
        tenant: TenantId,
        before: Option<ChargeId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Charge>, ReadError>> {
        self.read(self.payments.lock().unwrap().charges(tenant, before, limit))
    }

    fn timeline(
        &self,
        tenant: TenantId,
        subject: SubjectId,
        after: Option<Ulid>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Option<Vec<AuditRecord>>, ReadError>> {
        let charge = self.payments.lock().unwrap().charge(tenant, subject.into());
        let transfer = self.ledger.lock().unwrap().transfer(tenant, subject.into());
        let (began, kinds) = match (charge, transfer) {
            (Some(charge), _) => {
                (charge.created_at, vec![AuditKind::Claimed, AuditKind::ProviderAnswered, AuditKind::Settled])
            }
            (None, Some(_)) => (START, vec![AuditKind::Posted]),
            (None, None) => return self.read(None),
        };
        let records = kinds.into_iter().zip(0..).map(|(kind, step)| AuditRecord {
            id: Ulid::new(began, 0).after(step),
            tenant,
            subject,
            at: began,
            fence: 1,
            kind,
            detail: format!("step={step}"),
        });
        let records = records.filter(|record| after.is_none_or(|after| record.id > after)).take(limit);
        self.read(Some(records.collect()))
    }

    fn claim(&self, _: TenantId, id: ClaimId) -> ServiceFuture<'_, Result<Option<KeyView>, ReadError>> {
        self.read(self.claims.lock().unwrap().get(&id).cloned())
    }

    fn principal(&self, key: Digest) -> ServiceFuture<'_, Result<Option<Arc<Principal>>, ReadError>> {
        self.principals_asked.fetch_add(1, Ordering::SeqCst);
        self.read(self.principals.get(&key).cloned())
    }

    fn tally(&self) -> ServiceFuture<'_, Result<Tally, ReadError>> {
        self.read(Tally { pending: 7, parked: 2, stuck: 1, lag_ms: 1_500 })
    }

    fn ready(&self) -> ServiceFuture<'_, Result<(), String>> {
        let down = self.store_down.load(Ordering::SeqCst);
        Box::pin(async move { if down { Err("the store does not answer".to_owned()) } else { Ok(()) } })
    }

    fn create_tenant(&self, _: NewTenant) -> ServiceFuture<'_, Result<Tenant, AdminError>> {
        Box::pin(async { Err(AdminError::Exists) })
    }

    fn create_key(&self, _: NewKey) -> ServiceFuture<'_, Result<ApiKey, AdminError>> {
        Box::pin(async { Err(AdminError::NotFound) })
    }

    fn revoke_key(&self, _: String) -> ServiceFuture<'_, Result<ApiKey, AdminError>> {
        Box::pin(async { Err(AdminError::NotFound) })
    }

    fn tenants(&self) -> ServiceFuture<'_, Result<Vec<(Tenant, Vec<ApiKey>)>, ReadError>> {
        self.read(Vec::new())
    }
}

/// A stored answer with the given bytes.
pub(crate) fn stored(fake: &Fake, status: u16, body: &'static str) -> Settled {
    use counterfoil_core::idempotency::reply::{Reply, ReplyMedia};
    Settled {
        reply: Reply {
            status,
            media: ReplyMedia::Problem,
            location: None,
            body: Bytes::from_static(body.as_bytes()),
        },
        windows: fake.windows(),
    }
}

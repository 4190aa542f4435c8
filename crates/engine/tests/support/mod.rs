//! Test support: a scripted provider, the reference store and virtual time.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test panics when it cannot continue"
)]

use counterfoil_core::idempotency::claim::{ClaimId, LeasePolicy};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::idempotency::key::IdempotencyKey;
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::idempotency::window;
use counterfoil_core::ledger::chart::ROLES;
use counterfoil_core::outbox::ProviderBinding;
use counterfoil_core::payments::charge::create::{CreateCharge, NewCharge};
use counterfoil_core::payments::ledger::decide;
use counterfoil_core::payments::provider::{
    Approval, Cause, Decline, LookupResult, ProviderOutcome, ProviderStep, Rules,
};
use counterfoil_core::saga::backoff::Backoff;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::digest::{Digest, MacKey};
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::reference::References;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::policy::EnginePolicy;
use counterfoil_engine::service::{Service, Submitted};
use counterfoil_engine::signal::NoWatch;
use counterfoil_engine::world::TokioWorld;
use counterfoil_engine::{Engine, Parts, SharedServices};
use counterfoil_gateway::{Gateway, ProviderCall, ProviderLookup, ProviderProfile, Routes, breaker};
use counterfoil_store::{ChangeSet, Row, RowKey, Store};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub mod ledger;
pub mod peer;
mod present;
mod shared;

use peer::{Peer, with_peer_eu};
pub use present::Plain;
pub use shared::SharedStore;

pub const TENANT: TenantId = TenantId::from_i64(1);

/// The provider's reaction to a call.
#[derive(Clone, Debug)]
pub enum Script {
    Approve,
    ApproveAmount(i64),
    Decline,
    Answer(ProviderOutcome),
    /// Executes, and answers with this instead.
    Executed(ProviderOutcome),
    /// Executes, and answers after this time.
    Slow(Duration),
    /// Never answers.
    Hang,
    /// The connector has a defect.
    Panic,
}

/// A provider that follows a script, then approves everything. Its effects are kept by key.
#[derive(Clone, Default)]
pub struct Provider(Arc<Mutex<Played>>);

#[derive(Default)]
pub struct Played {
    script: VecDeque<Script>,
    found: VecDeque<LookupResult>,
    pub keys: Vec<String>,
    pub steps: Vec<ProviderStep>,
    pub effects: BTreeMap<String, i64>,
    pub lookups: usize,
    profile: Option<&'static str>,
    running: usize,
    /// Number of running calls at the start of each call, the call included.
    alongside: Vec<usize>,
    decisions: VecDeque<Script>,
    decided: BTreeMap<String, Script>,
    /// Bindings of the calls to the provider, and of those to the peer.
    seen: [Vec<ProviderBinding>; 2],
}

impl Played {
    fn next(&mut self, call: &ProviderCall) -> Script {
        self.keys.push(call.key.clone());
        self.steps.push(call.step);
        if let Some(decided) = self.decided.get(&call.key) {
            return decided.clone();
        }
        if let Some(decision) = self.decisions.pop_front() {
            self.decided.insert(call.key.clone(), decision.clone());
            return decision;
        }
        self.script.pop_front().unwrap_or(Script::Approve)
    }
}

impl Provider {
    pub fn new(script: &[Script]) -> Provider {
        let provider = Provider::default();
        provider.0.lock().unwrap().script.extend(script.iter().cloned());
        provider
    }

    pub fn profile(self, name: &'static str) -> Provider {
        self.0.lock().unwrap().profile = Some(name);
        self
    }

    pub fn finds(self, found: &[LookupResult]) -> Provider {
        self.0.lock().unwrap().found.extend(found.iter().cloned());
        self
    }

    /// Adds to the script.
    pub fn play(&self, script: &[Script]) {
        self.0.lock().unwrap().script.extend(script.iter().cloned());
    }

    /// Decides every call of the next key, of the key after it, and so on.
    pub fn decide(&self, script: &[Script]) {
        self.0.lock().unwrap().decisions.extend(script.iter().cloned());
    }

    /// Number of running calls at the start of each call, the call included.
    pub fn alongside(&self) -> Vec<usize> {
        self.0.lock().unwrap().alongside.clone()
    }

    /// Bindings of the calls to the provider, and of those to the peer.
    pub fn seen(&self) -> [Vec<ProviderBinding>; 2] {
        self.0.lock().unwrap().seen.clone()
    }

    pub fn steps(&self) -> Vec<ProviderStep> {
        self.0.lock().unwrap().steps.clone()
    }

    pub fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().keys.clone()
    }

    pub fn effects(&self) -> usize {
        self.0.lock().unwrap().effects.len()
    }

    pub fn lookups(&self) -> usize {
        self.0.lock().unwrap().lookups
    }
}

pub fn approval(amount: i64, payment: &str) -> ProviderOutcome {
    approval_of(ProviderStep::Charge, amount, payment)
}

/// The correct approval of a step.
pub fn approval_of(step: ProviderStep, amount: i64, payment: &str) -> ProviderOutcome {
    ProviderOutcome::Approved(Approval {
        reference: format!("pi_{payment}"),
        stands: step.leads_to(),
        amount_minor: amount,
        asset: Asset::parse("USD").ok(),
        payment: Some(payment.to_owned()),
    })
}

pub const UNKNOWN: ProviderOutcome = ProviderOutcome::Unknown(Cause::Timeout);

impl Gateway for Provider {
    fn binding(&self) -> ProviderBinding {
        let profile = self.0.lock().unwrap().profile.unwrap_or("stripe").into();
        ProviderBinding { profile, endpoint: "http://provider".into() }
    }

    fn rules(&self, binding: &ProviderBinding) -> Rules {
        ProviderProfile::named(&binding.profile).unwrap().rules
    }

    async fn call(&self, call: ProviderCall) -> ProviderOutcome {
        self.0.lock().unwrap().seen[0].push(call.binding.clone());
        self.played(call).await
    }

    async fn lookup(&self, _: ProviderLookup) -> LookupResult {
        let mut played = self.0.lock().unwrap();
        played.lookups += 1;
        played.found.pop_front().unwrap_or(LookupResult::Nothing)
    }
}

impl Provider {
    async fn played(&self, call: ProviderCall) -> ProviderOutcome {
        let script = self.0.lock().unwrap().next(&call);
        let _running = Running::begin(self);
        let approved = approval_of(call.step, call.amount.minor(), &call.payment);
        let execute = || self.0.lock().unwrap().effects.insert(call.key.clone(), call.amount.minor());
        match script {
            Script::Approve => {
                execute();
                approved
            }
            Script::ApproveAmount(amount) => {
                execute();
                approval_of(call.step, amount, &call.payment)
            }
            Script::Decline => ProviderOutcome::Declined(Decline {
                code: "card_declined".into(),
                decline_code: Some("insufficient_funds".into()),
                reference: None,
            }),
            Script::Answer(outcome) => outcome,
            Script::Executed(outcome) => {
                execute();
                outcome
            }
            Script::Slow(wait) => {
                execute();
                tokio::time::sleep(wait).await;
                approved
            }
            Script::Hang => std::future::pending().await,
            Script::Panic => panic!("provoked by a test"),
        }
    }
}

/// A running call.
struct Running(Provider);

impl Running {
    fn begin(provider: &Provider) -> Running {
        let mut played = provider.0.lock().unwrap();
        played.running += 1;
        let running = played.running;
        played.alongside.push(running);
        Running(provider.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().running -= 1;
    }
}

pub type TestEngine = Engine<SharedStore, Routes<Provider, Peer>, TokioWorld>;

pub fn policy() -> EnginePolicy {
    EnginePolicy {
        lease: LeasePolicy { lease: Span::from_ms(30_000), ceiling: Span::from_ms(180_000) },
        heartbeat: Span::from_ms(10_000),
        wait: Span::from_ms(5_000),
        windows: window::WindowPolicy {
            replay: Span::from_ms(86_400_000),
            tombstone: Span::from_ms(86_400_000),
            reuse: window::Reuse::AfterTombstone,
        },
        attempts_max: 3,
        backoff: Backoff { base: Span::from_ms(500), cap: Span::from_ms(30_000) },
        poll: Span::from_ms(500),
        batch: 64,
        breaker: breaker::BreakerPolicy { failures: 1_000, open: Span::from_ms(1_000) },
    }
}

/// A process without heartbeats, as if it were stopped during its call.
pub fn never_renewing() -> EnginePolicy {
    EnginePolicy { heartbeat: Span::from_ms(3_600_000), ..policy() }
}

/// A replay window and a tombstone of ten minutes each.
pub fn short_windows() -> EnginePolicy {
    let ten_minutes = Span::from_ms(600_000);
    let windows = window::WindowPolicy { replay: ten_minutes, tombstone: ten_minutes, ..policy().windows };
    EnginePolicy { windows, ..policy() }
}

/// A store with an open chart, so that the first commit of a charge is its claim.
pub async fn charted() -> SharedStore {
    let store = SharedStore::new();
    let usd = Asset::parse("USD").unwrap();
    let mut set = ChangeSet::new(SetId::from_i64(1));
    for (number, role) in (1..).zip(ROLES) {
        let wanted = decide::chart_account(role, usd).unwrap();
        let (account, name, _) = decide::open(wanted, AccountId::from_i64(number), TENANT, store.now());
        set = set.insert(name).insert(account);
    }
    store.commit(set).await.unwrap();
    store
}

pub async fn engine_with(store: &SharedStore, provider: &Provider, policy: EnginePolicy) -> TestEngine {
    engine_among(store, with_peer_eu(provider), policy).await
}

pub async fn engine_among(
    store: &SharedStore,
    gateway: Routes<Provider, Peer>,
    policy: EnginePolicy,
) -> TestEngine {
    engine_with_shared(store, gateway, policy, SharedServices::default()).await
}

pub async fn engine_with_shared(
    store: &SharedStore,
    gateway: Routes<Provider, Peer>,
    policy: EnginePolicy,
    shared: SharedServices,
) -> TestEngine {
    let references = References::new(MacKey::new(store.secret().reveal()));
    let parts = Parts {
        store: store.clone(),
        gateway,
        world: TokioWorld::new(),
        policy,
        present: Arc::new(Plain(references)),
        watch: Arc::new(NoWatch),
    };
    Engine::start_with(parts, shared).await.unwrap()
}

pub async fn engine(store: &SharedStore, provider: &Provider) -> TestEngine {
    engine_with(store, provider, policy()).await
}

/// A request of `tenant` under `key`, with dashes for spaces. `body` determines the fingerprint.
pub fn request_of(tenant: TenantId, key: &str, body: &[u8]) -> Request {
    let key = IdempotencyKey::from_text(key.replace(' ', "-").as_bytes()).unwrap();
    Request {
        tenant,
        claim: ClaimId::new(tenant, &key),
        fingerprint: Fingerprint::from_digest(Digest::of("test", &[body])),
        id: Ulid::new(Time::EPOCH, 1),
    }
}

pub fn command(key: &str, amount: i64) -> CreateCharge {
    CreateCharge {
        request: request_of(TENANT, key, &amount.to_be_bytes()),
        wanted: NewCharge {
            amount: Money::new(amount, Asset::parse("USD").unwrap()).unwrap(),
            payment_method: Masked::new("pm_card_visa".into()),
            capture: true,
            destination: None,
            wallet: None,
            description: None,
            metadata: BTreeMap::new(),
        },
    }
}

pub async fn charge(engine: &TestEngine, key: &str, amount: i64) -> Submitted {
    engine.submit(command(key, amount)).await
}

/// Status, body and whether the answer was replayed.
pub fn answer(submitted: &Submitted) -> (u16, String, bool) {
    match submitted {
        Submitted::Answer { settled, replayed } => {
            (settled.reply.status, String::from_utf8(settled.reply.body.to_vec()).unwrap(), *replayed)
        }
        other => panic!("no answer but {other:?}"),
    }
}

/// Charges 1250, which must stay pending, and returns the charge's public reference.
pub async fn pending(engine: &TestEngine, key: &str) -> String {
    match charge(engine, key, 1250).await {
        Submitted::Pending { payment, .. } => payment.reference(engine.references()).to_string(),
        other => panic!("not pending but {other:?}"),
    }
}

/// Waits, and lets workers run that are due at the same moment.
pub async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    tokio::task::yield_now().await;
}

/// The current claim of a key.
pub async fn claim(store: &SharedStore, key: &str) -> counterfoil_core::idempotency::claim::Claim {
    let id = command(key, 1).request.claim;
    match store.read(vec![RowKey::Claim(TENANT, id)]).await.unwrap().remove(0) {
        Some(Row::Claim(claim)) => claim,
        other => panic!("no claim but {other:?}"),
    }
}

/// Asserts that verification finds no violation.
pub async fn verified(store: &SharedStore) {
    let report = counterfoil_engine::verify::verify(store, |_| {}).await.unwrap();
    assert!(report.holds(), "{:#?}", report.findings());
}

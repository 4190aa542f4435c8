//! The engine's state, its start and its shutdown.

use crate::answers::SharedAnswers;
use crate::cache::AnswerCache;
use crate::lanes::Lanes;
use crate::ledger::accounts::Accounts;
use crate::ledger::heat::Heat;
use crate::mint::{self, IdMint};
use crate::policy::EnginePolicy;
use crate::present::Present;
use crate::principals::Principals;
use crate::recent::Recent;
use crate::shared::SharedServices;
use crate::signal::{Signal, Watch};
use crate::waiters::Waiters;
use crate::workers;
use crate::world::World;
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::reference::References;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::Gateway;
use counterfoil_gateway::fence::Fences;
use counterfoil_store::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The parts of an engine.
pub struct Parts<S, G, W> {
    pub store: S,
    pub gateway: G,
    pub world: W,
    pub policy: EnginePolicy,
    pub present: Arc<dyn Present>,
    pub watch: Arc<dyn Watch>,
}

/// The engine.
pub struct Engine<S, G, W> {
    pub(crate) inner: Arc<Inner<S, G, W>>,
}

impl<S, G, W> Clone for Engine<S, G, W> {
    fn clone(&self) -> Self {
        Engine { inner: Arc::clone(&self.inner) }
    }
}

pub(crate) struct Inner<S, G, W> {
    pub(crate) store: S,
    pub(crate) gateway: G,
    pub(crate) world: W,
    pub(crate) policy: EnginePolicy,
    pub(crate) present: Arc<dyn Present>,
    pub(crate) watch: Arc<dyn Watch>,
    pub(crate) references: References,
    pub(crate) mac: MacKey,
    pub(crate) ids: IdMint,
    pub(crate) waiters: Waiters,
    pub(crate) cache: AnswerCache,
    pub(crate) fences: Fences,
    pub(crate) lanes: Lanes,
    pub(crate) principals: Principals,
    pub(crate) accounts: Accounts,
    pub(crate) heat: Heat,
    pub(crate) recent: Recent,
    draining: AtomicBool,
    stopped: AtomicBool,
    active: AtomicUsize,
}

/// The reason why an engine did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartError(pub String);

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

impl<S: Store, G: Gateway, W: World> Engine<S, G, W> {
    /// Claims a worker slot and starts the workers.
    pub async fn start(parts: Parts<S, G, W>) -> Result<Engine<S, G, W>, StartError> {
        Engine::start_with(parts, SharedServices::default()).await
    }

    /// Starts as [`Engine::start`], with services that other servers share.
    pub async fn start_with(
        parts: Parts<S, G, W>,
        shared: SharedServices,
    ) -> Result<Engine<S, G, W>, StartError> {
        let mac = MacKey::new(parts.store.secret().reveal());
        let cache = AnswerCache::new(shared.shelf.map(|cache| SharedAnswers::new(cache, mac.clone())));
        let watch = Arc::clone(&parts.watch);
        let fences = shared.fence.map_or(Fences::none(), |(fence, ttl)| {
            Fences::new(fence, ttl, move |_| watch.saw(Signal::FenceBypass))
        });
        let ids = IdMint::claim(&parts.store).await.map_err(StartError)?;
        let inner = Arc::new(Inner {
            references: parts.present.references().clone(),
            mac,
            ids,
            waiters: Waiters::default(),
            cache,
            fences,
            lanes: Lanes::new(parts.policy.breaker),
            principals: Principals::default(),
            accounts: Accounts::default(),
            heat: Heat::default(),
            recent: Recent::default(),
            draining: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            active: AtomicUsize::new(0),
            store: parts.store,
            gateway: parts.gateway,
            world: parts.world,
            policy: parts.policy,
            present: parts.present,
            watch: parts.watch,
        });
        inner.note_breaker();
        inner.world.spawn(mint::keep_slot(Arc::clone(&inner)));
        inner.world.spawn(workers::outbox::run(Arc::clone(&inner)));
        inner.world.spawn(workers::sweeper::run(Arc::clone(&inner)));
        inner.world.spawn(workers::holds::run(Arc::clone(&inner)));
        inner.world.spawn(workers::projection::run(Arc::clone(&inner)));
        Ok(Engine { inner })
    }

    /// Takes no new work from now on. Stored answers are still replayed.
    pub fn close(&self) {
        self.inner.draining.store(true, Ordering::SeqCst);
    }

    /// Takes no new work and waits for the running work, at most `deadline`. Returns the number of
    /// unfinished pieces of work, which another process takes over when the leases end.
    pub async fn drain(&self, deadline: Span) -> usize {
        const STEP: Span = Span::from_ms(10);
        self.close();
        let mut waited = Span::ZERO;
        while self.inner.active.load(Ordering::SeqCst) > 0 && waited < deadline {
            self.inner.world.sleep(Duration::from_millis(STEP.ms())).await;
            waited = waited.plus(STEP);
        }
        self.inner.stopped.store(true, Ordering::SeqCst);
        self.inner.active.load(Ordering::SeqCst)
    }

    pub fn store(&self) -> &S {
        &self.inner.store
    }
}

impl<S, G, W> Inner<S, G, W> {
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Counts a piece of work as running until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Active<S, G, W> {
        self.active.fetch_add(1, Ordering::SeqCst);
        Active(Arc::clone(self))
    }
}

/// Guard of a running piece of work.
pub(crate) struct Active<S, G, W>(Arc<Inner<S, G, W>>);

impl<S, G, W> Drop for Active<S, G, W> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::SeqCst);
    }
}

//! The engine: what its loops share, how it starts and how it ends.

use crate::answers::{SharedAnswers, SharedCache};
use crate::cache::Cache;
use crate::lanes::Lanes;
use crate::ledger::accounts::Accounts;
use crate::ledger::heat::Heat;
use crate::mint::{self, IdMint};
use crate::policy::EnginePolicy;
use crate::present::Present;
use crate::principals::Principals;
use crate::recent::Recent;
use crate::signal::{Signal, Watch};
use crate::waiters::Waiters;
use crate::workers;
use crate::world::World;
use counterfoil_core::types::digest::MacKey;
use counterfoil_core::types::reference::References;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::Gateway;
use counterfoil_gateway::fence::{Fence, Fences};
use counterfoil_store::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// What an engine is made of.
pub struct Parts<S, G, W> {
    /// Where everything is kept.
    pub store: S,
    /// Who moves the money.
    pub gateway: G,
    /// Tasks, waiting, chance.
    pub world: W,
    /// Settings.
    pub policy: EnginePolicy,
    /// How answers become bytes.
    pub present: Arc<dyn Present>,
    /// Who listens.
    pub watch: Arc<dyn Watch>,
}

/// What processes share beside the store. All of it may be lost at any time: without it the engine is as right, and
/// only less quick to say no.
#[derive(Default)]
pub struct SharedServices {
    /// Who works on which payment, and for how long that is believed.
    pub fence: Option<(Arc<dyn Fence>, Span)>,
    /// Answers that were stored.
    pub shelf: Option<Arc<dyn SharedCache>>,
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
    pub(crate) cache: Cache,
    pub(crate) answers: SharedAnswers,
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

/// Why an engine did not start.
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

    /// As [`Engine::start`], sharing more than the store with other processes.
    pub async fn start_with(
        parts: Parts<S, G, W>,
        beside: SharedServices,
    ) -> Result<Engine<S, G, W>, StartError> {
        let mac = MacKey::new(parts.store.secret().reveal());
        let answers =
            beside.shelf.map_or(SharedAnswers::none(), |shelf| SharedAnswers::new(shelf, mac.clone()));
        let watch = Arc::clone(&parts.watch);
        let fences = beside.fence.map_or(Fences::none(), |(fence, ttl)| {
            Fences::new(fence, ttl, move |_| watch.saw(Signal::FenceBypass))
        });
        let ids = IdMint::claim(&parts.store).await.map_err(StartError)?;
        let inner = Arc::new(Inner {
            references: parts.present.references().clone(),
            mac,
            ids,
            waiters: Waiters::default(),
            cache: Cache::default(),
            answers,
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

    /// Takes no new work from now on; requests for it are told so.
    pub fn close(&self) {
        self.inner.draining.store(true, Ordering::SeqCst);
    }

    /// Takes no new work, and waits for what is under way, at most `deadline`. What is left is finished by whoever
    /// takes over its lease. Returns how much that is.
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

    /// The store, for those who wired it up.
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

    /// Counts a piece of work as under way until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Active<S, G, W> {
        self.active.fetch_add(1, Ordering::SeqCst);
        Active(Arc::clone(self))
    }
}

/// A piece of work under way.
pub(crate) struct Active<S, G, W>(Arc<Inner<S, G, W>>);

impl<S, G, W> Drop for Active<S, G, W> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::SeqCst);
    }
}

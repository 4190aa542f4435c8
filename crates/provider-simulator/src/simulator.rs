//! A provider, shared by all its connections.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::effects::{Effect, Effects, Log};
use crate::faults::{BadFaults, Faults};
use crate::id;
use crate::options::Options;
use crate::state::State;

/// A provider's whole state; clones are handles to the same provider.
#[derive(Clone)]
pub struct Simulator {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    /// Request ids keep their run number over a reset, so they stay unique in a log.
    run: u64,
    requests: AtomicU32,
}

impl Simulator {
    /// A provider with no history. Fails if the log cannot be opened.
    pub fn new(options: Options) -> io::Result<Simulator> {
        let log = options.log.as_deref().map(Log::open).transpose()?;
        let run = id::next_run(options.clock.now_ms());
        let effects = Effects::new(options.effects_max, run, log);
        let state = State::new(run, effects, options.effects_max, options.keys_max);
        let shared =
            Shared { state: Mutex::new(state), clock: options.clock, run, requests: AtomicU32::new(0) };
        Ok(Simulator { shared: Arc::new(shared) })
    }

    /// All executed effects since the start or the last reset, oldest first.
    pub fn effects(&self) -> Vec<Effect> {
        let state = self.state();
        state.effects_in(0..state.effects.entries.len()).collect()
    }

    /// Number of pending late deliveries; the effects are final once this is 0.
    pub fn late_pending(&self) -> u32 {
        self.state().late_pending
    }

    /// The current fault settings.
    pub fn faults(&self) -> Faults {
        self.state().injector.faults().clone()
    }

    /// Replaces the faults and restarts their random streams.
    pub fn set_faults(&self, faults: Faults) -> Result<(), BadFaults> {
        self.state().injector.set(faults)
    }

    /// Forgets every object, effect and key, and drops requests in flight. Faults stay, and the log
    /// continues.
    pub fn reset(&self) {
        let run = id::next_run(self.now_ms());
        self.state().reset(run);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Every change is applied whole or not at all, so a panic leaves nothing half done.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.shared.clock
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.shared.clock.now_ms()
    }

    /// The id of the next request, as header bytes.
    pub(crate) fn next_request_id(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(24);
        id::push(
            &mut text,
            id::REQUEST,
            self.shared.run,
            self.shared.requests.fetch_add(1, Ordering::Relaxed),
        );
        text
    }
}

//! What the committers, the readers and the store itself share.

use crate::clock::{Clock, monotonic};
use crate::committer::Memory;
use crate::error::OpenError;
use crate::options::Options;
use crate::schema::{self, Found};
use crate::session::{Ground, Purpose, Session, Target};
use crate::tables::Looks;
use counterfoil_core::types::id::SetId;
use counterfoil_store::Receipt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Sets in doubt that are remembered; beyond, those whose committer is back are forgotten.
const DOUBTS_MAX: usize = 16_384;

/// The shared part of a store.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) target: Target,
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) secret: [u8; 32],
    /// How the tables let claims be looked at. They were asked once: they only go forward.
    pub(crate) looks: Looks,
    /// The last position this process knows of: the server must never have fewer.
    seen: AtomicU64,
    /// How many committers are connected.
    pub(crate) connected: AtomicUsize,
    /// How often each committer has connected: each time, all that its earlier connections did is decided.
    lives: Vec<watch::Sender<u64>>,
    doubts: Mutex<HashMap<SetId, Life>>,
    /// Rows the committers wrote a moment ago.
    pub(crate) memory: Memory,
}

/// One connection of one committer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) committer: usize,
    pub(crate) number: u64,
}

impl Shared {
    pub(crate) fn new(target: Target, options: Options, found: Found, ground: Ground) -> Shared {
        let looks =
            if found.looks_ahead() { Looks::ahead(options.replay_window) } else { Looks::OnceSettled };
        let lives = (0..options.committers.max(1)).map(|_| watch::Sender::new(0)).collect();
        Shared {
            target,
            options,
            clock: Clock::new(ground.server_us, ground.at),
            secret: ground.secret,
            looks,
            seen: AtomicU64::new(ground.position),
            connected: AtomicUsize::new(0),
            lives,
            doubts: Mutex::default(),
            memory: Memory::new(),
        }
    }

    /// Connects to the database that was opened at first, and to no other: same tables, same secret, nothing lost.
    pub(crate) async fn connect(&self, purpose: Purpose) -> Result<Session, OpenError> {
        // Read before the server is asked: commits made meanwhile must not count as lost.
        let known = self.seen.load(Ordering::Acquire);
        let session = Session::open(&self.target, purpose).await?;
        schema::check(&session).await?;
        let begun = monotonic();
        let ground = Ground::look(&session).await?;
        if ground.secret != self.secret {
            return Err(OpenError::Other);
        }
        if ground.position < known {
            return Err(OpenError::Lost { known, found: ground.position });
        }
        self.clock.looked(ground.server_us, monotonic().saturating_sub(begun));
        Ok(session)
    }

    /// A commit that this process has been told of.
    pub(crate) fn saw(&self, receipt: Receipt) {
        self.clock.saw(receipt.at);
        self.seen.fetch_max(receipt.position.0, Ordering::AcqRel);
    }

    /// A committer is connected, and its earlier connections have ended at the server, too.
    pub(crate) fn reborn(&self, committer: usize) -> Life {
        let Some(lives) = self.lives.get(committer) else { return Life { committer, number: 0 } };
        lives.send_modify(|number| *number = number.saturating_add(1));
        Life { committer, number: *lives.borrow() }
    }

    /// The set may have been committed in that life.
    pub(crate) fn doubt(&self, set: SetId, life: Life) {
        let mut doubts = self.doubts();
        if doubts.len() >= DOUBTS_MAX {
            doubts.retain(|_, life| !self.is_over(*life));
        }
        doubts.insert(set, life);
    }

    /// In which life the set may have been committed, if it is in doubt.
    pub(crate) fn doubted(&self, set: SetId) -> Option<Life> {
        self.doubts().get(&set).copied()
    }

    /// It is known what became of the set.
    pub(crate) fn resolved(&self, set: SetId) {
        self.doubts().remove(&set);
    }

    /// Waits until everything of that life is decided.
    pub(crate) async fn after(&self, life: Life) {
        if let Some(lives) = self.lives.get(life.committer) {
            // The sender is in here with us, so waiting ends only with the condition.
            let _ = lives.subscribe().wait_for(|number| *number > life.number).await;
        }
    }

    fn is_over(&self, life: Life) -> bool {
        self.lives.get(life.committer).is_none_or(|lives| *lives.borrow() > life.number)
    }

    fn doubts(&self) -> MutexGuard<'_, HashMap<SetId, Life>> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

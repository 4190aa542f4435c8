//! What the committers, the readers and the store itself share.

use crate::barrier::Barrier;
use crate::clock::{Clock, monotonic};
use crate::committer::{Ids, Memory};
use crate::error::OpenError;
use crate::history::{History, Last};
use crate::options::Options;
use crate::schema::{self, Found};
use crate::session::{CONNECT_WITHIN, Ground, Purpose, Session, Target, no_answer};
use crate::tables::Looks;
use crate::tables::commits::Log;
use counterfoil_core::types::id::SetId;
use counterfoil_store::CommitReceipt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_postgres::Config;

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
    /// Whether commits are kept group by group. The tables may go forward while this process runs.
    by_group: AtomicBool,
    /// What every server must have.
    pub(crate) history: History,
    /// How many committers are connected.
    pub(crate) connected: AtomicUsize,
    /// How often each committer has connected: each time, all that its earlier connections did is decided.
    lives: Vec<watch::Sender<u64>>,
    doubts: Mutex<HashMap<SetId, Doubt>>,
    pub(crate) barrier: Barrier,
    /// Sets in hand, and those that were committed a moment ago.
    pub(crate) ids: Arc<Ids>,
    /// Rows the committers wrote a moment ago.
    pub(crate) memory: Memory,
}

/// One connection of one committer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) committer: usize,
    pub(crate) number: u64,
}

/// A set that may have been committed: in which life, and then after which position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    pub(crate) life: Life,
    pub(crate) after: u64,
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
            by_group: AtomicBool::new(found.has_groups()),
            history: History::new(ground.position),
            connected: AtomicUsize::new(0),
            lives,
            doubts: Mutex::default(),
            barrier: Barrier::default(),
            ids: Arc::default(),
            memory: Memory::new(),
        }
    }

    /// Connects to the database that was opened at first, and to no other: same tables, same secret, nothing lost.
    pub(crate) async fn connect(&self, purpose: Purpose) -> Result<Session, OpenError> {
        self.history.is_whole()?;
        // Read before the server is asked: commits made meanwhile must not count as lost.
        let known = self.history.last();
        let mut refused = Vec::new();
        for (place, host) in self.target.hosts() {
            match self.connect_to(host, purpose, known).await {
                Ok(session) => {
                    self.target.taken_by(place);
                    return Ok(session);
                }
                Err(error) => refused.push(error),
            }
        }
        Err(self.history.why(refused))
    }

    async fn connect_to(&self, host: &Config, purpose: Purpose, known: Last) -> Result<Session, OpenError> {
        let session = Session::at(host, &self.target, purpose).await?;
        let looking = async {
            schema::check(&session).await?;
            let begun = monotonic();
            let ground = Ground::look(&session).await?;
            if ground.secret != self.secret {
                return Err(OpenError::Other);
            }
            known.is_in(&session, ground.position, self.log()).await?;
            self.clock.looked(ground.server_us, monotonic().saturating_sub(begun));
            Ok(())
        };
        tokio::time::timeout(CONNECT_WITHIN, looking).await.map_err(|_| no_answer())??;
        Ok(session)
    }

    /// A commit that this process has been told of.
    pub(crate) fn saw(&self, set: SetId, receipt: CommitReceipt) {
        self.clock.saw(receipt.at);
        self.history.saw(receipt.position.0, set);
    }

    /// The last position this process knows of: whatever is committed from now on comes after it.
    pub(crate) fn seen(&self) -> u64 {
        self.history.last().position
    }

    /// How commits are kept.
    pub(crate) fn log(&self) -> Log {
        if self.by_group.load(Ordering::Acquire) { Log::ByGroup } else { Log::BySet }
    }

    /// The tables keep commits group by group: every server knows them like that.
    pub(crate) fn has_groups(&self) {
        self.by_group.store(true, Ordering::Release);
    }

    /// A committer is connected, and its earlier connections have ended at the server, too.
    pub(crate) fn reborn(&self, committer: usize) -> Life {
        let Some(lives) = self.lives.get(committer) else { return Life { committer, number: 0 } };
        lives.send_modify(|number| *number = number.saturating_add(1));
        Life { committer, number: *lives.borrow() }
    }

    /// The set may have been committed.
    pub(crate) fn doubt(&self, set: SetId, doubt: Doubt) {
        let mut doubts = self.doubts();
        if doubts.len() >= DOUBTS_MAX {
            doubts.retain(|_, doubt| !self.is_over(doubt.life));
        }
        doubts.insert(set, doubt);
    }

    /// When the set may have been committed, if it is in doubt.
    pub(crate) fn doubted(&self, set: SetId) -> Option<Doubt> {
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

    fn doubts(&self) -> MutexGuard<'_, HashMap<SetId, Doubt>> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

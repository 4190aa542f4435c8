//! State shared by the committers, the readers and the store.

use crate::barrier::Barrier;
use crate::clock::{Clock, monotonic};
use crate::committer::{Ids, Memory};
use crate::error::OpenError;
use crate::history::{History, Last};
use crate::options::Options;
use crate::schema::Schema;
use crate::session::{CONNECT_WITHIN, Ground, Purpose, Session, Target, no_answer};
use crate::tables::SweepSchedule;
use counterfoil_core::types::id::SetId;
use counterfoil_store::Receipt;
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_postgres::Config;

/// The bound of remembered sets in doubt. Beyond it, sets whose committer has reconnected are forgotten.
const DOUBTS_MAX: usize = 16_384;

/// The shared part of a store.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) target: Target,
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) secret: [u8; 32],
    pub(crate) schema: Schema,
    pub(crate) schedule: SweepSchedule,
    /// The history that every server must have.
    pub(crate) history: History,
    /// The number of connected committers.
    pub(crate) connected: AtomicUsize,
    /// How often each committer has connected. At each new connection, all commits of earlier ones are decided.
    lives: Vec<watch::Sender<u64>>,
    doubts: Mutex<HashMap<SetId, Doubt>>,
    pub(crate) barrier: Barrier,
    /// Ids of sets in progress and of recently committed sets.
    pub(crate) ids: Arc<Ids>,
    /// Rows that the committers wrote recently.
    pub(crate) memory: Memory,
}

/// One connection of one committer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) committer: usize,
    pub(crate) number: u64,
}

/// A set that may have been committed: on which connection, and after which position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    pub(crate) life: Life,
    pub(crate) after: u64,
}

impl Shared {
    pub(crate) fn new(target: Target, options: Options, schema: Schema, ground: Ground) -> Shared {
        let lives = (0..options.committers.max(1)).map(|_| watch::Sender::new(0)).collect();
        Shared {
            target,
            schema,
            schedule: SweepSchedule::for_window(options.replay_window),
            options,
            clock: Clock::new(ground.server_us, ground.at),
            secret: ground.secret,
            history: History::new(ground.position),
            connected: AtomicUsize::new(0),
            lives,
            doubts: Mutex::default(),
            barrier: Barrier::default(),
            ids: Arc::default(),
            memory: Memory::new(),
        }
    }

    /// Connects to the database that was opened first: a server with another schema, another secret or an incomplete history
    /// is refused.
    pub(crate) async fn connect(&self, purpose: Purpose) -> Result<Session, OpenError> {
        self.history.is_whole()?;
        // Read before connecting, so that concurrent commits do not count as lost.
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
            self.schema.check(&session).await?;
            let begun = monotonic();
            let ground = Ground::look(&session).await?;
            if ground.secret != self.secret {
                return Err(OpenError::Other);
            }
            known.is_in(&session, ground.position).await?;
            self.clock.looked(ground.server_us, monotonic().saturating_sub(begun));
            Ok(())
        };
        tokio::time::timeout(CONNECT_WITHIN, looking).await.map_err(|_| no_answer())??;
        Ok(session)
    }

    /// Records a commit that this process learnt of.
    pub(crate) fn saw(&self, set: SetId, receipt: Receipt) {
        self.clock.saw(receipt.at);
        self.history.saw(receipt.position.0, set);
    }

    /// The last position this process knows of. Every later commit gets a higher one.
    pub(crate) fn seen(&self) -> u64 {
        self.history.last().position
    }

    /// Records that a committer has connected and that the server has ended its earlier connections.
    pub(crate) fn reborn(&self, committer: usize) -> Life {
        let Some(lives) = self.lives.get(committer) else { return Life { committer, number: 0 } };
        lives.send_modify(|number| *number = number.saturating_add(1));
        Life { committer, number: *lives.borrow() }
    }

    /// Records that the set may have been committed.
    pub(crate) fn doubt(&self, set: SetId, doubt: Doubt) {
        let mut doubts = self.doubts();
        if doubts.len() >= DOUBTS_MAX {
            doubts.retain(|_, doubt| !self.is_over(doubt.life));
        }
        doubts.insert(set, doubt);
    }

    /// The doubt about a set, if there is one.
    pub(crate) fn doubted(&self, set: SetId) -> Option<Doubt> {
        self.doubts().get(&set).copied()
    }

    /// Removes the doubt about a set.
    pub(crate) fn resolved(&self, set: SetId) {
        self.doubts().remove(&set);
    }

    /// Waits until all commits of that connection are decided.
    pub(crate) async fn after(&self, life: Life) {
        if let Some(lives) = self.lives.get(life.committer) {
            // The sender belongs to `self`, so the wait ends only with the condition.
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

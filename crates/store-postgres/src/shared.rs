//! State shared by the committers, the readers and the store.

use crate::barrier::Barrier;
use crate::clock::{Clock, monotonic};
use crate::committer::{Ids, Memory};
use crate::error::OpenError;
use crate::history::{History, Last};
use crate::options::Options;
use crate::schema::Schema;
use crate::session::{CONNECT_WITHIN, DatabaseState, Purpose, Session, Target, no_answer};
use crate::tables::SweepSchedule;
use counterfoil_core::types::id::SetId;
use counterfoil_store::CommitReceipt;
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_postgres::Config;

/// The bound of remembered sets in doubt. Beyond it, sets whose committer has reconnected are
/// forgotten.
const DOUBTS_MAX: usize = 16_384;

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
    /// How often each committer has connected. At each new connection, all commits of earlier ones
    /// are decided.
    connection_counts: Vec<watch::Sender<u64>>,
    doubts: Mutex<HashMap<SetId, Doubt>>,
    pub(crate) barrier: Barrier,
    /// Ids of sets in progress and of recently committed sets.
    pub(crate) ids: Arc<Ids>,
    /// Rows that the committers wrote recently.
    pub(crate) memory: Memory,
}

/// One connection of one committer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    pub(crate) committer: usize,
    pub(crate) number: u64,
}

/// The connection and the least position of a set in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    pub(crate) connection: ConnectionId,
    pub(crate) after: u64,
}

impl Shared {
    pub(crate) fn new(target: Target, options: Options, schema: Schema, state: DatabaseState) -> Shared {
        let connection_counts = (0..options.committers.max(1)).map(|_| watch::Sender::new(0)).collect();
        Shared {
            target,
            schema,
            schedule: SweepSchedule::for_window(options.replay_window),
            options,
            clock: Clock::new(state.server_us, state.at),
            secret: state.secret,
            history: History::new(state.position),
            connected: AtomicUsize::new(0),
            connection_counts,
            doubts: Mutex::default(),
            barrier: Barrier::default(),
            ids: Arc::default(),
            memory: Memory::new(),
        }
    }

    /// Connects to the database of `open`. A server with a different schema or secret or an
    /// incomplete history is refused.
    pub(crate) async fn connect(&self, purpose: Purpose) -> Result<Session, OpenError> {
        self.history.is_whole()?;
        // Read before connecting, so that concurrent commits do not count as lost.
        let known = self.history.last();
        let mut refused = Vec::new();
        for (index, host) in self.target.hosts() {
            match self.connect_to(host, purpose, known).await {
                Ok(session) => {
                    self.target.used(index);
                    return Ok(session);
                }
                Err(error) => refused.push(error),
            }
        }
        Err(self.history.explain(refused))
    }

    async fn connect_to(&self, host: &Config, purpose: Purpose, known: Last) -> Result<Session, OpenError> {
        let session = Session::at(host, &self.target, purpose).await?;
        let looking = async {
            self.schema.check(&session).await?;
            let begun = monotonic();
            let state = DatabaseState::read(&session).await?;
            if state.secret != self.secret {
                return Err(OpenError::Other);
            }
            known.is_in(&session, state.position).await?;
            self.clock.observe_server(state.server_us, monotonic().saturating_sub(begun));
            Ok(())
        };
        tokio::time::timeout(CONNECT_WITHIN, looking).await.map_err(|_| no_answer())??;
        Ok(session)
    }

    /// Records a known commit.
    pub(crate) fn observe_commit(&self, set: SetId, receipt: CommitReceipt) {
        self.clock.observe_commit(receipt.at);
        self.history.observe_commit(receipt.position.0, set);
    }

    /// The last position this process knows of. Every later commit gets a higher one.
    pub(crate) fn last_known_position(&self) -> u64 {
        self.history.last().position
    }

    /// Records a new connection of a committer. The server has ended all earlier ones.
    pub(crate) fn connected_again(&self, committer: usize) -> ConnectionId {
        let Some(connection_counts) = self.connection_counts.get(committer) else {
            return ConnectionId { committer, number: 0 };
        };
        connection_counts.send_modify(|number| *number = number.saturating_add(1));
        ConnectionId { committer, number: *connection_counts.borrow() }
    }

    /// Records that the set may have been committed.
    pub(crate) fn doubt(&self, set: SetId, doubt: Doubt) {
        let mut doubts = self.doubts();
        if doubts.len() >= DOUBTS_MAX {
            doubts.retain(|_, doubt| !self.is_decided(doubt.connection));
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
    pub(crate) async fn until_decided(&self, connection: ConnectionId) {
        if let Some(connection_counts) = self.connection_counts.get(connection.committer) {
            // The sender belongs to `self`, so the wait ends only with the condition.
            let _ = connection_counts.subscribe().wait_for(|number| *number > connection.number).await;
        }
    }

    fn is_decided(&self, connection: ConnectionId) -> bool {
        self.connection_counts
            .get(connection.committer)
            .is_none_or(|connection_counts| *connection_counts.borrow() > connection.number)
    }

    fn doubts(&self) -> MutexGuard<'_, HashMap<SetId, Doubt>> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Positions of the pipeline: durable in the log, flushed to SQLite, checkpointed.
//!
//! While all is well, SQLite is at most a quarter of a second behind the answers given. Reads of
//! lists and sums wait for a flush, so an answer is never older than what its reader was told.

use counterfoil_store::ReadError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

/// Positions that the writer, the flusher, the checkpointer and readers share.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The last position that is durable in the write-ahead log.
    durable: AtomicU64,
    flushed: watch::Sender<Flushed>,
    is_flush_requested: AtomicBool,
    /// The last position that a checkpoint has made durable in the database.
    checkpointed: Arc<AtomicU64>,
}

#[derive(Clone, Debug, Default)]
struct Flushed {
    position: u64,
    /// Why the last flush failed, if it did.
    trouble: Option<String>,
    /// The flusher has ended: no flush will follow.
    has_ended: bool,
}

impl Progress {
    /// All commits up to `position` are flushed and checkpointed.
    pub(crate) fn new(position: u64) -> Progress {
        Progress {
            durable: AtomicU64::new(position),
            flushed: watch::Sender::new(Flushed { position, ..Flushed::default() }),
            is_flush_requested: AtomicBool::new(false),
            checkpointed: Arc::new(AtomicU64::new(position)),
        }
    }

    pub(crate) fn set_durable(&self, position: u64) {
        self.durable.fetch_max(position, Ordering::Release);
    }

    /// A flush up to `position` has succeeded.
    pub(crate) fn set_flushed(&self, position: u64) {
        self.flushed.send_modify(|flushed| {
            flushed.position = position;
            if !flushed.has_ended {
                flushed.trouble = None;
            }
        });
    }

    /// A flush has failed.
    pub(crate) fn set_trouble(&self, trouble: String) {
        self.flushed.send_modify(|flushed| flushed.trouble = Some(trouble));
    }

    /// The flusher has ended: the next opening replays the commits that are not flushed.
    pub(crate) fn end(&self) {
        self.flushed.send_modify(|flushed| {
            flushed
                .trouble
                .get_or_insert_with(|| "the store's writer has ended; restart to recover".to_owned());
            flushed.has_ended = true;
        });
    }

    /// Why the last flush failed, if it did.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.flushed.borrow().trouble.clone()
    }

    /// The last flushed position.
    pub(crate) fn flushed(&self) -> u64 {
        self.flushed.borrow().position
    }

    pub(crate) fn has_unflushed(&self) -> bool {
        self.flushed() < self.durable.load(Ordering::Acquire)
    }

    /// A checkpoint has made all commits up to `position` durable in the database.
    pub(crate) fn set_checkpointed(&self, position: u64) {
        self.checkpointed.fetch_max(position, Ordering::AcqRel);
    }

    pub(crate) fn checkpointed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.checkpointed)
    }

    pub(crate) fn is_flush_requested(&self) -> bool {
        self.is_flush_requested.load(Ordering::Acquire)
    }

    /// Whether a flush is requested; clears the request.
    pub(crate) fn take_flush_request(&self) -> bool {
        self.is_flush_requested.swap(false, Ordering::AcqRel)
    }

    /// Waits until every commit up to `position` that is durable by now is flushed. `wake_flusher`
    /// is called once per request.
    pub(crate) async fn wait_until_flushed(
        &self,
        position: u64,
        wake_flusher: impl Fn(),
    ) -> Result<(), ReadError> {
        let position = position.min(self.durable.load(Ordering::Acquire));
        if self.flushed() >= position {
            return Ok(());
        }
        let mut news = self.flushed.subscribe();
        let mut has_asked = false;
        loop {
            let flushed = news.borrow_and_update().clone();
            if flushed.position >= position {
                return Ok(());
            }
            // Trouble from before this reader asked may be over.
            if let Some(trouble) = flushed.trouble.filter(|_| has_asked || flushed.has_ended) {
                return Err(ReadError(trouble));
            }
            if !self.is_flush_requested.swap(true, Ordering::AcqRel) {
                wake_flusher();
            }
            has_asked = true;
            news.changed().await.map_err(|_| ReadError("the store is closed".to_owned()))?;
        }
    }
}

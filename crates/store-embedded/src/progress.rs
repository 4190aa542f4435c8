//! How far the commits are: durable in the redo log, and visible in the database.
//!
//! The database is behind the answers given, by a quarter of a second at most while it is well. Who reads more than single
//! rows waits until it shows them, so that an answer is never older than what its reader was told.

use counterfoil_store::ReadError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

/// What writer and readers tell each other.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The last position that is durable.
    durable: AtomicU64,
    shown: watch::Sender<Shown>,
    wanted: AtomicBool,
    /// The last position of which the database itself is sure.
    safe: Arc<AtomicU64>,
}

/// What the database shows.
#[derive(Clone, Debug, Default)]
struct Shown {
    position: u64,
    /// Why it shows no more, if it cannot.
    trouble: Option<String>,
    /// Nobody tries any more.
    ended: bool,
}

impl Progress {
    /// The database shows everything up to `position`, safely.
    pub(crate) fn new(position: u64) -> Progress {
        Progress {
            durable: AtomicU64::new(position),
            shown: watch::Sender::new(Shown { position, ..Shown::default() }),
            wanted: AtomicBool::new(false),
            safe: Arc::new(AtomicU64::new(position)),
        }
    }

    /// Everything up to there is durable and will be answered.
    pub(crate) fn committed(&self, position: u64) {
        self.durable.fetch_max(position, Ordering::Release);
    }

    /// The database shows everything up to there.
    pub(crate) fn show(&self, position: u64) {
        self.shown.send_modify(|shown| {
            shown.position = position;
            if !shown.ended {
                shown.trouble = None;
            }
        });
    }

    /// The database cannot show what is durable.
    pub(crate) fn stall(&self, trouble: String) {
        self.shown.send_modify(|shown| shown.trouble = Some(trouble));
    }

    /// The writer has ended: what is not shown now is shown by the next opening.
    pub(crate) fn end(&self) {
        self.shown.send_modify(|shown| {
            shown
                .trouble
                .get_or_insert_with(|| "the store's writer has ended; restart to recover".to_owned());
            shown.ended = true;
        });
    }

    /// Why the database does not show what is durable, if it cannot.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.shown.borrow().trouble.clone()
    }

    /// The last position the database shows.
    pub(crate) fn visible(&self) -> u64 {
        self.shown.borrow().position
    }

    /// The database is sure of everything up to there.
    pub(crate) fn is_safe_up_to(&self, position: u64) {
        self.safe.fetch_max(position, Ordering::AcqRel);
    }

    /// Where that is kept.
    pub(crate) fn safe(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.safe)
    }

    /// Whether somebody wishes the database to show more.
    pub(crate) fn is_wished(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// The same; from here on nobody does.
    pub(crate) fn take_wish(&self) -> bool {
        self.wanted.swap(false, Ordering::AcqRel)
    }

    /// Whether something is durable that the database does not show.
    pub(crate) fn hides_any(&self) -> bool {
        self.visible() < self.durable.load(Ordering::Acquire)
    }

    /// Returns when the database shows everything up to `position` that is durable by now.
    pub(crate) async fn sees(&self, position: u64, nudge: impl Fn()) -> Result<(), ReadError> {
        let position = position.min(self.durable.load(Ordering::Acquire));
        if self.visible() >= position {
            return Ok(());
        }
        let mut news = self.shown.subscribe();
        let mut has_asked = false;
        loop {
            let shown = news.borrow_and_update().clone();
            if shown.position >= position {
                return Ok(());
            }
            // A trouble from before this reader asked may be over.
            if let Some(trouble) = shown.trouble.filter(|_| has_asked || shown.ended) {
                return Err(ReadError(trouble));
            }
            if !self.wanted.swap(true, Ordering::AcqRel) {
                nudge();
            }
            has_asked = true;
            news.changed().await.map_err(|_| ReadError("the store is closed".to_owned()))?;
        }
    }
}

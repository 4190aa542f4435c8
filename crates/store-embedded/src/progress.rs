//! How far the commits are: durable in the redo log, and visible in the database.
//!
//! Readers see the database, which is behind the answers given by some milliseconds at most. Who reads what a commit has
//! changed since waits for it, so that an answer is never older than what its reader was told: for single rows it is
//! known which commit changed them last, anything else waits for all.

use counterfoil_store::{ReadError, RowKey};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

/// Places for the last changes of rows. Rows that share a place wait for each other's changes, which costs some
/// milliseconds and nothing else.
const PLACES: usize = 1 << 14;

/// What writer and readers tell each other.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The last position that is durable.
    durable: AtomicU64,
    /// By hash of their keys, the last durable position that changed such a row.
    changed: Box<[AtomicU64]>,
    hasher: RandomState,
    shown: watch::Sender<Shown>,
    wanted: AtomicBool,
    /// Another program has written to the database.
    meddled: AtomicBool,
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
            changed: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
            shown: watch::Sender::new(Shown { position, ..Shown::default() }),
            wanted: AtomicBool::new(false),
            meddled: AtomicBool::new(false),
            safe: Arc::new(AtomicU64::new(position)),
        }
    }

    /// A set is durable and will be answered.
    pub(crate) fn committed(&self, position: u64, keys: impl Iterator<Item = RowKey>) {
        for key in keys {
            if let Some(place) = self.place(&key) {
                place.fetch_max(position, Ordering::Release);
            }
        }
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

    /// Another program has written to the database.
    pub(crate) fn meddle(&self) {
        self.meddled.store(true, Ordering::Release);
    }

    /// Whether another has since this was asked last.
    pub(crate) fn take_meddled(&self) -> bool {
        self.meddled.load(Ordering::Acquire) && self.meddled.swap(false, Ordering::AcqRel)
    }

    /// Whether the row may have a change that the database does not show.
    pub(crate) fn hides(&self, key: &RowKey, visible: u64) -> bool {
        self.place(key).is_none_or(|place| place.load(Ordering::Acquire) > visible)
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

    /// The database should show more, although nobody waits for it.
    pub(crate) fn wish(&self) {
        self.wanted.store(true, Ordering::Release);
    }

    /// Whether somebody wishes the database to show more.
    pub(crate) fn is_wished(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// The same; from here on nobody does.
    pub(crate) fn take_wish(&self) -> bool {
        self.wanted.swap(false, Ordering::AcqRel)
    }

    /// Returns when the database shows every change of these rows that is durable by now.
    pub(crate) async fn sees(&self, keys: &[RowKey], nudge: impl Fn()) -> Result<(), ReadError> {
        let changed = keys.iter().filter_map(|key| self.place(key));
        let last = changed.map(|place| place.load(Ordering::Acquire)).max().unwrap_or(0);
        self.reaches(last, nudge).await
    }

    /// Returns when the database shows everything that is durable by now.
    pub(crate) async fn sees_all(&self, nudge: impl Fn()) -> Result<(), ReadError> {
        self.reaches(self.durable.load(Ordering::Acquire), nudge).await
    }

    async fn reaches(&self, position: u64, nudge: impl Fn()) -> Result<(), ReadError> {
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

    fn place(&self, key: &RowKey) -> Option<&AtomicU64> {
        let hash = usize::try_from(self.hasher.hash_one(key)).unwrap_or(0);
        self.changed.get(hash & (PLACES - 1))
    }
}

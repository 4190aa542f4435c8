//! What the database shows: a thread of its own executes what is durable, many groups together, while the writer goes on.
//!
//! Promises: groups are executed in order, each once; what cannot be executed now is kept and tried again, and the writer
//! hears of it; the rows of what is not executed yet are found here as they are.

mod applier;
mod hidden;
mod latest;

pub(crate) use applier::{Applier, version};
pub(crate) use hidden::Group;
pub(crate) use latest::Now;

use crate::background::stand_back;
use crate::clock::monotonic;
use crate::error::OpenError;
use crate::progress::Progress;
use counterfoil_store::RowKey;
use hidden::Amount;
use latest::Latest;
use rusqlite::Connection;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Bytes of scripts that may wait while a transaction is under way; then the writer waits too.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// How long to wait when the database could not take it.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// What is told after the thread has ended.
pub(crate) const ENDED: &str = "the store's display has ended; restart to recover";

/// Between the writer and the thread that executes.
#[derive(Debug)]
pub(crate) struct Display {
    inbox: Mutex<Inbox>,
    arrived: Condvar,
    taken: Condvar,
    applier: Mutex<Applier>,
    progress: Arc<Progress>,
}

/// What the writer hands over.
#[derive(Debug, Default)]
struct Inbox {
    /// Groups that nobody has looked at yet.
    groups: Vec<Group>,
    amount: Amount,
    /// Rows of these groups, and of those that are looked at.
    latest: Latest,
    /// No more will come.
    closed: bool,
    /// Nobody will look.
    ended: bool,
}

/// Tells everyone who waits when the thread has ended, however it did.
struct Ending(Arc<Display>);

impl Drop for Ending {
    fn drop(&mut self) {
        held(&self.0.inbox).ended = true;
        self.0.taken.notify_all();
        self.0.progress.end();
    }
}

impl Display {
    pub(crate) fn new(applier: Applier, progress: Arc<Progress>) -> Display {
        Display {
            inbox: Mutex::default(),
            arrived: Condvar::new(),
            taken: Condvar::new(),
            applier: Mutex::new(applier),
            progress,
        }
    }

    /// Starts the thread. It ends after [`Display::close`].
    pub(crate) fn start(self: &Arc<Display>) -> Result<JoinHandle<()>, OpenError> {
        let display = Arc::clone(self);
        Ok(Builder::new().name("store-display".to_owned()).spawn(move || {
            stand_back();
            let ending = Ending(display);
            ending.0.serve();
        })?)
    }

    /// Takes a group that is durable. Waits if too much waits; tells whether anybody will look at it.
    pub(crate) fn take(&self, group: Group) -> bool {
        let inbox = held(&self.inbox);
        let is_full = |inbox: &mut Inbox| inbox.amount.bytes > WAITING_BYTES_MAX && !inbox.ended;
        let mut inbox = self.taken.wait_while(inbox, is_full).unwrap_or_else(PoisonError::into_inner);
        inbox.amount.add(&group);
        // Whoever sees the rows also waits for them when it asks for all, and the group is there when it does.
        inbox.latest.lay(&group.writes, group.last);
        self.progress.committed(group.last);
        inbox.groups.push(group);
        // Who sleeps over a few groups need not be woken for each: it wakes by itself in time.
        if inbox.groups.len() == 1 || inbox.amount.is_enough() {
            self.arrived.notify_one();
        }
        !inbox.ended
    }

    /// How those of the rows are that the database may not show, all at one moment. `meanwhile` runs at that moment.
    pub(crate) fn find<T>(&self, keys: &[RowKey], meanwhile: impl FnOnce() -> T) -> (Vec<Option<Now>>, T) {
        let inbox = held(&self.inbox);
        (keys.iter().map(|key| inbox.latest.find(key)).collect(), meanwhile())
    }

    /// Wakes the thread if it sleeps over something that somebody wants to see.
    pub(crate) fn nudge(&self) {
        let _wakeful = held(&self.inbox);
        self.arrived.notify_one();
    }

    /// No more will come.
    pub(crate) fn close(&self) {
        held(&self.inbox).closed = true;
        self.arrived.notify_one();
    }

    /// The one who executes, when nothing is under way.
    pub(crate) fn applier(&self) -> MutexGuard<'_, Applier> {
        held(&self.applier)
    }

    /// Shows everything that was taken, now and on this thread; why it cannot, if so.
    pub(crate) fn show_all(&self) -> Result<(), String> {
        let mut applier = self.applier();
        if held(&self.inbox).ended {
            return Err(ENDED.to_owned());
        }
        self.show(&mut applier);
        applier.trouble().map_or(Ok(()), Err)
    }

    /// The connection, once both threads have ended.
    pub(crate) fn into_connection(self) -> Connection {
        self.applier.into_inner().unwrap_or_else(PoisonError::into_inner).into_connection()
    }

    fn serve(&self) {
        let mut patience = None;
        loop {
            let closed = self.wait(patience);
            let mut applier = self.applier();
            // Before the groups are taken: who wishes later waits for one that may come later.
            let wished = self.progress.take_wish();
            let groups = self.empty(&mut held(&self.inbox));
            let now = monotonic();
            applier.hide(groups, now);
            if wished || closed || applier.is_due(now) {
                self.show(&mut applier);
            }
            if closed {
                applier.release_write_lock();
                return;
            }
            patience =
                if applier.trouble().is_some() { Some(TRY_AGAIN) } else { applier.patience(monotonic()) };
        }
    }

    /// Shows everything that was taken; it is found in the database from here on. Nobody else takes groups while the applier is
    /// held.
    fn show(&self, applier: &mut Applier) {
        let mut inbox = held(&self.inbox);
        let groups = self.empty(&mut inbox);
        inbox.latest.turn();
        drop(inbox);
        applier.hide(groups, monotonic());
        let shown = applier.show();
        let forgotten = held(&self.inbox).latest.forget(self.progress.visible());
        for mut rows in forgotten {
            rows.clear();
            held(&self.inbox).latest.reuse(rows);
        }
        if let Some(shown) = shown {
            applier.reuse(shown);
        }
    }

    /// Until there is something to do; tells whether nothing more will come. `patience`: how long what is hidden may stay so, unless
    /// enough comes to be shown with it.
    fn wait(&self, patience: Option<Duration>) -> bool {
        let inbox = held(&self.inbox);
        let is_idle = |inbox: &mut Inbox| {
            let has_come = match patience {
                None => !inbox.groups.is_empty(),
                Some(_) => inbox.amount.is_enough(),
            };
            !has_come && !inbox.closed && !self.progress.is_wished()
        };
        let inbox = match patience {
            None => self.arrived.wait_while(inbox, is_idle).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                let woken = self.arrived.wait_timeout_while(inbox, patience, is_idle);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        inbox.closed
    }

    fn empty(&self, inbox: &mut Inbox) -> Vec<Group> {
        inbox.amount = Amount::default();
        self.taken.notify_one();
        std::mem::take(&mut inbox.groups)
    }
}

/// A thread that panicked left what it held as it was: durable groups, or an open transaction that nobody commits.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

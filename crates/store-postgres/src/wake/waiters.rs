//! The waiters of this process by key, and the state of the locks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// The bound of keys. All processes share the server's lock table. Waiters beyond the bound poll.
const KEYS_MAX: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Waiters {
    queues: Mutex<Queues>,
    /// Signalled when a key is added.
    pub(super) key_added: Notify,
}

#[derive(Debug, Default)]
struct Queues {
    by_key: HashMap<i64, Queue>,
    /// Whether the connection is lost.
    down: bool,
}

/// The waiters of one key. A waiter that leaves drops its receiver, so receivers count the waiters.
#[derive(Debug)]
struct Queue {
    signal: watch::Sender<()>,
    locked: bool,
    /// The key had no waiters at the last check. Keys are released at the second check, because
    /// waiters that were woken in vain return at once.
    idle: bool,
}

impl Waiters {
    /// Adds a waiter for the key, or returns `None` if the connection is lost or the bound is
    /// reached.
    pub(super) fn add(&self, key: i64) -> Option<watch::Receiver<()>> {
        let mut queues = self.queues();
        if queues.down {
            return None;
        }
        let full = queues.by_key.len() >= KEYS_MAX;
        match queues.by_key.entry(key) {
            Entry::Occupied(queue) => Some(queue.get().signal.subscribe()),
            Entry::Vacant(_) if full => None,
            Entry::Vacant(queue) => {
                let (signal, waiter) = watch::channel(());
                queue.insert(Queue { signal, locked: false, idle: false });
                self.key_added.notify_one();
                Some(waiter)
            }
        }
    }

    /// Wakes all waiters of the key.
    pub(super) fn wake(&self, key: i64) {
        if let Some(queue) = self.queues().by_key.get(&key) {
            queue.signal.send_replace(());
        }
    }

    /// The keys that are not locked yet.
    pub(super) fn unlocked_keys(&self) -> Vec<i64> {
        let queues = self.queues();
        queues.by_key.iter().filter(|(_, queue)| !queue.locked).map(|(key, _)| *key).collect()
    }

    /// Marks keys as locked: notifications arrive from now on. Earlier ones may have been missed,
    /// so all waiters are woken once.
    pub(super) fn mark_locked(&self, keys: &[i64]) {
        let mut queues = self.queues();
        for key in keys {
            if let Some(queue) = queues.by_key.get_mut(key) {
                queue.locked = true;
                queue.signal.send_replace(());
            }
        }
    }

    /// Removes keys without waiters and returns those that were locked.
    pub(super) fn remove_idle(&self) -> Vec<i64> {
        let mut left = Vec::new();
        self.queues().by_key.retain(|key, queue| {
            let was_idle = std::mem::replace(&mut queue.idle, queue.signal.receiver_count() == 0);
            let stays = !(was_idle && queue.idle);
            if !stays && queue.locked {
                left.push(*key);
            }
            stays
        });
        left
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues().by_key.is_empty()
    }

    /// The connection and its locks are lost: wakes all waiters and accepts none until `open`.
    pub(super) fn disconnect(&self) {
        let mut queues = self.queues();
        queues.down = true;
        queues.by_key.clear();
    }

    /// Accepts waiters again.
    pub(super) fn connect(&self) {
        self.queues().down = false;
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bounded_but_waiters_per_key_are_not() {
        let waiters = Waiters::default();
        let all: Vec<_> = (0..256).map(|key| waiters.add(key).unwrap()).collect();
        assert!(waiters.add(256).is_none());
        assert!(waiters.add(255).is_some());
        drop(all);
        assert!(
            waiters.remove_idle().is_empty() && waiters.remove_idle().is_empty(),
            "no key was locked yet"
        );
        assert!(waiters.add(256).is_some(), "waiters that were left are given back");
    }

    #[test]
    fn a_lost_connection_wakes_all_waiters_and_accepts_none() {
        let waiters = Waiters::default();
        let waiting = waiters.add(1).unwrap();
        waiters.disconnect();
        assert!(waiting.has_changed().is_err(), "there is nothing to wait for any more");
        assert!(waiters.add(1).is_none());
        waiters.connect();
        assert!(waiters.add(1).is_some());
        assert_eq!(waiters.unlocked_keys(), [1], "the new connection has no lock yet");
    }

    #[test]
    fn waiters_before_the_lock_are_woken_once_and_later_ones_are_not() {
        let waiters = Waiters::default();
        let early = waiters.add(1).unwrap();
        waiters.mark_locked(&[1, 2]);
        let late = waiters.add(1).unwrap();
        assert!(early.has_changed().unwrap() && !late.has_changed().unwrap());
        assert!(waiters.unlocked_keys().is_empty());
        waiters.wake(1);
        assert!(late.has_changed().unwrap());
    }

    #[test]
    fn a_lock_is_kept_for_waiters_that_return_at_once() {
        let waiters = Waiters::default();
        drop(waiters.add(1).unwrap());
        waiters.mark_locked(&[1]);
        assert!(waiters.remove_idle().is_empty());
        let back = waiters.add(1).unwrap();
        assert!(waiters.remove_idle().is_empty() && waiters.remove_idle().is_empty());
        drop(back);
        assert!(waiters.remove_idle().is_empty());
        assert_eq!(waiters.remove_idle(), [1]);
        assert!(waiters.is_empty());
    }
}

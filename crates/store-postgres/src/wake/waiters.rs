//! Who waits in this process, by key, and which keys are locked for them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// Keys waited for at once. All processes share the server's lock table; who finds no place looks by itself.
const KEYS_MAX: usize = 256;

/// All waiters.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    queues: Mutex<Queues>,
    /// Rung when a key is wanted.
    pub(super) wanted: Notify,
}

#[derive(Debug, Default)]
struct Queues {
    by_key: HashMap<i64, Queue>,
    /// Whether the connection is gone and not back yet.
    down: bool,
}

/// Those who wait under one key. Everybody who leaves drops a receiver: nobody has to be counted.
#[derive(Debug)]
struct Queue {
    word: watch::Sender<()>,
    locked: bool,
    /// Nobody waited when this was last looked at. Who was woken for nothing is back at once, so a key is kept a while.
    idle: bool,
}

impl Waiters {
    /// A place under the key; nothing if the connection is gone, or there is none left.
    pub(super) fn take(&self, key: i64) -> Option<watch::Receiver<()>> {
        let mut queues = self.queues();
        if queues.down {
            return None;
        }
        let full = queues.by_key.len() >= KEYS_MAX;
        match queues.by_key.entry(key) {
            Entry::Occupied(queue) => Some(queue.get().word.subscribe()),
            Entry::Vacant(_) if full => None,
            Entry::Vacant(queue) => {
                let (word, place) = watch::channel(());
                queue.insert(Queue { word, locked: false, idle: false });
                self.wanted.notify_one();
                Some(place)
            }
        }
    }

    /// Wakes everybody under the key.
    pub(super) fn tell(&self, key: i64) {
        if let Some(queue) = self.queues().by_key.get(&key) {
            queue.word.send_replace(());
        }
    }

    /// Keys that are waited for and not locked yet.
    pub(super) fn unlocked(&self) -> Vec<i64> {
        let queues = self.queues();
        queues.by_key.iter().filter(|(_, queue)| !queue.locked).map(|(key, _)| *key).collect()
    }

    /// From now on, words come for these keys. What came before may have been missed, so everybody there looks once.
    pub(super) fn locked(&self, keys: &[i64]) {
        let mut queues = self.queues();
        for key in keys {
            if let Some(queue) = queues.by_key.get_mut(key) {
                queue.locked = true;
                queue.word.send_replace(());
            }
        }
    }

    /// Gives up the keys under which nobody has waited for a while; those that were locked.
    pub(super) fn leave(&self) -> Vec<i64> {
        let mut left = Vec::new();
        self.queues().by_key.retain(|key, queue| {
            let was_idle = std::mem::replace(&mut queue.idle, queue.word.receiver_count() == 0);
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

    /// The connection is gone, and its locks with it: everybody is woken, and nobody queues until it is back.
    pub(super) fn close(&self) {
        let mut queues = self.queues();
        queues.down = true;
        queues.by_key.clear();
    }

    /// The connection listens.
    pub(super) fn open(&self) {
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
    fn places_are_bounded_but_a_key_that_has_one_takes_everybody() {
        let waiters = Waiters::default();
        let all: Vec<_> = (0..256).map(|key| waiters.take(key).unwrap()).collect();
        assert!(waiters.take(256).is_none());
        assert!(waiters.take(255).is_some());
        drop(all);
        assert!(waiters.leave().is_empty() && waiters.leave().is_empty(), "no key was locked yet");
        assert!(waiters.take(256).is_some(), "waiters that were left are given back");
    }

    #[test]
    fn a_lost_connection_wakes_everybody_and_takes_nobody() {
        let waiters = Waiters::default();
        let waiting = waiters.take(1).unwrap();
        waiters.close();
        assert!(waiting.has_changed().is_err(), "there is nothing to wait for any more");
        assert!(waiters.take(1).is_none());
        waiters.open();
        assert!(waiters.take(1).is_some());
        assert_eq!(waiters.unlocked(), [1], "the new connection has no lock yet");
    }

    #[test]
    fn who_waited_before_the_lock_looks_once_and_who_comes_later_does_not() {
        let waiters = Waiters::default();
        let early = waiters.take(1).unwrap();
        waiters.locked(&[1, 2]);
        let late = waiters.take(1).unwrap();
        assert!(early.has_changed().unwrap() && !late.has_changed().unwrap());
        assert!(waiters.unlocked().is_empty());
        waiters.tell(1);
        assert!(late.has_changed().unwrap());
    }

    #[test]
    fn a_lock_is_kept_for_who_is_back_at_once() {
        let waiters = Waiters::default();
        drop(waiters.take(1).unwrap());
        waiters.locked(&[1]);
        assert!(waiters.leave().is_empty());
        let back = waiters.take(1).unwrap();
        assert!(waiters.leave().is_empty() && waiters.leave().is_empty());
        drop(back);
        assert!(waiters.leave().is_empty());
        assert_eq!(waiters.leave(), [1]);
        assert!(waiters.is_empty());
    }
}

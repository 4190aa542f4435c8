//! The provider's key store: running keys, and the answers of finished ones.
//!
//! A key is remembered from its answer until the dedup window ends; a running key is never
//! forgotten. Answers are references into the provider's state, not bytes: they render to the same
//! bytes again.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::answer::Answer;
use crate::spread::Spread;

/// The result of claiming a key.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The key was free and is now running; settle or release it.
    Won,
    /// The same request is running.
    InUse,
    /// The key belongs to another request.
    Mismatch,
    /// The same request was answered before.
    Answered(Answer),
}

/// All remembered keys.
pub(crate) struct Keys {
    entries: Spread<Entry>,
    /// Answered keys, oldest answer first; exactly one entry per answered key.
    answered: VecDeque<(Arc<str>, u64)>,
    answers_max: usize,
}

struct Entry {
    fingerprint: u64,
    /// `None` while the request runs.
    answer: Option<Answer>,
}

impl Keys {
    pub(crate) fn new(answers_max: usize) -> Self {
        Keys { entries: Spread::new(), answered: VecDeque::new(), answers_max }
    }

    /// Claims the key for a request, or reports the state of the request that holds it.
    pub(crate) fn claim(&mut self, key: &Arc<str>, fingerprint: u64, now_ms: u64, window_ms: u64) -> Claim {
        self.forget(now_ms, window_ms);
        let Some(entry) = self.entries.get(key) else {
            self.entries.insert(Arc::clone(key), Entry { fingerprint, answer: None });
            return Claim::Won;
        };
        match &entry.answer {
            Some(_) | None if entry.fingerprint != fingerprint => Claim::Mismatch,
            Some(answer) => Claim::Answered(answer.clone()),
            None => Claim::InUse,
        }
    }

    /// Stores the answer of a claimed key.
    pub(crate) fn settle(&mut self, key: &Arc<str>, answer: Answer, now_ms: u64) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.answer.replace(answer).is_none() {
            self.answered.push_back((Arc::clone(key), now_ms));
        }
        if self.answered.len() > self.answers_max {
            self.forget_oldest();
        }
    }

    /// Frees a claimed key: nothing was executed under it.
    pub(crate) fn release(&mut self, key: &str) {
        if self.entries.get(key).is_some_and(|entry| entry.answer.is_none()) {
            self.entries.remove(key);
        }
    }

    fn forget(&mut self, now_ms: u64, window_ms: u64) {
        while self.answered.front().is_some_and(|(_, at_ms)| now_ms.saturating_sub(*at_ms) >= window_ms) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((key, _)) = self.answered.pop_front() {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_MS: u64 = 100;

    #[test]
    fn a_key_runs_is_answered_and_is_forgotten() {
        let (mut keys, key) = (Keys::new(10), Arc::from("k"));
        assert!(matches!(keys.claim(&key, 1, 0, WINDOW_MS), Claim::Won));
        assert!(matches!(keys.claim(&key, 1, 5000, WINDOW_MS), Claim::InUse), "running keys do not age");
        assert!(matches!(keys.claim(&key, 2, 0, WINDOW_MS), Claim::Mismatch));
        keys.settle(&key, Answer::Failed, 5000);
        assert!(matches!(keys.claim(&key, 1, 5099, WINDOW_MS), Claim::Answered(Answer::Failed)));
        assert!(matches!(keys.claim(&key, 2, 5099, WINDOW_MS), Claim::Mismatch));
        assert!(matches!(keys.claim(&key, 2, 5100, WINDOW_MS), Claim::Won));
    }

    #[test]
    fn a_released_key_is_free_and_an_answered_one_stays() {
        let (mut keys, key) = (Keys::new(10), Arc::from("k"));
        assert!(matches!(keys.claim(&key, 1, 0, WINDOW_MS), Claim::Won));
        keys.release(&key);
        assert!(matches!(keys.claim(&key, 2, 0, WINDOW_MS), Claim::Won));
        keys.settle(&key, Answer::Failed, 0);
        keys.release(&key);
        assert!(matches!(keys.claim(&key, 2, 0, WINDOW_MS), Claim::Answered(_)));
    }

    #[test]
    fn the_oldest_answer_goes_first_at_the_bound() {
        let mut keys = Keys::new(2);
        let names: Vec<Arc<str>> = ["a", "b", "c"].into_iter().map(Arc::from).collect();
        for (at_ms, key) in (0..).zip(&names) {
            assert!(matches!(keys.claim(key, 1, at_ms, WINDOW_MS), Claim::Won));
            keys.settle(key, Answer::Failed, at_ms);
        }
        assert!(matches!(keys.claim(&names[2], 1, 3, WINDOW_MS), Claim::Answered(_)));
        assert!(matches!(keys.claim(&names[1], 1, 3, WINDOW_MS), Claim::Answered(_)));
        assert!(matches!(keys.claim(&names[0], 1, 3, WINDOW_MS), Claim::Won));
    }
}

//! The windows of a key: first its answer is replayed, then a tombstone remains, then the key is
//! free (or never).

use super::claim::ClaimId;
use crate::types::time::{Span, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPolicy {
    /// The time for which an answer is replayed.
    pub replay: Span,
    /// The time after the replay window for which a retry is told that the key has expired.
    pub tombstone: Span,
    pub reuse: Reuse,
}

/// Whether a key may ever stand for another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The key is free after the tombstone.
    AfterTombstone,
    /// The key's digest is kept forever.
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Windows {
    /// The end of replays, exclusive.
    pub replay_until: Time,
    /// The end of the tombstone, exclusive.
    pub tombstone_until: Time,
}

/// The jitter is at most this part of the replay window. The claim's digest selects it, so keys
/// settled together do not expire together. Jitter only lengthens the window.
const JITTER_PART: u64 = 64;
/// The number of different jitters. A store that indexes keys by expiry appends to as many places
/// at once, so there are few.
const JITTER_STEPS: u8 = 16;

impl WindowPolicy {
    /// The windows of a claim settled at `now`.
    pub fn windows(&self, claim: ClaimId, now: Time) -> Windows {
        let step = claim.digest().as_bytes().first().map_or(0, |byte| byte % JITTER_STEPS);
        let jitter = self.replay.part(step.into(), JITTER_PART.saturating_mul(JITTER_STEPS.into()));
        let replay_until = now.plus(self.replay).plus(jitter);
        let tombstone_until = match self.reuse {
            Reuse::AfterTombstone => replay_until.plus(self.tombstone),
            Reuse::Never => Time::MAX,
        };
        Windows { replay_until, tombstone_until }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::digest::Digest;

    #[test]
    fn jitter_only_lengthens_and_stays_small() {
        let policy = WindowPolicy {
            replay: Span::from_ms(86_400_000),
            tombstone: Span::from_ms(10),
            reuse: Reuse::AfterTombstone,
        };
        for first in [0, 1, 15, 16, 255] {
            let mut bytes = [0; 32];
            bytes[0] = first;
            let windows = policy.windows(ClaimId::from_digest(Digest::from_bytes(bytes)), Time::EPOCH);
            assert!((86_400_000..86_400_000 + 1_350_000).contains(&windows.replay_until.ms()), "{windows:?}");
            assert_eq!(windows.tombstone_until.since(windows.replay_until).ms(), 10);
        }
    }

    #[test]
    fn keys_settled_together_expire_at_sixteen_times() {
        let day = Span::from_ms(86_400_000);
        let policy = WindowPolicy { replay: day, tombstone: day, reuse: Reuse::Never };
        let until = |first| {
            let claim = ClaimId::from_digest(Digest::from_bytes([first; 32]));
            policy.windows(claim, Time::EPOCH).replay_until
        };
        let times: std::collections::BTreeSet<Time> = (0..=255).map(until).collect();
        assert_eq!(times.len(), 16);
    }

    #[test]
    fn a_key_without_reuse_is_kept_forever() {
        let policy =
            WindowPolicy { replay: Span::from_ms(1), tombstone: Span::from_ms(1), reuse: Reuse::Never };
        let windows = policy.windows(ClaimId::from_digest(Digest::from_bytes([9; 32])), Time::EPOCH);
        assert_eq!(windows.tombstone_until, Time::MAX);
    }
}

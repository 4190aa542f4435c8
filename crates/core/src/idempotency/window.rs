//! How long a key is remembered: a replay window, then a tombstone, then it is free (or never).

use super::claim::ClaimId;
use crate::types::time::{Span, Time};

/// The windows of one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPolicy {
    /// How long an answer is replayed.
    pub replay: Span,
    /// How long after that a retry is told that the key has expired.
    pub tombstone: Span,
    /// What happens after the tombstone.
    pub reuse: Reuse,
}

/// Whether a key may ever mean another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// After the tombstone the key is free.
    AfterTombstone,
    /// The key's digest is kept for good.
    Never,
}

/// The instants that follow from a policy for one settled claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Windows {
    /// Replays are given before this instant.
    pub replay_until: Time,
    /// The tombstone answers before this instant.
    pub tombstone_until: Time,
}

/// One part in this many of the replay window is spread by the claim's own digest, so that keys which were
/// settled together do not expire together. It only lengthens the window.
const JITTER_PART: u64 = 64;
/// Steps of that part. Few, because a store that keeps keys by the time they expire adds to as many places at once.
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
    fn never_means_never() {
        let policy =
            WindowPolicy { replay: Span::from_ms(1), tombstone: Span::from_ms(1), reuse: Reuse::Never };
        let windows = policy.windows(ClaimId::from_digest(Digest::from_bytes([9; 32])), Time::EPOCH);
        assert_eq!(windows.tombstone_until, Time::MAX);
    }
}

//! Full-jitter backoff: a uniformly random wait between zero and a doubling bound.

use crate::types::time::Span;

/// The parameters of a backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The bound of the first wait.
    pub base: Span,
    /// The longest wait.
    pub cap: Span,
}

impl Backoff {
    /// The wait after `attempt` (1 is the first). `chance` is uniformly random.
    pub fn wait(&self, attempt: u32, chance: u64) -> Span {
        let doublings = attempt.saturating_sub(1).min(32);
        let bound = self.base.ms().saturating_mul(1_u64 << doublings).min(self.cap.ms());
        Span::from_ms(chance.checked_rem(bound.saturating_add(1)).unwrap_or(chance))
    }

    /// Like [`Backoff::wait`], but at least `floor` (a provider's `Retry-After`). The cap also
    /// limits `floor`.
    pub fn wait_at_least(&self, floor: Span, attempt: u32, chance: u64) -> Span {
        floor.min(self.cap).max(self.wait(attempt, chance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BACKOFF: Backoff = Backoff { base: Span::from_ms(50), cap: Span::from_ms(30_000) };

    proptest! {
        #[test]
        fn waits_stay_in_their_range(attempt: u32, chance: u64) {
            let bound = 50_u64.saturating_mul(1 << attempt.saturating_sub(1).min(32)).min(30_000);
            prop_assert!(BACKOFF.wait(attempt, chance).ms() <= bound);
        }

        #[test]
        fn a_huge_retry_after_is_cut(floor: u64, attempt in 1_u32..10, chance: u64) {
            let wait = BACKOFF.wait_at_least(Span::from_ms(floor), attempt, chance).ms();
            prop_assert!(wait <= 30_000 && wait >= floor.min(30_000));
        }
    }

    #[test]
    fn the_whole_range_is_used() {
        assert_eq!(BACKOFF.wait(3, 0), Span::ZERO);
        assert_eq!(BACKOFF.wait(3, 200), Span::from_ms(200));
        assert_eq!(BACKOFF.wait(3, 201), Span::ZERO);
    }
}

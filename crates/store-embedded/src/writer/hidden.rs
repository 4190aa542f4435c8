//! What is durable and not yet committed by the database, and when that is enough for it to commit.

use std::time::Duration;

/// Statements and groups after which the database commits. Fewer statements would write the same pages again and again; and
/// what comes in long groups bears a longer wait now and then, for fewer of them.
const HIDDEN_STATEMENTS_MIN: usize = 2_048;
const HIDDEN_GROUPS_MIN: usize = 24;
/// Bytes of scripts after which it does in any case: the redo log has room for many times as many.
const HIDDEN_BYTES_MAX: usize = 4 << 20;
/// How long the database may be behind under load. Who reads asks for more.
const HIDDEN_FOR_MAX: Duration = Duration::from_millis(250);

/// Groups that are durable, executed and not yet committed by the database.
#[derive(Default)]
pub(super) struct Hidden {
    pub(super) scripts: Vec<Vec<u8>>,
    statements: usize,
    bytes: usize,
    since: Duration,
    /// A segment of the redo log is full of them and waits to be used again.
    pub(super) fills_a_segment: bool,
}

impl Hidden {
    pub(super) fn add(&mut self, script: Vec<u8>, statements: usize, now: Duration) {
        if self.scripts.is_empty() {
            self.since = now;
        }
        self.statements = self.statements.saturating_add(statements);
        self.bytes = self.bytes.saturating_add(script.len());
        self.scripts.push(script);
    }

    /// Whether the database should show them, although nobody asks.
    pub(super) fn is_enough(&self, now: Duration) -> bool {
        (self.statements >= HIDDEN_STATEMENTS_MIN && self.scripts.len() >= HIDDEN_GROUPS_MIN)
            || self.bytes > HIDDEN_BYTES_MAX
            || self.fills_a_segment
            || !self.scripts.is_empty() && now.saturating_sub(self.since) > HIDDEN_FOR_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN: Duration = Duration::from_secs(7);

    fn hidden(groups: usize, statements: usize, bytes: usize) -> Hidden {
        let mut hidden = Hidden::default();
        (0..groups).for_each(|_| hidden.add(vec![0; bytes], statements, BEGUN));
        hidden
    }

    #[test]
    fn short_groups_wait_for_statements_and_long_ones_for_groups() {
        assert!(!hidden(2_047, 1, 0).is_enough(BEGUN));
        assert!(hidden(2_048, 1, 0).is_enough(BEGUN));
        assert!(!hidden(23, 1_000, 0).is_enough(BEGUN));
        assert!(hidden(24, 1_000, 0).is_enough(BEGUN));
    }

    #[test]
    fn many_bytes_are_enough() {
        assert!(!hidden(1, 1, HIDDEN_BYTES_MAX).is_enough(BEGUN));
        assert!(hidden(1, 1, HIDDEN_BYTES_MAX + 1).is_enough(BEGUN));
    }

    #[test]
    fn a_quarter_of_a_second_after_the_first_is_enough_if_there_is_any() {
        let mut hidden = hidden(1, 1, 0);
        hidden.add(Vec::new(), 1, BEGUN + HIDDEN_FOR_MAX);
        assert!(!hidden.is_enough(BEGUN + HIDDEN_FOR_MAX));
        let late = BEGUN + HIDDEN_FOR_MAX + Duration::from_millis(1);
        assert!(hidden.is_enough(late));
        assert!(!Hidden::default().is_enough(late));
    }
}

//! Problems with the settings, one line per problem.

use std::fmt;

use super::source::Source;

/// Longest quote in a message, so that a problem stays on one line.
const QUOTED_CHARS_MAX: usize = 60;

/// A problem: its place, and a sentence without a full stop (a question keeps its mark).
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Problem {
    pub(super) source: Source,
    pub(super) sentence: String,
}

/// All problems in the order file, environment, flags. Never empty.
#[derive(Debug)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    /// `None` if there are no problems.
    pub(super) fn of(mut problems: Vec<Problem>) -> Option<Problems> {
        problems.sort();
        (!problems.is_empty()).then_some(Problems(problems))
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Problem { source, sentence }) in self.0.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            let stop = if sentence.ends_with('?') { "" } else { "." };
            write!(f, "{line_break}{source}: {sentence}{stop}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Quotes foreign text in backquotes, escaped and shortened.
pub(super) fn quoted(text: &str) -> String {
    let escaped: String = text.chars().take(QUOTED_CHARS_MAX).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(QUOTED_CHARS_MAX).is_some() { "…" } else { "" };
    format!("`{escaped}{more}`")
}

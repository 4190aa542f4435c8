//! What is wrong with the settings: every problem, one line each.

use std::fmt;

use super::source::Source;

/// The longest piece of somebody's text a message repeats, so that one line stays one line.
const QUOTED_CHARS_MAX: usize = 60;

/// One problem: where, and a sentence without its full stop (a question keeps its mark).
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Problem {
    pub(super) source: Source,
    pub(super) sentence: String,
}

/// Everything wrong with the settings, in the order file, environment, flags. Never empty.
#[derive(Debug)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    /// `None` if nothing is wrong.
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

/// Somebody's text inside a sentence: escaped, shortened, in backquotes.
pub(super) fn quoted(text: &str) -> String {
    let escaped: String = text.chars().take(QUOTED_CHARS_MAX).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(QUOTED_CHARS_MAX).is_some() { "…" } else { "" };
    format!("`{escaped}{more}`")
}

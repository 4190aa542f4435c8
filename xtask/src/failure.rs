//! Why a command could not do its work: one sentence for whoever typed it.

use std::fmt::Display;

/// A failure, ready to be printed.
#[derive(Debug)]
pub(crate) struct Failure(String);

/// What most things here return.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Failure {
        Failure(sentence.into())
    }

    /// For `map_err`: what was being done, then what went wrong.
    pub(crate) fn while_<E: Display>(doing: impl Display) -> impl FnOnce(E) -> Failure {
        move |error| Failure(format!("{doing}: {error}"))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

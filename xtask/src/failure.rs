//! Failures of commands, as a sentence for the person who typed the command.

use std::fmt::Display;

/// A failure, ready to be printed.
#[derive(Debug)]
pub(crate) struct Failure(String);

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Failure {
        Failure(sentence.into())
    }

    /// For `map_err`: names the attempted step, then the error.
    pub(crate) fn while_<E: Display>(doing: impl Display) -> impl FnOnce(E) -> Failure {
        move |error| Failure(format!("{doing}: {error}"))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

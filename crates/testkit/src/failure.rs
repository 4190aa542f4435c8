//! Why a server is not there: one sentence for whoever runs the tests.

use std::fmt;

/// A failure, ready to be printed.
#[derive(Clone, Debug)]
pub struct Failure(String);

/// What most things here return.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// From a whole sentence.
    pub fn new(sentence: impl Into<String>) -> Failure {
        Failure(sentence.into())
    }

    /// For `map_err`: what was being done, then what went wrong.
    pub fn while_<E: fmt::Display>(doing: impl fmt::Display) -> impl FnOnce(E) -> Failure {
        move |error| Failure(format!("{doing}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

//! Failures of test servers, as a sentence for the person who runs the tests.

use std::fmt;

/// A failure, ready to be printed.
#[derive(Clone, Debug)]
pub struct Failure(String);

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(sentence: impl Into<String>) -> Failure {
        Failure(sentence.into())
    }

    /// For `map_err`: names the attempted step, then the error.
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

//! What is wrong with a request that reads well but does not fit what it is about.

/// One thing that is wrong, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// RFC 6901 pointer into the request; empty for the whole.
    pub pointer: String,
    /// What is wrong, and what to send instead.
    pub message: String,
}

impl Flaw {
    /// At `pointer`.
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Flaw {
        Flaw { pointer: pointer.into(), message: message.into() }
    }
}

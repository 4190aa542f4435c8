//! Flaws of a well-formed request that does not fit its object.

/// One flaw and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// RFC 6901 pointer into the request; empty for the whole request.
    pub pointer: String,
    pub message: String,
}

impl Flaw {
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Flaw {
        Flaw { pointer: pointer.into(), message: message.into() }
    }
}

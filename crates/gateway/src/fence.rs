//! The gateway fence: a lock by name with an end of its own, so that two processes do not work on one payment at once.
//!
//! It is the first fence, never the last: a server that fails over may give one name to two holders, and a holder that
//! sleeps may outlive its time. Whoever is let through twice is stopped by the claim's own fence and the provider's
//! key. So a fence that cannot be asked stops nobody; [`Fences`] makes that rule, and counts.

mod pass;

pub use pass::{Fences, HeldByAnother, Pass};

use counterfoil_core::types::time::Span;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// An answer to come: yes, no, or nobody knows.
pub type FenceFuture<'a> = Pin<Box<dyn Future<Output = Result<bool, FenceFailure>> + Send + 'a>>;

/// A server that keeps fences. Every call ends within a bound of the adapter's own, far below a client's patience.
pub trait Fence: Send + Sync + 'static {
    /// Takes the name for `ttl`, unless another token has it. Asking again with the same token is no conflict.
    fn take<'a>(&'a self, name: &'a str, token: Token, ttl: Span) -> FenceFuture<'a>;

    /// Lengthens the hold to `ttl` from now. No: the token does not have the name any more.
    fn renew<'a>(&'a self, name: &'a str, token: Token, ttl: Span) -> FenceFuture<'a>;

    /// Gives the name back. No: the token did not have it, and nothing was changed.
    fn release<'a>(&'a self, name: &'a str, token: Token) -> FenceFuture<'a>;
}

/// Tells one attempt from every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(u128);

impl Token {
    /// Of 128 unpredictable bits, fresh for every attempt.
    pub const fn new(chance: u128) -> Token {
        Token(chance)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Why there is no answer. The text is for operators and holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FenceFailure {
    /// The server failed a moment ago and is left alone; it was not asked.
    Resting,
    /// No connection; it was not asked.
    Unreachable(String),
    /// It was asked and did not answer: perhaps done.
    Unheard(String),
    /// It answered that it cannot.
    Refused(String),
}

impl fmt::Display for FenceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FenceFailure::Resting => f.write_str("the server failed a moment ago and is left alone"),
            FenceFailure::Unreachable(why) => write!(f, "the server cannot be reached: {why}"),
            FenceFailure::Unheard(why) => write!(f, "the server did not answer: {why}"),
            FenceFailure::Refused(why) => write!(f, "the server refused: {why}"),
        }
    }
}

impl std::error::Error for FenceFailure {}

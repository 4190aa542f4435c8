//! The gateway fence: a lock by payment name that expires, so that two processes do not work on one
//! payment at once.
//!
//! The fence is the first safeguard, never the last. A fence server that fails over may grant one
//! name twice, and a holder that sleeps may outlive its TTL. The claim's own fencing token and the
//! provider's idempotency key stop a second holder. An unreachable fence therefore stops nobody;
//! [`Fences`] implements this rule and counts the bypasses.

mod pass;

pub use pass::{Fences, HeldByAnother, Pass};

use counterfoil_core::types::time::Span;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// The future of a fence call: yes, no, or a failure.
pub type FenceFuture<'a> = Pin<Box<dyn Future<Output = Result<bool, FenceFailure>> + Send + 'a>>;

/// A fence server. Every call ends within a bound set by the adapter, far below a client's timeout.
pub trait Fence: Send + Sync + 'static {
    /// Takes the name for `ttl` unless another token holds it. Taking it again with the same token
    /// succeeds.
    fn take<'a>(&'a self, name: &'a str, token: Token, ttl: Span) -> FenceFuture<'a>;

    /// Extends the hold to `ttl` from now. False if the token no longer holds the name.
    fn renew<'a>(&'a self, name: &'a str, token: Token, ttl: Span) -> FenceFuture<'a>;

    /// Releases the name. False, without any change, if the token did not hold it.
    fn release<'a>(&'a self, name: &'a str, token: Token) -> FenceFuture<'a>;
}

/// Identifies one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(u128);

impl Token {
    /// Makes a token from 128 unpredictable bits, fresh for every attempt.
    pub const fn new(chance: u128) -> Token {
        Token(chance)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A fence call without an answer. The text is for operators and holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FenceFailure {
    /// Not asked: the server failed a moment ago and is in its cooldown.
    Resting,
    /// Not asked: no connection.
    Unreachable(String),
    /// Asked without an answer; the command may have been executed.
    Unheard(String),
    /// The server answered with an error.
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

//! The inbox port: webhooks sent by a provider. Authenticity is checked on the raw bytes, before
//! any of them are parsed.

use counterfoil_core::types::time::Time;
use std::fmt;

/// Verifies and reads the webhooks of one provider.
pub trait Inbox: Send + Sync + 'static {
    /// The provider's name in the route.
    fn provider(&self) -> &str;

    /// The name of the signature header, in lower case.
    fn header(&self) -> &'static str;

    /// Checks that the provider signed exactly `body` a short time ago, then parses it.
    fn open(&self, signature: Option<&[u8]>, body: &[u8], now: Time) -> Result<ProviderEvent, Unopened>;
}

/// A verified event. It is a hint where to look, never a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEvent {
    /// The claimed reference of one of our payments.
    pub payment: Option<String>,
}

/// A delivery that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
    Missing,
    /// The signature header cannot be parsed.
    Malformed,
    /// No configured secret produced this signature.
    NoMatch,
    TooOld,
    FromTheFuture,
    /// The delivery is signed but is not an event.
    Unreadable,
}

impl fmt::Display for Unopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unopened::Missing => "the signature header is missing",
            Unopened::Malformed => "the signature header has not the form of a signature",
            Unopened::NoMatch => "the signature is not that of these bytes under any secret that is set here",
            Unopened::TooOld => "it was signed more than five minutes ago",
            Unopened::FromTheFuture => "it was signed more than five minutes in the future",
            Unopened::Unreadable => "the body is no JSON object",
        })
    }
}

impl std::error::Error for Unopened {}

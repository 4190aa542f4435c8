//! The inbox: what a provider sends on its own. Whether it is the provider's is decided on the raw bytes, before anything
//! in them is read.

use counterfoil_core::types::time::Time;
use std::fmt;

/// How one provider signs what it sends, and where our payments stand in it.
pub trait Inbox: Send + Sync + 'static {
    /// The provider, as it is named in the route.
    fn provider(&self) -> &str;

    /// The header that carries the signature, in lower case.
    fn header(&self) -> &'static str;

    /// Checks that the provider signed exactly `body`, and lately; then reads it.
    fn open(&self, signature: Option<&[u8]>, body: &[u8], now: Time) -> Result<ProviderEvent, Unopened>;
}

/// What the provider says has happened. Nothing of it is believed: it only says where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEvent {
    /// What it says is our reference of a payment; nothing if it names none.
    pub payment: Option<String>,
}

/// Why a delivery was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// There is no signature.
    Missing,
    /// The signature is not one that could be checked.
    Malformed,
    /// Nobody with a secret of ours signed these bytes.
    NoMatch,
    /// They were signed too long ago.
    TooOld,
    /// They were signed too far in the future.
    FromTheFuture,
    /// They are signed, and are no event.
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

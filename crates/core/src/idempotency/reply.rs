//! A stored answer, which every retry gets byte for byte.

use bytes::Bytes;
use std::sync::Arc;

/// The status, declared headers and body of an answer. `Idempotency-Expires` follows from the
/// claim's window. Headers that vary per exchange (`Date`, `Request-Id`, `Idempotent-Replayed`) are
/// not stored.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Reply {
    pub status: u16,
    pub media: ReplyMedia,
    /// The `Location` header, if the request created something.
    pub location: Option<Arc<str>>,
    pub body: Bytes,
}

/// The media types of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplyMedia {
    /// `application/json`
    Json,
    /// `application/problem+json`
    Problem,
}

impl ReplyMedia {
    /// The `Content-Type` header.
    pub const fn content_type(self) -> &'static str {
        match self {
            ReplyMedia::Json => "application/json",
            ReplyMedia::Problem => "application/problem+json",
        }
    }

    /// The name in stores.
    pub const fn name(self) -> &'static str {
        match self {
            ReplyMedia::Json => "json",
            ReplyMedia::Problem => "problem",
        }
    }

    pub fn parse(name: &str) -> Option<ReplyMedia> {
        [ReplyMedia::Json, ReplyMedia::Problem].into_iter().find(|media| media.name() == name)
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The body belongs to the client and stays out of logs.
        write!(f, "Reply({} {:?}, {} bytes)", self.status, self.media, self.body.len())
    }
}

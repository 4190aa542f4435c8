//! The gateway fence and the shared answers on Redis or Valkey.
//!
//! Both are aids: a server that is away, slow, full, emptied or failed over costs speed and never a payment. Every
//! call ends within one timeout, connecting included; after a failure the server is left alone for a second, so that a
//! server that hangs does not slow every charge. Nothing is connected before it is needed, and a lost connection is made
//! anew.

mod fence;
mod link;
mod shelf;
mod target;

pub use target::BadUrl;

use link::Link;
use std::time::Duration;
use target::Target;

/// A server.
#[derive(Debug)]
pub struct Redis {
    link: Link,
}

impl Redis {
    /// The server of a URL: `redis://[[user]:password@]host[:port][/database]`, or `rediss://…` with TLS. No call takes
    /// longer than `timeout`. Nothing is connected yet: a server that is away stops nobody.
    pub fn new(url: &str, timeout: Duration) -> Result<Redis, BadUrl> {
        Ok(Redis { link: Link::new(Target::parse(url)?, timeout) })
    }
}

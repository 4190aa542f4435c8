//! The gateway fence and the shared answers on Redis or Valkey.
//!
//! Both only save time. A server that is down, slow, full, emptied or failed over costs latency and
//! never a payment. Every call ends within one timeout, connecting included. A failure starts a
//! cooldown of one second, so that a hanging server does not slow every charge. Connections are
//! made on demand and replaced when lost.

mod fence;
mod link;
mod shared_cache;
mod target;

pub use target::RedisUrlError;

use link::Link;
use std::time::Duration;
use target::Target;

/// A Redis server.
#[derive(Debug)]
pub struct Redis {
    link: Link,
}

impl Redis {
    /// Reads a URL: `redis://[[user]:password@]host[:port][/database]`, or `rediss://…` with TLS.
    /// No call takes longer than `timeout`. Does not connect yet, so an unreachable server does not
    /// stop the start.
    pub fn new(url: &str, timeout: Duration) -> Result<Redis, RedisUrlError> {
        Ok(Redis { link: Link::new(Target::parse(url)?, timeout) })
    }
}

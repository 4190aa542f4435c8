//! Fences as Redis keys that hold a token and expire.
//!
//! Each step is one small script, sent in full with `EVAL`, because a restarted server forgets
//! cached scripts. A failover may lose the last writes and admit two holders; the fence is the
//! first safeguard, never the last.

use crate::Redis;
use counterfoil_core::types::time::Span;
use counterfoil_gateway::fence::{Fence, FenceFailure, FenceFuture, Token};
use redis::Cmd;

/// Sets the token if the key is free, or extends its own. A take whose answer was lost may be
/// repeated.
const TAKE: &str = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end \
     if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
     return redis.call('PEXPIRE', KEYS[1], ARGV[2])";
const RENEW: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
     return redis.call('PEXPIRE', KEYS[1], ARGV[2])";
const RELEASE: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end \
     return redis.call('DEL', KEYS[1])";

impl Fence for Redis {
    fn take<'a>(&'a self, name: &'a str, token: Token, ttl: Span) -> FenceFuture<'a> {
        Box::pin(self.run(TAKE, name, token, Some(ttl)))
    }

    fn renew<'a>(&'a self, name: &'a str, token: Token, ttl: Span) -> FenceFuture<'a> {
        Box::pin(self.run(RENEW, name, token, Some(ttl)))
    }

    fn release<'a>(&'a self, name: &'a str, token: Token) -> FenceFuture<'a> {
        Box::pin(self.run(RELEASE, name, token, None))
    }
}

impl Redis {
    async fn run(
        &self,
        script: &'static str,
        name: &str,
        token: Token,
        ttl: Option<Span>,
    ) -> Result<bool, FenceFailure> {
        let mut command = Cmd::new();
        command.arg("EVAL").arg(script).arg(1).arg(format!("counterfoil:fence:{name}"));
        command.arg(token.to_string()).arg(ttl.map(Span::ms));
        self.link.ask::<i64>(&command).await.map(|answer| answer == 1)
    }
}

//! Shared answers as Redis keys that expire with their replay window.

use crate::Redis;
use counterfoil_core::types::time::Span;
use counterfoil_engine::answers::{ENTRY_BYTES_MAX, Fetched, SharedCache};
use redis::Cmd;

/// Longest TTL of an answer; Redis refuses larger numbers.
const TTL_MAX: Span = Span::from_ms(366 * 86_400_000);

impl SharedCache for Redis {
    fn get<'a>(&'a self, name: &'a str) -> Fetched<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let mut command = Cmd::new();
            // Read a bounded range: another program may have stored more than this process should
            // hold.
            command.arg("GETRANGE").arg(key(name)).arg(0).arg(ENTRY_BYTES_MAX);
            let found: Vec<u8> = self.link.ask(&command).await.ok()?;
            (!found.is_empty()).then_some(found)
        })
    }

    fn put<'a>(&'a self, name: &'a str, bytes: Vec<u8>, ttl: Span) -> Fetched<'a, ()> {
        Box::pin(async move {
            let mut command = Cmd::new();
            command.arg("SET").arg(key(name)).arg(bytes).arg("PX").arg(ttl.min(TTL_MAX).ms());
            // Ignore failures: an answer that is not cached is read from the store.
            let _ = self.link.ask::<()>(&command).await;
        })
    }
}

fn key(name: &str) -> String {
    format!("counterfoil:answer:{name}")
}

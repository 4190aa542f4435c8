//! Shared answers as keys that end with their replay window.

use crate::Redis;
use counterfoil_core::types::time::Span;
use counterfoil_engine::answers::{ENTRY_BYTES_MAX, Fetched, SharedCache};
use redis::Cmd;

/// Longest time an answer is kept, however long its window is: the server refuses times that pass its own numbers.
const TTL_MAX: Span = Span::from_ms(366 * 86_400_000);

impl SharedCache for Redis {
    fn get<'a>(&'a self, name: &'a str) -> Fetched<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let mut command = Cmd::new();
            // Not the whole: somebody may have put there more than this process wants to hold.
            command.arg("GETRANGE").arg(key(name)).arg(0).arg(ENTRY_BYTES_MAX);
            let found: Vec<u8> = self.link.ask(&command).await.ok()?;
            (!found.is_empty()).then_some(found)
        })
    }

    fn put<'a>(&'a self, name: &'a str, bytes: Vec<u8>, ttl: Span) -> Fetched<'a, ()> {
        Box::pin(async move {
            let mut command = Cmd::new();
            command.arg("SET").arg(key(name)).arg(bytes).arg("PX").arg(ttl.min(TTL_MAX).ms());
            // An answer that is not kept is found in the store.
            let _ = self.link.ask::<()>(&command).await;
        })
    }
}

fn key(name: &str) -> String {
    format!("counterfoil:answer:{name}")
}

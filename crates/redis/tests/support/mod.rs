//! Test support: servers, clients and timeouts.

#![allow(dead_code, reason = "each test file uses its own part")]

use counterfoil_core::types::time::Span;
use counterfoil_gateway::fence::{Fence, FenceFailure, Fences, Token};
use counterfoil_redis::Redis;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Timeout of calls that must be answered, generous for slow machines.
pub(crate) const PATIENT: Duration = Duration::from_secs(20);
/// Timeout of calls that must fail.
pub(crate) const SHORT: Duration = Duration::from_millis(200);
pub(crate) const LONG: Span = Span::from_ms(600_000);

pub(crate) const ONE: Token = Token::new(1);
pub(crate) const TWO: Token = Token::new(2);

pub(crate) fn client(url: &str, timeout: Duration) -> Arc<Redis> {
    Arc::new(Redis::new(url, timeout).unwrap())
}

/// Fences on that server, and a counter of bypasses.
pub(crate) fn fences(redis: &Arc<Redis>, ttl: Span) -> (Fences, Arc<AtomicUsize>) {
    let bypasses = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&bypasses);
    let count = move |_: &FenceFailure| {
        counter.fetch_add(1, Ordering::SeqCst);
    };
    (Fences::new(Arc::clone(redis) as Arc<dyn Fence>, ttl, count), bypasses)
}

/// Repeats the call until it returns the expected answer; a failed server first has a cooldown of
/// one second.
pub(crate) async fn eventually<T: PartialEq + std::fmt::Debug, F: Future<Output = T>>(
    expected: T,
    mut ask: impl FnMut() -> F,
) {
    let mut last = None;
    for _ in 0..2_000 {
        let answer = ask().await;
        if answer == expected {
            return;
        }
        last = Some(answer);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{expected:?} did not come; last: {last:?}");
}

/// Sends a command past the client under test.
pub(crate) fn raw<T: redis::FromRedisValue>(url: &str, words: &[&[u8]]) -> T {
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(*word);
    }
    command.query(&mut connection).unwrap()
}

//! Early detection of hot accounts: guarded accounts with one shard that is written very often.

use counterfoil_core::ledger::account::Account;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::time::{Span, Time};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Writes per second from which a one-shard account counts as hot: about a tenth of a row's
/// capacity with several writing processes.
const HOT_WRITES: u64 = 100;
const WINDOW: Span = Span::from_ms(1_000);
/// Accounts counted at once. Further accounts are ignored until the next window.
const WATCHED_MAX: usize = 10_000;

/// Writes per guarded account in the current window.
#[derive(Default)]
pub(crate) struct Heat(Mutex<Window>);

struct Window {
    since: Time,
    writes: BTreeMap<AccountId, u64>,
}

impl Default for Window {
    fn default() -> Window {
        Window { since: Time::EPOCH, writes: BTreeMap::new() }
    }
}

impl Heat {
    /// Counts a write. At the end of a window, returns its hot accounts with the writes.
    pub(crate) fn wrote(&self, account: &Account, now: Time) -> Vec<(AccountId, u64)> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hot = Vec::new();
        if now.since(window.since) >= WINDOW {
            let writes = std::mem::take(&mut window.writes);
            hot.extend(writes.into_iter().filter(|(_, writes)| *writes >= HOT_WRITES));
            window.since = now;
        }
        if account.shards == 1
            && (window.writes.len() < WATCHED_MAX || window.writes.contains_key(&account.id))
        {
            let writes = window.writes.entry(account.id).or_default();
            *writes = writes.saturating_add(1);
        }
        hot
    }
}

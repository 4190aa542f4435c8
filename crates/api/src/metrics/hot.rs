//! Numbers by account, only of those that are hot: bounded, and forgotten once an account has cooled.

use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::reference::{ReferenceKind, References};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Accounts shown at once; a new one takes the place of the one heard of longest ago.
pub(super) const ACCOUNTS_MAX: usize = 100;
/// The engine speaks once a second of an account that is hot, and not at all of one that is not.
const COOLED_AFTER: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct AccountLabel {
    account: String,
}

pub(super) struct Hot {
    writes: Family<AccountLabel, Gauge>,
    /// What accounts are called outside, known once the engine is.
    references: OnceLock<References>,
    reply: Mutex<HashMap<AccountId, ProviderReply>>,
}

struct ProviderReply {
    label: AccountLabel,
    at: Instant,
}

impl Hot {
    pub(super) fn new(writes: Family<AccountLabel, Gauge>) -> Hot {
        Hot { writes, references: OnceLock::new(), reply: Mutex::default() }
    }

    pub(super) fn name_by(&self, references: &References) {
        // Every face of one engine has the same.
        let _ = self.references.set(references.clone());
    }

    pub(super) fn saw(&self, account: AccountId, writes: u64, now: Instant) {
        let Some(references) = self.references.get() else { return };
        let mut reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        if reply.len() >= ACCOUNTS_MAX && !reply.contains_key(&account) {
            let longest_ago = reply.iter().min_by_key(|(_, reply)| reply.at).map(|(account, _)| *account);
            if let Some(gone) = longest_ago.and_then(|account| reply.remove(&account)) {
                self.writes.remove(&gone.label);
            }
        }
        let known = reply.entry(account).or_insert_with(|| ProviderReply {
            label: AccountLabel {
                account: references.seal(ReferenceKind::Account, account.to_i64()).to_string(),
            },
            at: now,
        });
        known.at = now;
        self.writes.get_or_create(&known.label).set(i64::try_from(writes).unwrap_or(i64::MAX));
    }

    /// Drops accounts that have cooled.
    pub(super) fn forget(&self, now: Instant) {
        let mut reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner);
        reply.retain(|_, reply| {
            let hot = now.saturating_duration_since(reply.at) < COOLED_AFTER;
            if !hot {
                self.writes.remove(&reply.label);
            }
            hot
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_core::types::digest::MacKey;

    #[test]
    fn accounts_are_named_bounded_and_forgotten() {
        let references = References::new(MacKey::new(&[1; 32]));
        let writes: Family<AccountLabel, Gauge> = Family::default();
        let hot = Hot::new(writes.clone());
        let id = AccountId::from_i64;
        let shown = |account: i64| {
            let label =
                AccountLabel { account: references.seal(ReferenceKind::Account, account).to_string() };
            writes.get(&label).map(|gauge| gauge.get())
        };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        hot.saw(id(1), 7, at(0));
        assert_eq!(shown(1), None, "nobody has said yet what accounts are called");
        hot.name_by(&references);
        for account in 1..=100 {
            hot.saw(id(account), 7, at(u64::try_from(account).unwrap()));
        }
        hot.saw(id(1), 9, at(101));
        assert_eq!((shown(1), shown(2), shown(100)), (Some(9), Some(7), Some(7)));
        hot.saw(id(101), 8, at(101));
        assert_eq!(
            (shown(1), shown(2), shown(101)),
            (Some(9), None, Some(8)),
            "the one reply of longest ago goes"
        );
        hot.forget(at(161));
        assert_eq!((shown(1), shown(101), shown(100)), (None, None, None));
        assert!(hot.reply.lock().unwrap().is_empty());
    }
}

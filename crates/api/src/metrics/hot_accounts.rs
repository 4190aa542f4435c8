//! Metrics by account, for hot accounts only. Their number is bounded, and a series ends once its
//! account cools down.

use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::reference::{ReferenceKind, References};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Most accounts with a series. A new account replaces the one reported longest ago.
pub(super) const ACCOUNTS_MAX: usize = 100;
/// The engine reports a hot account once a second, and other accounts never.
const COOLED_AFTER: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct AccountLabel {
    account: String,
}

pub(super) struct HotAccounts {
    writes: Family<AccountLabel, Gauge>,
    /// Names accounts in labels; set once the engine exists.
    references: OnceLock<References>,
    reported: Mutex<HashMap<AccountId, Reported>>,
}

struct Reported {
    label: AccountLabel,
    at: Instant,
}

impl HotAccounts {
    pub(super) fn new(writes: Family<AccountLabel, Gauge>) -> HotAccounts {
        HotAccounts { writes, references: OnceLock::new(), reported: Mutex::default() }
    }

    pub(super) fn set_references(&self, references: &References) {
        // Several servers in one process share the engine, so later calls set the same references.
        let _ = self.references.set(references.clone());
    }

    pub(super) fn report(&self, account: AccountId, writes: u64, now: Instant) {
        let Some(references) = self.references.get() else { return };
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() >= ACCOUNTS_MAX && !reported.contains_key(&account) {
            let oldest = reported.iter().min_by_key(|(_, one)| one.at).map(|(account, _)| *account);
            if let Some(gone) = oldest.and_then(|account| reported.remove(&account)) {
                self.writes.remove(&gone.label);
            }
        }
        let known = reported.entry(account).or_insert_with(|| Reported {
            label: AccountLabel {
                account: references.seal(ReferenceKind::Account, account.to_i64()).to_string(),
            },
            at: now,
        });
        known.at = now;
        self.writes.get_or_create(&known.label).set(i64::try_from(writes).unwrap_or(i64::MAX));
    }

    /// Drops accounts that have cooled down.
    pub(super) fn drop_cool(&self, now: Instant) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.retain(|_, one| {
            let hot = now.saturating_duration_since(one.at) < COOLED_AFTER;
            if !hot {
                self.writes.remove(&one.label);
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
    fn hot_accounts_are_named_bounded_and_dropped_once_cool() {
        let references = References::new(MacKey::new(&[1; 32]));
        let writes: Family<AccountLabel, Gauge> = Family::default();
        let hot = HotAccounts::new(writes.clone());
        let id = AccountId::from_i64;
        let series = |account: i64| {
            let label =
                AccountLabel { account: references.seal(ReferenceKind::Account, account).to_string() };
            writes.get(&label).map(|gauge| gauge.get())
        };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        hot.report(id(1), 7, at(0));
        assert_eq!(series(1), None, "an account needs a public name before it has a series");
        hot.set_references(&references);
        for account in 1..=100 {
            hot.report(id(account), 7, at(u64::try_from(account).unwrap()));
        }
        hot.report(id(1), 9, at(101));
        assert_eq!((series(1), series(2), series(100)), (Some(9), Some(7), Some(7)));
        hot.report(id(101), 8, at(101));
        assert_eq!(
            (series(1), series(2), series(101)),
            (Some(9), None, Some(8)),
            "the account reported longest ago goes"
        );
        hot.drop_cool(at(161));
        assert_eq!((series(1), series(101), series(100)), (None, None, None));
        assert!(hot.reported.lock().unwrap().is_empty());
    }
}

//! The measured accounts by code. Each route opens and funds its own.

use super::cell::{Accounts, SHARDS};

/// Pairs of distinct accounts.
const PAIRS: usize = 1_000;
/// The source of all funds.
pub(super) const SOURCE: &str = "source";
/// Minor units of a funding, more than any measurement moves.
pub(super) const FUND: i64 = 1_000_000_000_000;
/// Fundings per shard: each goes to a random shard, and none should stay empty.
const FUNDINGS_PER_SHARD: usize = 16;
/// Number of concurrent tasks that open and fund accounts.
pub(super) const OPENERS: usize = 64;

/// An account to open.
pub(super) struct Wanted {
    pub(super) code: String,
    /// Number of shards of an account with a floor of zero; `None` means no guard.
    pub(super) guarded: Option<u16>,
    /// Number of fundings.
    pub(super) fundings: usize,
}

/// All accounts.
pub(super) fn wanted() -> Vec<Wanted> {
    let plain = |code| Wanted { code, guarded: None, fundings: 0 };
    let mut wanted = vec![plain(SOURCE.to_owned()), plain(hot(None))];
    for number in 0..PAIRS {
        wanted.extend([plain(payer(number)), plain(payee(number))]);
        wanted.push(Wanted { code: guarded_payer(number), guarded: Some(1), fundings: 1 });
    }
    wanted.extend(SHARDS.map(|shards| Wanted {
        code: hot(Some(shards)),
        guarded: Some(shards),
        fundings: usize::from(shards) * FUNDINGS_PER_SHARD,
    }));
    wanted
}

impl Accounts {
    /// Codes of the accounts to debit and credit.
    pub(super) fn pairs(self) -> Vec<(String, String)> {
        let pair = |number| match self {
            Accounts::Distinct => (payer(number), payee(number)),
            Accounts::Guarded => (guarded_payer(number), payee(number)),
            Accounts::Hot => (hot(None), payee(number)),
            Accounts::HotDebited { shards } => (hot(Some(shards)), payee(number)),
            Accounts::HotCredited { shards } => (payer(number), hot(Some(shards))),
        };
        (0..PAIRS).map(pair).collect()
    }
}

fn payer(number: usize) -> String {
    format!("payer-{number:04}")
}

fn payee(number: usize) -> String {
    format!("payee-{number:04}")
}

fn guarded_payer(number: usize) -> String {
    format!("guarded-payer-{number:04}")
}

fn hot(shards: Option<u16>) -> String {
    shards.map_or_else(|| "hot".to_owned(), |shards| format!("hot-{shards:03}"))
}

#[cfg(test)]
mod tests {
    use super::super::cell::cells;
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_pair_is_of_accounts_that_are_opened_once() {
        let wanted = wanted();
        let opened: BTreeMap<&str, &Wanted> = wanted.iter().map(|it| (it.code.as_str(), it)).collect();
        assert_eq!(opened.len(), wanted.len(), "no code twice");
        for cell in cells(&[]) {
            for (debited, credited) in cell.accounts.pairs() {
                let (debited, credited) = (opened[debited.as_str()], opened[credited.as_str()]);
                assert!(debited.guarded.is_none() || debited.fundings > 0, "{} has no funds", debited.code);
                let both = debited.guarded.is_some() && credited.guarded.is_some();
                assert!(!both, "{} and {} are both guarded", debited.code, credited.code);
            }
        }
    }
}

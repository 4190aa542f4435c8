//! Which accounts the transactions touched that this process has just written: the projection counts their entries
//! without reading them back. What is missing here is read from the store.

use counterfoil_core::types::id::{AccountId, TransactionId};
use counterfoil_store::{Change, ChangeSet, Row};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Transactions that are remembered until the projection has come to them: some 10 MiB.
const REMEMBERED_MAX: usize = 65_536;

/// The accounts of recent transactions, an account for each leg.
#[derive(Debug, Default)]
pub(crate) struct Posted(Mutex<HashMap<TransactionId, Box<[AccountId]>>>);

impl Posted {
    /// Notes what a set will post, and tells which transactions: if it is not committed, they must be taken back.
    pub(crate) fn note(&self, set: &ChangeSet) -> Vec<TransactionId> {
        let mut noted = Vec::new();
        for change in set.changes() {
            let Change::Insert(row) = change else { continue };
            let Row::Transaction(transaction) = &**row else { continue };
            let accounts = transaction.legs.as_slice().iter().map(|leg| leg.account).collect();
            let mut known = self.known();
            if known.len() < REMEMBERED_MAX {
                known.insert(transaction.id, accounts);
                noted.push(transaction.id);
            }
        }
        noted
    }

    /// The accounts of a transaction, once.
    pub(crate) fn take(&self, id: TransactionId) -> Option<Box<[AccountId]>> {
        self.known().remove(&id)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<TransactionId, Box<[AccountId]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_store::conformance::fixtures::ledger::{account_id, transfer};
    use counterfoil_store::conformance::fixtures::{charge, set};

    #[test]
    fn what_posts_nothing_is_not_noted() {
        let posted = Posted::default();
        assert!(posted.note(&set(1).insert(charge(1))).is_empty());
        assert_eq!(posted.take(transfer(1, 2, 3, 4).id), None);
    }

    #[test]
    fn a_transaction_is_told_once_with_an_account_for_each_leg() {
        let posted = Posted::default();
        let written = transfer(1, 2, 3, 4);
        assert_eq!(posted.note(&set(1).insert(written.clone())), [written.id]);
        let mut accounts = posted.take(written.id).unwrap_or_default().into_vec();
        accounts.sort_unstable();
        assert_eq!(accounts, [account_id(2), account_id(3)]);
        assert_eq!(posted.take(written.id), None, "counted twice it would be two");
    }

    #[test]
    fn no_more_is_remembered_than_was_allowed() {
        let posted = Posted::default();
        let many = i64::try_from(REMEMBERED_MAX).unwrap_or(i64::MAX);
        for number in 1..=many {
            posted.note(&set(number).insert(transfer(number, 2, 3, 4)));
        }
        let one_more = transfer(many + 1, 2, 3, 4);
        assert!(posted.note(&set(many + 1).insert(one_more.clone())).is_empty());
        assert_eq!(posted.take(one_more.id), None, "the store is asked for it");
    }
}

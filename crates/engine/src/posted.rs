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

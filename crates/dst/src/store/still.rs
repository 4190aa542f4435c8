//! The store's machine seen without network and faults: what checks and the conformance suite look at.

use super::{Machine, START};
use crate::executor::lock;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::{
    ChangeSet, CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, Position, ReadError, Row,
    RowKey, Scan, Store, Tally, Upto,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A direct connection. Its clock goes on a little with every look.
pub struct Still {
    machine: Arc<Mutex<Machine>>,
    looks: AtomicU64,
}

impl Still {
    /// A connection to `machine`.
    pub fn new(machine: Arc<Mutex<Machine>>) -> Still {
        Still { machine, looks: AtomicU64::new(0) }
    }
}

impl Store for Still {
    fn now(&self) -> Time {
        let looks = self.looks.fetch_add(1, Ordering::SeqCst);
        lock(&self.machine).shelf.tick(START.plus(Span::from_ms(looks / 8)))
    }

    fn secret(&self) -> Masked<[u8; 32]> {
        Masked::new([7; 32])
    }

    fn is_exclusive(&self) -> bool {
        false
    }

    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        let machine = lock(&self.machine);
        Ok(keys.iter().map(|key| machine.shelf.row(key).cloned()).collect())
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        Ok(lock(&self.machine).shelf.scan(&scan))
    }

    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        Ok(lock(&self.machine).shelf.due(due, now, limit))
    }

    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        let now = self.now();
        lock(&self.machine).shelf.commit(&set, now)
    }

    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        Ok(lock(&self.machine).shelf.committed(id))
    }

    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        Ok(lock(&self.machine).shelf.feed(after, limit))
    }

    async fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<AccountEntry>, ReadError> {
        Ok(lock(&self.machine).shelf.entries(tenant, account, page, limit))
    }

    async fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> Result<Folded, ReadError> {
        Ok(lock(&self.machine).shelf.fold(tenant, account, after, upto))
    }

    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        Ok(lock(&self.machine).shelf.tally(now))
    }

    fn settled_elsewhere(&self, _: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        None::<std::future::Ready<()>>
    }
}

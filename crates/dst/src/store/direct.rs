//! A store without network and faults, for the checks and the conformance suite.

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

/// A direct connection to the store's machine. Its clock advances a little with every read.
pub struct DirectStore {
    machine: Arc<Mutex<Machine>>,
    looks: AtomicU64,
}

impl DirectStore {
    pub fn new(machine: Arc<Mutex<Machine>>) -> DirectStore {
        DirectStore { machine, looks: AtomicU64::new(0) }
    }
}

impl Store for DirectStore {
    fn now(&self) -> Time {
        let looks = self.looks.fetch_add(1, Ordering::SeqCst);
        lock(&self.machine).store.tick(START.plus(Span::from_ms(looks / 8)))
    }

    fn secret(&self) -> Masked<[u8; 32]> {
        Masked::new([7; 32])
    }

    fn is_exclusive(&self) -> bool {
        false
    }

    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        let machine = lock(&self.machine);
        Ok(keys.iter().map(|key| machine.store.row(key).cloned()).collect())
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        Ok(lock(&self.machine).store.scan(&scan))
    }

    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        Ok(lock(&self.machine).store.due(due, now, limit))
    }

    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        let now = self.now();
        lock(&self.machine).store.commit(&set, now)
    }

    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        Ok(lock(&self.machine).store.committed(id))
    }

    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        Ok(lock(&self.machine).store.feed(after, limit))
    }

    async fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<AccountEntry>, ReadError> {
        Ok(lock(&self.machine).store.entries(tenant, account, page, limit))
    }

    async fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> Result<Folded, ReadError> {
        Ok(lock(&self.machine).store.fold(tenant, account, after, upto))
    }

    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        Ok(lock(&self.machine).store.tally(now))
    }

    fn settled_elsewhere(&self, _: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        None::<std::future::Ready<()>>
    }
}

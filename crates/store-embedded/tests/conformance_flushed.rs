//! The port's conformance suite on flushed rows: every read is preceded by a flush.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use counterfoil_store::{
    ChangeSet, CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, Position, ReadError, Row,
    RowKey, Scan, Store, Tally, Upto,
};
use counterfoil_store_embedded::{EmbeddedStore, Options};
use std::future::{Ready, ready};
use std::sync::Arc;
use tempfile::TempDir;

/// A store that flushes before it reads single rows, too.
#[derive(Debug)]
struct Flushed(EmbeddedStore);

impl Store for Flushed {
    fn now(&self) -> Time {
        self.0.now()
    }
    fn secret(&self) -> Masked<[u8; 32]> {
        self.0.secret()
    }
    fn is_exclusive(&self) -> bool {
        self.0.is_exclusive()
    }
    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        self.0.tally(self.0.now()).await?;
        self.0.read(keys).await
    }
    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        self.0.scan(scan).await
    }
    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        self.0.due(due, now, limit).await
    }
    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        self.0.commit(set).await
    }
    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        self.0.committed(id).await
    }
    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        self.0.feed(after, limit).await
    }
    async fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<AccountEntry>, ReadError> {
        self.0.entries(tenant, account, page, limit).await
    }
    async fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> Result<Folded, ReadError> {
        self.0.fold(tenant, account, after, upto).await
    }
    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        self.0.tally(now).await
    }
    fn settled_elsewhere(&self, claim: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        self.0.settled_elsewhere(claim)
    }
}

fn fresh() -> Ready<(Arc<Flushed>, TempDir)> {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
    ready((Arc::new(Flushed(store)), dir))
}

counterfoil_store::conformance_suite!(fresh);

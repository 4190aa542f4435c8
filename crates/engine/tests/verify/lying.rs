//! A store that returns one wrong row.

use crate::support::SharedStore;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use counterfoil_store::{
    ChangeSet, CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, Position, ReadError, Row,
    RowKey, Scan, Store, Tally, Upto,
};

/// Changes a row; `None` hides it.
type RowLie = Box<dyn Fn(Row) -> Option<Row> + Send + Sync>;
type FoldLie = Box<dyn Fn(AccountId, Folded) -> Folded + Send + Sync>;

pub(crate) struct Lying {
    store: SharedStore,
    row: RowLie,
    fold: FoldLie,
}

impl Lying {
    pub(crate) fn about_rows(
        store: &SharedStore,
        lie: impl Fn(Row) -> Option<Row> + Send + Sync + 'static,
    ) -> Lying {
        Lying { store: store.clone(), row: Box::new(lie), fold: Box::new(|_, folded| folded) }
    }

    /// Changes the sums of accounts' entries.
    pub(crate) fn about_histories(
        store: &SharedStore,
        lie: impl Fn(AccountId, Folded) -> Folded + Send + Sync + 'static,
    ) -> Lying {
        Lying { store: store.clone(), row: Box::new(Some), fold: Box::new(lie) }
    }
}

impl Store for Lying {
    fn now(&self) -> Time {
        self.store.now()
    }
    fn secret(&self) -> Masked<[u8; 32]> {
        self.store.secret()
    }
    fn is_exclusive(&self) -> bool {
        self.store.is_exclusive()
    }
    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        Ok(self.store.read(keys).await?.into_iter().map(|row| row.and_then(&self.row)).collect())
    }
    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        Ok(self.store.scan(scan).await?.into_iter().filter_map(&self.row).collect())
    }
    async fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<AccountEntry>, ReadError> {
        self.store.entries(tenant, account, page, limit).await
    }
    async fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> Result<Folded, ReadError> {
        Ok((self.fold)(account, self.store.fold(tenant, account, after, upto).await?))
    }
    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        self.store.due(due, now, limit).await
    }
    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        self.store.commit(set).await
    }
    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        self.store.committed(id).await
    }
    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        self.store.feed(after, limit).await
    }
    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        self.store.tally(now).await
    }
    fn settled_elsewhere(&self, claim: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        self.store.settled_elsewhere(claim)
    }
}

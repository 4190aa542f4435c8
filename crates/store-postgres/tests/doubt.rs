//! The conformance cases for commits in doubt, with connections that are cut at their COMMIT.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a broken promise must stop the test")]

mod support;

use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use counterfoil_store::conformance::Doubtful;
use counterfoil_store::conformance::fixtures::ledger::{BOTH, moving, opened, posted};
use counterfoil_store::conformance::fixtures::{TENANT, set};
use counterfoil_store::{
    ChangeSet, CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, Position, ReadError, Row,
    RowKey, Scan, Store, Tally, Upto,
};
use counterfoil_store_postgres::PostgresStore;
use counterfoil_testkit::postgres::Database;
use std::sync::Arc;
use support::proxy::{Cut, Proxy};
use support::{database, open, proxied};

/// A store behind a proxy that can cut its connections.
struct Cuttable {
    store: PostgresStore,
    proxy: Proxy,
}

impl Doubtful for Cuttable {
    fn doubt_next(&self, applied: bool) {
        self.proxy.cut_next(if applied { Cut::AfterCommit } else { Cut::BeforeCommit });
    }
}

async fn fresh() -> (Arc<Cuttable>, Database) {
    let database = database().await;
    let (proxy, url) = proxied(&database).await;
    let store = open(&url).await;
    (Arc::new(Cuttable { store, proxy }), database)
}

counterfoil_store::conformance_in_doubt!(fresh);

/// The preconditions of the set would admit a second commit. Only the id prevents it.
#[tokio::test]
async fn a_set_in_doubt_is_resolved_before_it_is_tried_again() {
    let shift = set(2).shift(moving(1, BOTH, posted(5)));
    for applied in [true, false] {
        let (store, _database) = fresh().await;
        store.commit(set(1).insert(opened(1, Some(0), None))).await.unwrap();
        store.doubt_next(applied);
        assert_eq!(store.commit(shift.clone()).await, Err(CommitError::InDoubt(shift.id())));
        let again = store.commit(shift.clone()).await;
        assert!(if applied { again == Err(CommitError::InDoubt(shift.id())) } else { again.is_ok() });
        assert!(store.committed(shift.id()).await.unwrap().is_some());
        let key = RowKey::Balance(TENANT, moving(1, BOTH, posted(5)).account, 0);
        let Some(Row::Balance(balance)) = store.read(vec![key]).await.unwrap().remove(0) else { panic!() };
        assert_eq!(balance.posted, 5);
    }
}

impl Store for Cuttable {
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
        self.store.read(keys).await
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        self.store.scan(scan).await
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
        self.store.fold(tenant, account, after, upto).await
    }

    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        self.store.tally(now).await
    }

    fn settled_elsewhere(&self, claim: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        self.store.settled_elsewhere(claim)
    }
}

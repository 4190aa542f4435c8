//! One store for several engines, which survives the death of a process.

use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::{AccountId, EPOCH, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::memory::MemoryStore;
use counterfoil_store::{
    ChangeSet, CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, Position, ReadError, Row,
    RowKey, Scan, Store, Tally, Upto,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

/// A process's handle of the store.
#[derive(Clone)]
pub struct SharedStore(pub Arc<MemoryStore>, Arc<Manner>);

/// The behaviour of a handle.
struct Manner {
    /// State of the random yields before every answer; zero means none.
    chance: AtomicU64,
    /// Commits left until the process of this handle dies and gets no more answers.
    life: AtomicU64,
    /// Notified at every commit, to wake waiting requests of other processes.
    bell: Option<watch::Sender<()>>,
    /// Number of reads by key.
    looks: AtomicU64,
    /// Number of commits read from the feed.
    fed: AtomicU64,
    /// Whether the store is exclusive.
    alone: AtomicBool,
}

impl SharedStore {
    pub fn new() -> SharedStore {
        let start = tokio::time::Instant::now();
        let base = EPOCH.plus(Span::from_ms(86_400_000));
        let clock = move || base.plus(Span::from_ms(u64::try_from(start.elapsed().as_millis()).unwrap()));
        SharedStore::with(Arc::new(MemoryStore::new(Arc::new(clock))), 0, None)
    }

    fn with(memory: Arc<MemoryStore>, chance: u64, bell: Option<watch::Sender<()>>) -> SharedStore {
        let life = AtomicU64::new(u64::MAX);
        let (chance, alone) = (AtomicU64::new(chance), AtomicBool::new(false));
        let (looks, fed) = (AtomicU64::new(0), AtomicU64::new(0));
        let manner = Manner { chance, life, bell, looks, fed, alone };
        SharedStore(memory, Arc::new(manner))
    }

    /// Handles for two processes that wake each other.
    pub fn waking(&self) -> [SharedStore; 2] {
        let bell = watch::Sender::new(());
        [bell.clone(), bell].map(|bell| SharedStore::with(Arc::clone(&self.0), 0, Some(bell)))
    }

    /// Number of reads by key through this handle.
    pub fn looks(&self) -> u64 {
        self.1.looks.load(Ordering::SeqCst)
    }

    /// Number of commits read from the feed through this handle.
    pub fn fed(&self) -> u64 {
        self.1.fed.load(Ordering::SeqCst)
    }

    /// The same handle to an exclusive store.
    pub fn alone(self) -> SharedStore {
        self.1.alone.store(true, Ordering::SeqCst);
        self
    }

    /// A handle for another process.
    pub fn another(&self) -> SharedStore {
        SharedStore::with(Arc::clone(&self.0), 0, None)
    }

    /// A handle with random yields, so that tasks interleave in many ways.
    pub fn jumpy(&self, seed: u64) -> SharedStore {
        SharedStore::with(Arc::clone(&self.0), seed | 1, None)
    }

    /// Kills the process of this handle after this many more commits.
    pub fn dies_after(&self, commits: u64) {
        self.1.life.store(commits, Ordering::SeqCst);
    }

    /// Number of waiting requests in all processes that wake each other.
    pub fn sleepers(&self) -> usize {
        self.1.bell.as_ref().map_or(0, watch::Sender::receiver_count)
    }

    async fn turn(&self) {
        if self.1.life.load(Ordering::SeqCst) == 0 {
            std::future::pending::<()>().await;
        }
        let seed = self.1.chance.load(Ordering::Relaxed);
        if seed == 0 {
            return;
        }
        let mut next = seed;
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        self.1.chance.store(next, Ordering::Relaxed);
        for _ in 0..next % 4 {
            tokio::task::yield_now().await;
        }
    }
}

impl Store for SharedStore {
    fn now(&self) -> Time {
        self.0.now()
    }
    fn secret(&self) -> Masked<[u8; 32]> {
        self.0.secret()
    }
    fn is_exclusive(&self) -> bool {
        self.1.alone.load(Ordering::SeqCst)
    }
    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        self.turn().await;
        self.1.looks.fetch_add(1, Ordering::SeqCst);
        self.0.read(keys).await
    }
    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        self.turn().await;
        self.0.scan(scan).await
    }
    async fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<AccountEntry>, ReadError> {
        self.turn().await;
        self.0.entries(tenant, account, page, limit).await
    }
    async fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> Result<Folded, ReadError> {
        self.turn().await;
        self.0.fold(tenant, account, after, upto).await
    }
    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        self.turn().await;
        self.0.due(due, now, limit).await
    }
    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        self.turn().await;
        if self.1.life.load(Ordering::SeqCst) != u64::MAX {
            self.1.life.fetch_sub(1, Ordering::SeqCst);
        }
        let committed = self.0.commit(set).await;
        if let Some(bell) = &self.1.bell {
            bell.send_replace(());
        }
        committed
    }
    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        self.turn().await;
        self.0.committed(id).await
    }
    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        self.turn().await;
        let commits = self.0.feed(after, limit).await?;
        self.1.fed.fetch_add(u64::try_from(commits.len()).unwrap(), Ordering::SeqCst);
        Ok(commits)
    }
    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        self.turn().await;
        self.0.tally(now).await
    }
    fn settled_elsewhere(&self, _: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        let mut bell = self.1.bell.as_ref()?.subscribe();
        Some(async move {
            let _ = bell.changed().await;
        })
    }
}

//! The simulated store of all processes. The network delays messages and may lose answers, but
//! neither loses nor repeats requests. Commits run on the store's own machine, so they survive the
//! process that sent them.

mod damage;
mod direct;
mod simulated;

pub use direct::DirectStore;
pub use simulated::{Applied, SimulatedStore, TENANTS};

use crate::bank::Bug;
use crate::chance::Chance;
use crate::executor::{Executor, OUTSIDE, lock};
use crate::faults::{Fault, Faults, Site};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::{
    ChangeSet, CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, Position, ReadError, Row,
    RowKey, Scan, Store, Tally, Upto,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// The store's clock at the start of a run.
pub const START: Time = Time::from_ms(1_800_000_000_000);

/// The store's machine, shared by all processes.
pub struct Machine {
    pub store: SimulatedStore,
    /// Sets that were reported as in doubt and are not committed yet.
    in_flight: BTreeSet<SetId>,
    /// End of the store's outage.
    pub down_until: u64,
}

/// One process's connection to the store.
#[derive(Clone)]
pub struct StoreClient {
    machine: Arc<Mutex<Machine>>,
    faults: Arc<Mutex<Faults>>,
    executor: Executor,
    /// Longest delay of a message without faults.
    latency: u64,
    exclusive: bool,
    /// Offset of this process's view of the store's clock. Only a planted bug sets it.
    skew: u64,
    bug: Option<Bug>,
}

impl Machine {
    pub fn new(bug: Option<Bug>) -> Machine {
        let mut store = SimulatedStore::default();
        store.bug = bug;
        Machine { store, in_flight: BTreeSet::new(), down_until: 0 }
    }
}

impl StoreClient {
    pub fn new(
        machine: Arc<Mutex<Machine>>,
        faults: Arc<Mutex<Faults>>,
        executor: Executor,
        latency: u64,
        exclusive: bool,
        bug: Option<(Bug, u64)>,
    ) -> StoreClient {
        let skew = match bug {
            Some((Bug::ClockSkewed, process)) => process.saturating_mul(90_000),
            _ => 0,
        };
        StoreClient { machine, faults, executor, latency, exclusive, skew, bug: bug.map(|(bug, _)| bug) }
    }

    fn clock(&self) -> Time {
        let now = self.executor.now();
        let moved = match self.bug {
            // A wall clock that is sometimes set forward by two hours.
            Some(Bug::ClockJumps) => (now / 40_000).saturating_mul(7_200_000),
            Some(Bug::ClockGoesBack) if (now / 20_000) % 2 == 1 => return START.plus(Span::from_ms(now / 2)),
            _ => self.skew,
        };
        START.plus(Span::from_ms(now.saturating_add(moved)))
    }

    fn is_down(&self) -> bool {
        lock(&self.machine).down_until > self.executor.now()
    }

    /// Reads from the store, with the delays and faults of a read.
    async fn ask<T>(&self, question: impl FnOnce(&SimulatedStore) -> T + Send) -> Result<T, ReadError> {
        let (fault, mut chance) = lock(&self.faults).at(Site::Read);
        let before = match fault {
            Some(Fault::ReadSlow) => chance.between(100, 20_000),
            _ => chance.between(0, self.latency),
        };
        self.executor.sleep(before).await;
        if self.is_down() || fault == Some(Fault::ReadUnavailable) {
            return Err(ReadError("the store cannot be reached".into()));
        }
        let answer = question(&lock(&self.machine).store);
        if chance.percent(50) {
            // The answer may be stale when it arrives.
            self.executor.sleep(chance.between(0, self.latency)).await;
        }
        Ok(answer)
    }

    fn apply(&self, set: &ChangeSet) -> Result<CommitReceipt, CommitError> {
        let at = self.clock();
        let mut machine = lock(&self.machine);
        let at = machine.store.tick(at);
        let result = match self.bug {
            Some(bug) => damage::commit(bug, &mut machine.store, set, at),
            None => machine.store.commit(set, at),
        };
        drop(machine);
        let word = match &result {
            Ok(receipt) => receipt.position.0,
            Err(_) => u64::MAX,
        };
        self.executor.note(&[2, set.id().to_i64().unsigned_abs(), word]);
        result
    }

    /// Runs a commit on the store's side and sends the answer.
    async fn serve(
        self,
        set: ChangeSet,
        fault: Option<Fault>,
        mut chance: Chance,
        answer: oneshot::Sender<CommitResult>,
    ) {
        let slow = chance.between(1_000, 60_000);
        let (there, back) = match fault {
            Some(Fault::CommitSlow) => (slow, 0),
            Some(Fault::AckSlow) => (0, slow),
            _ => (chance.between(0, self.latency), chance.between(0, self.latency)),
        };
        self.executor.sleep(there).await;
        let failed = match fault {
            Some(Fault::Conflict) => Some(CommitError::Conflict),
            Some(Fault::Throttle) => Some(CommitError::Throttled),
            Some(Fault::CommitUnavailable) => {
                Some(CommitError::Unavailable("the store cannot be reached".into()))
            }
            Some(Fault::DoubtBefore) => Some(CommitError::InDoubt(set.id())),
            _ if self.is_down() => Some(CommitError::Unavailable("the store is away".into())),
            _ => None,
        };
        if let Some(failed) = failed {
            let _ = answer.send(Err(failed));
            return;
        }
        if fault == Some(Fault::DoubtLate) {
            lock(&self.machine).in_flight.insert(set.id());
            let _ = answer.send(Err(CommitError::InDoubt(set.id())));
            self.executor.sleep(slow).await;
            let _ = self.apply(&set);
            lock(&self.machine).in_flight.remove(&set.id());
            return;
        }
        let applied = self.apply(&set);
        self.executor.sleep(back).await;
        let reported = match applied {
            Ok(_) if fault == Some(Fault::DoubtAfter) => Err(CommitError::InDoubt(set.id())),
            applied => applied,
        };
        let _ = answer.send(reported);
    }
}

type CommitResult = Result<CommitReceipt, CommitError>;

impl Store for StoreClient {
    fn now(&self) -> Time {
        let now = self.clock();
        lock(&self.machine).store.tick(now)
    }

    fn secret(&self) -> Masked<[u8; 32]> {
        Masked::new([7; 32])
    }

    fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        let bug = self.bug;
        self.ask(|store| keys.iter().map(|key| damage::read(bug, store, key)).collect()).await
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        self.ask(|store| store.scan(&scan)).await
    }

    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        let bug = self.bug;
        self.ask(|store| damage::due(bug, store, due, now, limit)).await
    }

    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        let (fault, chance) = lock(&self.faults).at(Site::Commit);
        let (sender, answer) = oneshot::channel();
        let id = set.id();
        let machine = self.clone();
        self.executor.spawn(OUTSIDE, machine.serve(set, fault, chance, sender));
        answer.await.unwrap_or(Err(CommitError::InDoubt(id)))
    }

    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        if self.bug == Some(Bug::DoubtSaysYes) {
            return Ok(Some(CommitReceipt { position: Position(1), at: self.clock() }));
        }
        let receipt = self.ask(|store| store.committed(id)).await?;
        let hidden = lock(&self.machine).in_flight.contains(&id);
        if receipt.is_none() && hidden {
            return Err(ReadError("the set may still be under way".into()));
        }
        // The set may have been committed since the lookup.
        Ok(receipt.or_else(|| lock(&self.machine).store.committed(id)))
    }

    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        self.ask(|store| store.feed(after, limit)).await
    }

    async fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<AccountEntry>, ReadError> {
        self.ask(|store| store.entries(tenant, account, page, limit)).await
    }

    async fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> Result<Folded, ReadError> {
        let bug = self.bug;
        self.ask(|store| damage::fold(bug, store, (tenant, account), after, upto)).await
    }

    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        self.ask(|store| store.tally(now)).await
    }

    fn settled_elsewhere(&self, _: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        None::<std::future::Ready<()>>
    }
}

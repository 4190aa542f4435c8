//! The simulated store: one shelf for all processes, reached over a network that delays, loses and repeats nothing
//! but may lose an answer. Commits run on the store's own machine: a process that dies does not take them back.

mod damage;
mod shelf;
mod still;

pub use shelf::{Applied, Shelf, TENANTS};
pub use still::Still;

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

/// What all processes share.
pub struct Machine {
    /// The rows.
    pub shelf: Shelf,
    /// Sets whose commit is under way though their author was told nothing.
    in_flight: BTreeSet<SetId>,
    /// The store answers nobody before this instant.
    pub down_until: u64,
}

/// One process's connection to the store.
#[derive(Clone)]
pub struct SimStore {
    machine: Arc<Mutex<Machine>>,
    faults: Arc<Mutex<Faults>>,
    executor: Executor,
    /// Longest ordinary delay of a message.
    latency: u64,
    exclusive: bool,
    /// How far this process believes the store's clock to be ahead; none but a broken store has that.
    skew: u64,
    bug: Option<Bug>,
}

impl Machine {
    /// An empty store.
    pub fn new(bug: Option<Bug>) -> Machine {
        let mut shelf = Shelf::default();
        shelf.bug = bug;
        Machine { shelf, in_flight: BTreeSet::new(), down_until: 0 }
    }
}

impl SimStore {
    /// A connection.
    pub fn new(
        machine: Arc<Mutex<Machine>>,
        faults: Arc<Mutex<Faults>>,
        executor: Executor,
        latency: u64,
        exclusive: bool,
        bug: Option<(Bug, u64)>,
    ) -> SimStore {
        let skew = match bug {
            Some((Bug::ClockSkewed, process)) => process.saturating_mul(90_000),
            _ => 0,
        };
        SimStore { machine, faults, executor, latency, exclusive, skew, bug: bug.map(|(bug, _)| bug) }
    }

    fn clock(&self) -> Time {
        let now = self.executor.now();
        let moved = match self.bug {
            // A wall clock that is set forward by two hours now and then.
            Some(Bug::ClockJumps) => (now / 40_000).saturating_mul(7_200_000),
            Some(Bug::ClockGoesBack) if (now / 20_000) % 2 == 1 => return START.plus(Span::from_ms(now / 2)),
            _ => self.skew,
        };
        START.plus(Span::from_ms(now.saturating_add(moved)))
    }

    fn is_down(&self) -> bool {
        lock(&self.machine).down_until > self.executor.now()
    }

    /// Asks the shelf, with the delays and failures of a read.
    async fn ask<T>(&self, question: impl FnOnce(&Shelf) -> T + Send) -> Result<T, ReadError> {
        let (fault, mut chance) = lock(&self.faults).at(Site::Read);
        let before = match fault {
            Some(Fault::ReadSlow) => chance.between(100, 20_000),
            _ => chance.between(0, self.latency),
        };
        self.executor.sleep(before).await;
        if self.is_down() || fault == Some(Fault::ReadUnavailable) {
            return Err(ReadError("the store cannot be reached".into()));
        }
        let answer = question(&lock(&self.machine).shelf);
        if chance.percent(50) {
            // What was read may be old when it arrives.
            self.executor.sleep(chance.between(0, self.latency)).await;
        }
        Ok(answer)
    }

    fn apply(&self, set: &ChangeSet) -> Result<CommitReceipt, CommitError> {
        let at = self.clock();
        let mut machine = lock(&self.machine);
        let at = machine.shelf.tick(at);
        let result = match self.bug {
            Some(bug) => damage::commit(bug, &mut machine.shelf, set, at),
            None => machine.shelf.commit(set, at),
        };
        drop(machine);
        let word = match &result {
            Ok(receipt) => receipt.position.0,
            Err(_) => u64::MAX,
        };
        self.executor.note(&[2, set.id().to_i64().unsigned_abs(), word]);
        result
    }

    /// What happens to a commit on the store's side, and what its author hears.
    async fn serve(
        self,
        set: ChangeSet,
        fault: Option<Fault>,
        mut chance: Chance,
        answer: oneshot::Sender<Answered>,
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
        let told = match applied {
            Ok(_) if fault == Some(Fault::DoubtAfter) => Err(CommitError::InDoubt(set.id())),
            told => told,
        };
        let _ = answer.send(told);
    }
}

type Answered = Result<CommitReceipt, CommitError>;

impl Store for SimStore {
    fn now(&self) -> Time {
        let now = self.clock();
        lock(&self.machine).shelf.tick(now)
    }

    fn secret(&self) -> Masked<[u8; 32]> {
        Masked::new([7; 32])
    }

    fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        let bug = self.bug;
        self.ask(|shelf| keys.iter().map(|key| damage::read(bug, shelf, key)).collect()).await
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        self.ask(|shelf| shelf.scan(&scan)).await
    }

    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        let bug = self.bug;
        self.ask(|shelf| damage::due(bug, shelf, due, now, limit)).await
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
        let receipt = self.ask(|shelf| shelf.committed(id)).await?;
        let hidden = lock(&self.machine).in_flight.contains(&id);
        if receipt.is_none() && hidden {
            return Err(ReadError("the set may still be under way".into()));
        }
        // It was looked up a moment ago, and may have been committed since.
        Ok(receipt.or_else(|| lock(&self.machine).shelf.committed(id)))
    }

    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        self.ask(|shelf| shelf.feed(after, limit)).await
    }

    async fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<AccountEntry>, ReadError> {
        self.ask(|shelf| shelf.entries(tenant, account, page, limit)).await
    }

    async fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> Result<Folded, ReadError> {
        let bug = self.bug;
        self.ask(|shelf| damage::fold(bug, shelf, (tenant, account), after, upto)).await
    }

    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        self.ask(|shelf| shelf.tally(now)).await
    }

    fn settled_elsewhere(&self, _: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        None::<std::future::Ready<()>>
    }
}

//! The reference store: rows in memory under one lock. This store defines the port's meaning and
//! serves tests. Its contents end with the process. Tests can inject every failure that the port
//! allows.

use crate::change::{Change, ChangeSet};
use crate::judge::Image;
use crate::port::{
    CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, Position, ReadError, STUCK_AFTER, Scan,
    Store, Tally, Upto,
};
use crate::row::{Row, RowKey};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::types::id::{AccountId, SetId, TenantId};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::time::Time;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The source of a memory store's time.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

pub struct MemoryStore {
    clock: Clock,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    rows: BTreeMap<RowKey, Row>,
    log: Vec<Committed>,
    /// Entries in commit order, with their tenants.
    journal: Vec<(TenantId, AccountEntry)>,
    sets: HashMap<SetId, CommitReceipt>,
    faults: VecDeque<MemoryFault>,
    down: bool,
    sets_hidden: bool,
    latest: Option<Time>,
}

/// An injected fault of the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFault {
    /// The set is written, but the caller gets "in doubt".
    DoubtAfter,
    /// The set is not written, and the caller gets "in doubt".
    DoubtBefore,
    /// The commit fails with a conflict.
    Conflict,
    /// The commit is refused as throttled.
    Throttle,
    /// The commit succeeds; placed before a fault of a later commit.
    Pass,
}

impl MemoryStore {
    /// An empty store on `clock`.
    pub fn new(clock: Clock) -> MemoryStore {
        MemoryStore { clock, shared: Mutex::default() }
    }

    /// Queues one fault per commit.
    pub fn fail_next(&self, faults: &[MemoryFault]) {
        self.lock().faults.extend(faults);
    }

    /// Makes the store unavailable, or available again.
    pub fn set_down(&self, down: bool) {
        self.lock().down = down;
    }

    /// Makes [`Store::committed`] fail, or work again.
    pub fn hide_sets(&self, hidden: bool) {
        self.lock().sets_hidden = hidden;
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic under the lock can only come from the allocator, so the rows are intact.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readable(&self) -> Result<MutexGuard<'_, Shared>, ReadError> {
        let shared = self.lock();
        if shared.down { Err(ReadError("the memory store was cut off".into())) } else { Ok(shared) }
    }
}

impl Shared {
    fn commit(&mut self, set: &ChangeSet, at: Time) -> Result<CommitReceipt, CommitError> {
        let mut image = Image::default();
        for key in set.changes().iter().map(Change::key) {
            let row = self.rows.get(&key).cloned();
            image.bring(key, row);
        }
        image.admit(set).map_err(CommitError::Refused)?;
        let position = Position(u64::try_from(self.log.len()).unwrap_or(u64::MAX).saturating_add(1));
        let receipt = CommitReceipt { position, at };
        for key in set.changes().iter().map(Change::key) {
            match image.get(&key) {
                Some(row) => self.rows.insert(key, row.clone()),
                None => self.rows.remove(&key),
            };
        }
        self.journal.extend(entries(set, receipt));
        let touched = set.changes().iter().map(Change::key).collect();
        self.log.push(Committed { receipt, set: set.id(), touched });
        self.sets.insert(set.id(), receipt);
        Ok(receipt)
    }
}

impl Shared {
    fn of(&self, tenant: TenantId, account: AccountId) -> impl DoubleEndedIterator<Item = &AccountEntry> {
        let own =
            self.journal.iter().filter(move |(owner, entry)| (*owner, entry.account) == (tenant, account));
        own.map(|(_, entry)| entry)
    }
}

impl Store for MemoryStore {
    fn now(&self) -> Time {
        let mut shared = self.lock();
        let now = (self.clock)().max(shared.latest.unwrap_or(Time::EPOCH));
        shared.latest = Some(now);
        now
    }

    fn secret(&self) -> Masked<[u8; 32]> {
        Masked::new([7; 32])
    }

    fn is_exclusive(&self) -> bool {
        false
    }

    async fn read(&self, keys: Vec<RowKey>) -> Result<Vec<Option<Row>>, ReadError> {
        let shared = self.readable()?;
        Ok(keys.iter().map(|key| shared.rows.get(key).cloned()).collect())
    }

    async fn scan(&self, scan: Scan) -> Result<Vec<Row>, ReadError> {
        let shared = self.readable()?;
        let mut rows: Vec<&Row> = shared.rows.values().filter(|row| is_in(&scan, row)).collect();
        let limit = match scan {
            Scan::Claims { limit, .. } => {
                rows.sort_by_key(|row| if let Row::Claim(claim) = row { Some(claim.subject) } else { None });
                limit.min(SCAN_MAX)
            }
            Scan::ChargesOf { limit, .. }
            | Scan::RefundsOf { limit, .. }
            | Scan::PayoutsOf { limit, .. }
            | Scan::ParkedOf { limit, .. }
            | Scan::AccountsOf { limit, .. }
            | Scan::TransactionsOf { limit, .. }
            | Scan::Snapshots { limit, .. } => {
                rows.reverse();
                limit.min(SCAN_MAX)
            }
            Scan::Timeline { limit, .. }
            | Scan::Charges { limit, .. }
            | Scan::OperationsOn { limit, .. }
            | Scan::Operations { limit, .. }
            | Scan::Payouts { limit, .. }
            | Scan::Outbox { limit, .. }
            | Scan::DoubtOn { limit, .. }
            | Scan::Accounts { limit, .. }
            | Scan::Transactions { limit, .. }
            | Scan::Balances { limit, .. }
            | Scan::Holds { limit, .. } => limit.min(SCAN_MAX),
            Scan::AssetsOf { .. } | Scan::Tenants | Scan::ApiKeys | Scan::Slots => usize::MAX,
        };
        Ok(rows.into_iter().take(limit).cloned().collect())
    }

    async fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Result<Vec<AccountEntry>, ReadError> {
        let shared = self.readable()?;
        let own = shared.of(tenant, account);
        let limit = limit.min(SCAN_MAX);
        Ok(match page {
            EntryPage::After(position) => {
                own.filter(|entry| entry.position > position).take(limit).copied().collect()
            }
            EntryPage::Before(None) => own.rev().take(limit).copied().collect(),
            EntryPage::Before(Some(mark)) => own
                .rev()
                .skip_while(|entry| (entry.transaction, entry.leg) != mark)
                .skip(1)
                .take(limit)
                .copied()
                .collect(),
        })
    }

    async fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> Result<Folded, ReadError> {
        let shared = self.readable()?;
        let mut folded = Folded::default();
        for entry in shared.of(tenant, account).filter(|entry| entry.position > after) {
            let receipt = CommitReceipt { position: entry.position, at: entry.at };
            if upto.includes(receipt) {
                folded.totals = folded.totals.plus(entry.side, entry.layer, entry.amount);
                folded.last = Some(receipt);
            }
        }
        Ok(folded)
    }

    async fn due(&self, due: Due, now: Time, limit: usize) -> Result<Vec<Row>, ReadError> {
        let shared = self.readable()?;
        let when = |row: &Row| match (due, row) {
            (Due::Outbox, Row::Outbox(outbox)) if outbox.parked.is_none() => Some(outbox.due_at),
            (Due::Claims, Row::Claim(claim)) => claim.sweep_at(),
            (Due::Holds, Row::Hold(hold)) => hold.lapses_at(),
            _ => None,
        };
        let mut rows: Vec<(Time, Row)> = shared
            .rows
            .values()
            .filter_map(|row| Some((when(row)?, row.clone())))
            .filter(|(at, _)| *at <= now)
            .collect();
        rows.sort_by_key(|(at, _)| *at);
        Ok(rows.into_iter().map(|(_, row)| row).take(limit.min(SCAN_MAX)).collect())
    }

    async fn commit(&self, set: ChangeSet) -> Result<CommitReceipt, CommitError> {
        let mut shared = self.lock();
        let at = (self.clock)().max(shared.latest.unwrap_or(Time::EPOCH));
        shared.latest = Some(at);
        if shared.down {
            return Err(CommitError::Unavailable("the memory store was cut off".into()));
        }
        match shared.faults.pop_front() {
            None | Some(MemoryFault::Pass) => shared.commit(&set, at),
            Some(MemoryFault::DoubtAfter) => {
                shared.commit(&set, at)?;
                Err(CommitError::InDoubt(set.id()))
            }
            Some(MemoryFault::DoubtBefore) => Err(CommitError::InDoubt(set.id())),
            Some(MemoryFault::Conflict) => Err(CommitError::Conflict),
            Some(MemoryFault::Throttle) => Err(CommitError::Throttled),
        }
    }

    async fn committed(&self, id: SetId) -> Result<Option<CommitReceipt>, ReadError> {
        let shared = self.readable()?;
        if shared.sets_hidden {
            return Err(ReadError("the memory store hides its sets".into()));
        }
        Ok(shared.sets.get(&id).copied())
    }

    async fn feed(&self, after: Position, limit: usize) -> Result<Vec<Committed>, ReadError> {
        let shared = self.readable()?;
        Ok(shared
            .log
            .iter()
            .filter(|entry| entry.receipt.position > after)
            .take(limit.min(SCAN_MAX))
            .cloned()
            .collect())
    }

    async fn tally(&self, now: Time) -> Result<Tally, ReadError> {
        let shared = self.readable()?;
        let mut tally = Tally::default();
        for row in shared.rows.values() {
            let Row::Outbox(outbox) = row else { continue };
            if outbox.parked.is_some() {
                tally.parked = tally.parked.saturating_add(1);
                continue;
            }
            let late = now.since(outbox.due_at);
            tally.pending = tally.pending.saturating_add(1);
            tally.stuck = tally.stuck.saturating_add(u64::from(late > STUCK_AFTER));
            tally.lag_ms = tally.lag_ms.max(late.ms());
        }
        Ok(tally)
    }

    fn settled_elsewhere(&self, _: ClaimId) -> Option<impl Future<Output = ()> + Send> {
        None::<std::future::Ready<()>>
    }
}

/// The entries of a set's transactions, ordered by transaction and leg.
fn entries(set: &ChangeSet, receipt: CommitReceipt) -> Vec<(TenantId, AccountEntry)> {
    let mut entries: Vec<(TenantId, AccountEntry)> = Vec::new();
    for change in set.changes() {
        if let Change::Insert(row) = change
            && let Row::Transaction(transaction) = &**row
        {
            let own = transaction.entries(receipt.position, receipt.at);
            entries.extend(own.map(|entry| (transaction.tenant, entry)));
        }
    }
    entries.sort_unstable_by_key(|(_, entry)| (entry.transaction, entry.leg));
    entries
}

fn is_in(scan: &Scan, row: &Row) -> bool {
    match (scan, row) {
        (Scan::ChargesOf { tenant, before, .. }, Row::Charge(charge)) => {
            charge.tenant == *tenant && before.is_none_or(|before| charge.id < before)
        }
        (Scan::Timeline { tenant, subject, after, .. }, Row::Audit(record)) => {
            (record.tenant, record.subject) == (*tenant, *subject)
                && after.is_none_or(|after| record.id > after)
        }
        (Scan::Claims { after, .. }, Row::Claim(claim)) => {
            after.is_none_or(|(.., after)| claim.subject > after)
        }
        (Scan::Charges { after, .. }, Row::Charge(charge)) => {
            after.is_none_or(|after| (charge.tenant, charge.id) > after)
        }
        (Scan::OperationsOn { tenant, charge, after, .. }, Row::Operation(operation)) => {
            (operation.tenant, operation.charge) == (*tenant, *charge)
                && after.is_none_or(|after| operation.id > after)
        }
        (Scan::RefundsOf { tenant, before, .. }, Row::Operation(operation)) => {
            operation.tenant == *tenant
                && operation.kind == OperationKind::Refund
                && before.is_none_or(|before| operation.id < before)
        }
        (Scan::Operations { after, .. }, Row::Operation(operation)) => {
            after.is_none_or(|after| (operation.tenant, operation.id) > after)
        }
        (Scan::PayoutsOf { tenant, before, .. }, Row::Payout(payout)) => {
            payout.tenant == *tenant && before.is_none_or(|before| payout.id < before)
        }
        (Scan::Payouts { after, .. }, Row::Payout(payout)) => {
            after.is_none_or(|after| (payout.tenant, payout.id) > after)
        }
        (Scan::Outbox { after, .. }, Row::Outbox(outbox)) => {
            after.is_none_or(|after| (outbox.tenant, outbox.id) > after)
        }
        (Scan::DoubtOn { payment, .. }, Row::Outbox(outbox)) => {
            outbox.payment == *payment && outbox.history.unknown
        }
        (Scan::ParkedOf { tenant, before, .. }, Row::Outbox(outbox)) => {
            outbox.tenant == *tenant
                && outbox.parked.is_some()
                && before.is_none_or(|before| outbox.id < before)
        }
        (Scan::AccountsOf { tenant, before, .. }, Row::Account(account)) => {
            account.tenant == *tenant && before.is_none_or(|before| account.id < before)
        }
        (Scan::AssetsOf { tenant }, Row::Asset(definition)) => definition.tenant == *tenant,
        (Scan::TransactionsOf { tenant, before, .. }, Row::Transaction(transaction)) => {
            transaction.tenant == *tenant && before.is_none_or(|before| transaction.id < before)
        }
        (Scan::Snapshots { tenant, account, upto, .. }, Row::Snapshot(snapshot)) => {
            let receipt = CommitReceipt { position: snapshot.position, at: snapshot.at };
            (snapshot.tenant, snapshot.account) == (*tenant, *account) && upto.includes(receipt)
        }
        (Scan::Accounts { after, .. }, Row::Account(account)) => {
            after.is_none_or(|after| (account.tenant, account.id) > after)
        }
        (Scan::Transactions { after, .. }, Row::Transaction(transaction)) => {
            after.is_none_or(|after| (transaction.tenant, transaction.id) > after)
        }
        (Scan::Balances { after, .. }, Row::Balance(balance)) => {
            after.is_none_or(|after| (balance.tenant, balance.account, balance.shard) > after)
        }
        (Scan::Holds { after, .. }, Row::Hold(hold)) => {
            after.is_none_or(|after| (hold.tenant, hold.id) > after)
        }
        (Scan::Tenants, Row::Tenant(_)) | (Scan::ApiKeys, Row::ApiKey(_)) | (Scan::Slots, Row::Slot(_)) => {
            true
        }
        _ => false,
    }
}

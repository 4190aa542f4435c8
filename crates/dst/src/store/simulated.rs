//! The state of the simulated store: rows, judged by the real judge, and every commit with the
//! replaced rows. Checks can inspect every prefix of the history.

use crate::bank::Bug;
use crate::store::damage;
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::AccountEntry;
use counterfoil_core::payments::operation::OperationKind;
use counterfoil_core::types::id::{
    AccountId, ChargeId, HoldId, OperationId, PayoutId, SetId, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::limits::SCAN_MAX;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::judge::Image;
use counterfoil_store::{
    Change, ChangeSet, CommitError, CommitReceipt, Committed, Due, EntryPage, Folded, Position, Row, RowKey,
    Scan, Tally, Upto,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// The tenants of the simulated store.
pub const TENANTS: [TenantId; 2] = [TenantId::from_i64(1), TenantId::from_i64(2)];

/// The rows, their indexes and their history.
#[derive(Default)]
pub struct SimulatedStore {
    rows: BTreeMap<RowKey, Arc<Row>>,
    due: [BTreeSet<(Time, RowKey)>; 3],
    claims: BTreeSet<(SubjectId, ClaimId, TenantId)>,
    leases: usize,
    history: Vec<Applied>,
    journal: BTreeMap<(TenantId, AccountId), Vec<AccountEntry>>,
    sets: BTreeMap<SetId, CommitReceipt>,
    latest: Option<Time>,
    /// The planted bug, if any.
    pub bug: Option<Bug>,
}

/// A commit with the rows before and after it.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The commit as in the feed.
    pub committed: Committed,
    /// Rows before the commit, in the order of the changes.
    pub before: Vec<Option<Arc<Row>>>,
    /// Rows after the commit, in the same order.
    pub after: Vec<Option<Arc<Row>>>,
}

impl Applied {
    /// The written rows.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.after.iter().flatten().map(Arc::as_ref)
    }

    /// Each change as the row before and the row after.
    pub fn changes(&self) -> impl Iterator<Item = (Option<&Row>, Option<&Row>)> {
        self.before.iter().zip(&self.after).map(|(before, after)| (before.as_deref(), after.as_deref()))
    }
}

impl SimulatedStore {
    /// A monotonic version of `now`.
    pub fn tick(&mut self, now: Time) -> Time {
        let now =
            if self.bug == Some(Bug::ClockGoesBack) { now } else { now.max(self.latest.unwrap_or(now)) };
        self.latest = Some(now);
        now
    }

    /// Every commit so far.
    pub fn history(&self) -> &[Applied] {
        &self.history
    }

    /// Every current row.
    pub fn rows(&self) -> &BTreeMap<RowKey, Arc<Row>> {
        &self.rows
    }

    /// Takes out all current rows and all commits.
    pub fn take(&mut self) -> (BTreeMap<RowKey, Arc<Row>>, Vec<Applied>) {
        (std::mem::take(&mut self.rows), std::mem::take(&mut self.history))
    }

    /// Every charge, by tenant.
    pub fn charges(&self) -> impl Iterator<Item = &Row> {
        self.all(RowKey::Charge, ChargeId::from_i64)
    }

    /// Every payout, by tenant.
    pub fn payouts(&self) -> impl Iterator<Item = &Row> {
        self.all(RowKey::Payout, PayoutId::from_i64)
    }

    /// Every outbox row, by tenant.
    pub fn work(&self) -> impl Iterator<Item = &Row> {
        self.all(RowKey::Outbox, SubjectId::from_i64)
    }

    /// Number of leased claims.
    pub fn leases(&self) -> usize {
        self.leases
    }

    pub fn row(&self, key: &RowKey) -> Option<&Row> {
        self.rows.get(key).map(Arc::as_ref)
    }

    /// Finds a row by id. `key` builds the key for each tenant; ids are unique over all tenants.
    pub fn find_row(&self, key: impl Fn(TenantId) -> RowKey) -> Option<&Row> {
        TENANTS.iter().find_map(|tenant| self.row(&key(*tenant)))
    }

    /// Commits the whole set or nothing.
    pub fn commit(&mut self, set: &ChangeSet, at: Time) -> Result<CommitReceipt, CommitError> {
        let mut image = Image::default();
        let keys: Vec<RowKey> = set.changes().iter().map(Change::key).collect();
        let before: Vec<Option<Arc<Row>>> = keys.iter().map(|key| self.rows.get(key).cloned()).collect();
        for (key, row) in keys.iter().zip(&before) {
            image.bring(key.clone(), row.clone());
        }
        let mistaken = self.bug.and_then(|bug| damage::judge(bug, set, &owned(&before)));
        let after: Vec<Option<Arc<Row>>> = if let Some(after) = mistaken {
            shared(after)
        } else {
            image.admit(set).map_err(CommitError::Refused)?;
            let changes = set.changes().iter().zip(&keys);
            changes
                .map(|(change, key)| match change {
                    Change::Insert(row) | Change::Replace { row, .. } => Some(Arc::clone(row)),
                    Change::Remove { .. } => None,
                    Change::Move(_) => image.get(key).cloned().map(Arc::new),
                })
                .collect()
        };
        let number = u64::try_from(self.history.len()).unwrap_or(u64::MAX).saturating_add(1);
        let receipt = CommitReceipt { position: Position(number), at };
        let after = match self.bug {
            Some(bug) => shared(damage::tear(bug, number, set, &owned(&before), owned(&after))),
            None => after,
        };
        for (key, row) in keys.iter().zip(&after) {
            self.put(key, row.clone());
        }
        self.enter(set, &after, receipt);
        self.history.push(Applied {
            committed: Committed { receipt, set: set.id(), touched: keys },
            before,
            after,
        });
        self.sets.insert(set.id(), receipt);
        Ok(receipt)
    }

    /// Replaces a row and updates the indexes.
    fn put(&mut self, key: &RowKey, row: Option<Arc<Row>>) {
        let old = match row.clone() {
            Some(row) => self.rows.insert(key.clone(), row),
            None => self.rows.remove(key),
        };
        if let Some(old) = old {
            self.index(key, &old, false);
        }
        if let Some(row) = row {
            self.index(key, &row, true);
        }
    }

    fn index(&mut self, key: &RowKey, row: &Row, present: bool) {
        let (kind, at) = match row {
            Row::Outbox(outbox) if outbox.parked.is_none() => (0, Some(outbox.due_at)),
            Row::Claim(claim) => {
                let place = (claim.subject, claim.id, claim.tenant);
                let held = usize::from(claim.state.lease().is_some());
                if present {
                    self.claims.insert(place);
                    self.leases = self.leases.saturating_add(held);
                } else {
                    self.claims.remove(&place);
                    self.leases = self.leases.saturating_sub(held);
                }
                (1, claim.sweep_at())
            }
            Row::Hold(hold) => (2, hold.lapses_at()),
            _ => (0, None),
        };
        if let (Some(at), Some(index)) = (at, self.due.get_mut(kind)) {
            if present {
                index.insert((at, key.clone()))
            } else {
                index.remove(&(at, key.clone()))
            };
        }
    }

    fn enter(&mut self, set: &ChangeSet, after: &[Option<Arc<Row>>], receipt: CommitReceipt) {
        let mut entries: Vec<(TenantId, AccountEntry)> = Vec::new();
        for (change, row) in set.changes().iter().zip(after) {
            if let (Change::Insert(_), Some(Row::Transaction(transaction))) = (change, row.as_deref()) {
                let own = transaction.entries(receipt.position, receipt.at);
                entries.extend(own.map(|entry| (transaction.tenant, entry)));
            }
        }
        entries.sort_unstable_by_key(|(_, entry)| (entry.transaction, entry.leg));
        for (tenant, entry) in entries {
            self.journal.entry((tenant, entry.account)).or_default().push(entry);
        }
    }

    pub fn committed(&self, id: SetId) -> Option<CommitReceipt> {
        self.sets.get(&id).copied()
    }

    /// Undoes the last commit, as a failover that loses the tail of the log.
    pub fn lose_last(&mut self) {
        let Some(lost) = self.history.pop() else { return };
        for (key, row) in lost.committed.touched.iter().zip(lost.before) {
            self.put(key, row);
        }
        self.sets.remove(&lost.committed.set);
        for entries in self.journal.values_mut() {
            entries.retain(|entry| entry.position < lost.committed.receipt.position);
        }
    }

    /// Raises the position of the last commit by one.
    pub(super) fn skip_position(&mut self) {
        if let Some(last) = self.history.last_mut() {
            last.committed.receipt.position.0 = last.committed.receipt.position.0.saturating_add(1);
        }
    }

    /// Drops the first settled claim, even within its windows.
    pub(super) fn forget_answers(&mut self) {
        let settled =
            |row: &&Arc<Row>| matches!(&***row, Row::Claim(claim) if claim.state.settled().is_some());
        let key = self.rows.values().find(settled).map(|row| row.key());
        if let Some(key) = key {
            self.put(&key, None);
        }
    }

    /// The row before the last change.
    pub(super) fn before_last(&self, key: &RowKey) -> Option<Row> {
        for applied in self.history.iter().rev().take(3) {
            if let Some(place) = applied.committed.touched.iter().position(|touched| touched == key) {
                return applied.before.get(place)?.as_deref().cloned();
            }
        }
        self.row(key).cloned()
    }

    pub fn feed(&self, after: Position, limit: usize) -> Vec<Committed> {
        let start = usize::try_from(after.0).unwrap_or(usize::MAX);
        self.history.iter().skip(start).take(limit.min(SCAN_MAX)).map(|it| it.committed.clone()).collect()
    }

    /// Due rows.
    pub fn due(&self, due: Due, now: Time, limit: usize) -> Vec<Row> {
        let kind = match due {
            Due::Outbox => 0,
            Due::Claims => 1,
            Due::Holds => 2,
        };
        let index = self.due.get(kind).into_iter().flatten();
        let ready = index.take_while(|(at, _)| *at <= now).filter_map(|(_, key)| self.row(key));
        ready.take(limit.min(SCAN_MAX)).cloned().collect()
    }

    pub fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> Vec<AccountEntry> {
        let own = self.journal.get(&(tenant, account)).into_iter().flatten();
        let limit = limit.min(SCAN_MAX);
        match page {
            EntryPage::After(position) => {
                own.filter(|entry| entry.position > position).take(limit).copied().collect()
            }
            EntryPage::Before(None) => own.rev().take(limit).copied().collect(),
            EntryPage::Before(Some(mark)) => {
                let older = own.rev().skip_while(|entry| (entry.transaction, entry.leg) != mark).skip(1);
                older.take(limit).copied().collect()
            }
        }
    }

    /// Sum of an account's entries.
    pub fn fold(&self, tenant: TenantId, account: AccountId, after: Position, upto: Upto) -> Folded {
        let mut folded = Folded::default();
        for entry in self.journal.get(&(tenant, account)).into_iter().flatten() {
            let receipt = CommitReceipt { position: entry.position, at: entry.at };
            if entry.position > after && upto.includes(receipt) {
                folded.totals = folded.totals.plus(entry.side, entry.layer, entry.amount);
                folded.last = Some(receipt);
            }
        }
        folded
    }

    /// Counts of pending work.
    pub fn tally(&self, now: Time) -> Tally {
        let mut tally = Tally::default();
        for row in self.work() {
            let Row::Outbox(outbox) = row else { continue };
            if outbox.parked.is_some() {
                tally.parked = tally.parked.saturating_add(1);
                continue;
            }
            let late = now.since(outbox.due_at);
            tally.pending = tally.pending.saturating_add(1);
            tally.stuck = tally.stuck.saturating_add(u64::from(late > Span::from_ms(60_000)));
            tally.lag_ms = tally.lag_ms.max(late.ms());
        }
        tally
    }

    fn between(&self, low: RowKey, high: RowKey) -> impl DoubleEndedIterator<Item = &Row> {
        self.rows.range((Bound::Included(low), Bound::Included(high))).map(|(_, row)| row.as_ref())
    }

    /// Rows of a kind after one of them, by tenant.
    fn after<T>(
        &self,
        after: Option<(TenantId, T)>,
        key: fn(TenantId, T) -> RowKey,
        id: fn(i64) -> T,
    ) -> impl DoubleEndedIterator<Item = &Row> {
        let first = Bound::Included(key(TenantId::from_i64(i64::MIN), id(i64::MIN)));
        let start = after.map_or(first, |(tenant, id)| Bound::Excluded(key(tenant, id)));
        let last = Bound::Included(key(TenantId::from_i64(i64::MAX), id(i64::MAX)));
        self.rows.range((start, last)).map(|(_, row)| row.as_ref())
    }

    fn all<T>(&self, key: fn(TenantId, T) -> RowKey, id: fn(i64) -> T) -> impl Iterator<Item = &Row> {
        self.after(None, key, id)
    }

    /// A tenant's rows of a kind before one of them, newest first.
    fn before<T>(
        &self,
        tenant: TenantId,
        before: Option<T>,
        key: fn(TenantId, T) -> RowKey,
        id: fn(i64) -> T,
    ) -> impl Iterator<Item = &Row> {
        let last = Bound::Included(key(tenant, id(i64::MAX)));
        let end = before.map_or(last, |before| Bound::Excluded(key(tenant, before)));
        let own = self.rows.range((Bound::Included(key(tenant, id(i64::MIN))), end));
        own.rev().map(|(_, row)| row.as_ref())
    }

    pub fn scan(&self, scan: &Scan) -> Vec<Row> {
        match *scan {
            Scan::ChargesOf { tenant, before, limit } => {
                take_rows(self.before(tenant, before, RowKey::Charge, ChargeId::from_i64), limit)
            }
            Scan::Timeline { tenant, subject, after, limit } => {
                let key = |id| RowKey::Audit(tenant, subject, id);
                let first = Bound::Included(key(Ulid::from_bytes([0; 16])));
                let start = after.map_or(first, |after| Bound::Excluded(key(after)));
                let own = self.rows.range((start, Bound::Included(key(Ulid::from_bytes([255; 16])))));
                take_rows(own.map(|(_, row)| row.as_ref()), limit)
            }
            Scan::Claims { after, limit } => {
                let later = |subject: &SubjectId| after.is_none_or(|(.., after)| *subject > after);
                let claims = self.claims.iter().filter(|(subject, ..)| later(subject));
                take_rows(claims.filter_map(|(_, id, tenant)| self.row(&RowKey::Claim(*tenant, *id))), limit)
            }
            Scan::Charges { after, limit } => {
                take_rows(self.after(after, RowKey::Charge, ChargeId::from_i64), limit)
            }
            Scan::Outbox { after, limit } => {
                take_rows(self.after(after, RowKey::Outbox, SubjectId::from_i64), limit)
            }
            Scan::DoubtOn { payment, limit } => {
                let all = self.all(RowKey::Outbox, SubjectId::from_i64);
                let is_it = |row: &&Row| matches!(row, Row::Outbox(it) if it.payment == payment && it.history.unknown);
                take_rows(all.filter(is_it), limit)
            }
            Scan::ParkedOf { tenant, before, limit } => {
                let own = self.before(tenant, before, RowKey::Outbox, SubjectId::from_i64);
                take_rows(own.filter(|row| matches!(row, Row::Outbox(it) if it.parked.is_some())), limit)
            }
            Scan::OperationsOn { tenant, charge, after, limit } => {
                let after = (tenant, after.unwrap_or(OperationId::from_i64(i64::MIN)));
                let own = self.after(Some(after), RowKey::Operation, OperationId::from_i64);
                let on = |row: &&Row| matches!(row, Row::Operation(it) if (it.tenant, it.charge) == (tenant, charge));
                take_rows(own.filter(on), limit)
            }
            Scan::Operations { after, limit } => {
                take_rows(self.after(after, RowKey::Operation, OperationId::from_i64), limit)
            }
            Scan::PayoutsOf { tenant, before, limit } => {
                take_rows(self.before(tenant, before, RowKey::Payout, PayoutId::from_i64), limit)
            }
            Scan::Payouts { after, limit } => {
                take_rows(self.after(after, RowKey::Payout, PayoutId::from_i64), limit)
            }
            Scan::RefundsOf { tenant, before, limit } => {
                let own = self.before(tenant, before, RowKey::Operation, OperationId::from_i64);
                take_rows(
                    own.filter(|row| matches!(row, Row::Operation(it) if it.kind == OperationKind::Refund)),
                    limit,
                )
            }
            Scan::AccountsOf { tenant, before, limit } => {
                take_rows(self.before(tenant, before, RowKey::Account, AccountId::from_i64), limit)
            }
            Scan::AssetsOf { tenant } => {
                let all = self.rows.values().map(Arc::as_ref);
                all.filter(|row| matches!(row, Row::Asset(it) if it.tenant == tenant)).cloned().collect()
            }
            Scan::TransactionsOf { tenant, before, limit } => {
                take_rows(self.before(tenant, before, RowKey::Transaction, TransactionId::from_i64), limit)
            }
            Scan::Snapshots { tenant, account, upto, limit } => {
                let low = RowKey::Snapshot(tenant, account, Position(0));
                let own = self.between(low, RowKey::Snapshot(tenant, account, Position(u64::MAX))).rev();
                let own = own.filter(|row| matches!(row, Row::Snapshot(it) if upto.includes(CommitReceipt { position: it.position, at: it.at })));
                take_rows(own, limit)
            }
            Scan::Accounts { after, limit } => {
                take_rows(self.after(after, RowKey::Account, AccountId::from_i64), limit)
            }
            Scan::Transactions { after, limit } => {
                take_rows(self.after(after, RowKey::Transaction, TransactionId::from_i64), limit)
            }
            Scan::Balances { after, limit } => {
                let key = |tenant: i64, account: i64, shard| {
                    RowKey::Balance(TenantId::from_i64(tenant), AccountId::from_i64(account), shard)
                };
                let first = Bound::Included(key(i64::MIN, i64::MIN, 0));
                let mark = after.map(|(tenant, account, shard)| RowKey::Balance(tenant, account, shard));
                let start = mark.map_or(first, Bound::Excluded);
                let all = self.rows.range((start, Bound::Included(key(i64::MAX, i64::MAX, u8::MAX))));
                take_rows(all.map(|(_, row)| row.as_ref()), limit)
            }
            Scan::Holds { after, limit } => {
                take_rows(self.after(after, RowKey::Hold, HoldId::from_i64), limit)
            }
            Scan::Tenants => self
                .rows
                .values()
                .map(Arc::as_ref)
                .filter(|row| matches!(row, Row::Tenant(_)))
                .cloned()
                .collect(),
            Scan::ApiKeys => self
                .rows
                .values()
                .map(Arc::as_ref)
                .filter(|row| matches!(row, Row::ApiKey(_)))
                .cloned()
                .collect(),
            Scan::Slots => self.between(RowKey::Slot(0), RowKey::Slot(u16::MAX)).cloned().collect(),
        }
    }
}

/// Owned copies, for planted bugs.
fn owned(rows: &[Option<Arc<Row>>]) -> Vec<Option<Row>> {
    rows.iter().map(|row| row.as_deref().cloned()).collect()
}

fn shared(rows: Vec<Option<Row>>) -> Vec<Option<Arc<Row>>> {
    rows.into_iter().map(|row| row.map(Arc::new)).collect()
}

fn take_rows<'a>(rows: impl Iterator<Item = &'a Row>, limit: usize) -> Vec<Row> {
    rows.take(limit.min(SCAN_MAX)).cloned().collect()
}

//! The port: the operations of every store, and the narrow error types they may return.

use crate::change::ChangeSet;
use crate::row::{Row, RowKey};
use counterfoil_core::idempotency::claim::ClaimId;
use counterfoil_core::ledger::totals::{AccountEntry, Totals};
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::id::{
    AccountId, ChargeId, HoldId, OperationId, PayoutId, SetId, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::mask::Masked;
pub use counterfoil_core::types::position::Position;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use std::future::Future;

/// A store. Reads return committed state only.
pub trait Store: Send + Sync + 'static {
    /// The store's clock. It never goes back, and a change of the wall clock does not affect it.
    fn now(&self) -> Time;

    /// 32 secret bytes created with the store. References and downstream keys are derived from
    /// them.
    fn secret(&self) -> Masked<[u8; 32]>;

    /// Whether this process is the only possible writer while the store is open. If so, leases of
    /// other holders belong to processes that have ended.
    fn is_exclusive(&self) -> bool;

    /// The rows of these keys, from one consistent snapshot and in the order of the keys.
    fn read(&self, keys: Vec<RowKey>) -> impl Future<Output = Result<Vec<Option<Row>>, ReadError>> + Send;

    /// A bounded, ordered range of rows.
    fn scan(&self, scan: Scan) -> impl Future<Output = Result<Vec<Row>, ReadError>> + Send;

    /// Rows that are due at `now`, most overdue first, at most `limit`. A store may omit rows
    /// locked by a concurrent commit.
    fn due(
        &self,
        due: Due,
        now: Time,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Row>, ReadError>> + Send;

    /// Commits the whole set or nothing.
    fn commit(&self, set: ChangeSet) -> impl Future<Output = Result<CommitReceipt, CommitError>> + Send;

    /// Looks up a commit by set id, to resolve a commit in doubt. After the answer `None` the set
    /// never appears later; a store that cannot promise this returns an error.
    fn committed(&self, id: SetId) -> impl Future<Output = Result<Option<CommitReceipt>, ReadError>> + Send;

    /// Committed sets after the position `after`, in commit order, at most `limit`.
    fn feed(
        &self,
        after: Position,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Committed>, ReadError>> + Send;

    /// Entries of the tenant's account, at most `limit`. Entries are written with their transaction
    /// and never change.
    fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<AccountEntry>, ReadError>> + Send;

    /// The sum of an account's entries after `after` and up to `upto`.
    fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> impl Future<Output = Result<Folded, ReadError>> + Send;

    /// Counts of the outstanding work.
    fn tally(&self, now: Time) -> impl Future<Output = Result<Tally, ReadError>> + Send;

    /// Waits for news of a claim from other processes. The future completes when another process
    /// may have settled or put off the claim since this call.
    ///
    /// The call itself registers the waiter: a caller that calls first and reads the claim
    /// afterwards misses nothing. The future may complete without news and may miss news, so a
    /// waiter must also poll. `None` if the store cannot watch the claim, or not at present.
    fn settled_elsewhere(&self, claim: ClaimId) -> Option<impl Future<Output = ()> + Send>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitReceipt {
    /// The commit's place in the order of commits.
    pub position: Position,
    /// The store's time of the commit.
    pub at: Time,
}

/// A committed set, as the feed reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub receipt: CommitReceipt,
    pub set: SetId,
    /// The rows that the set wrote or removed.
    pub touched: Vec<RowKey>,
}

/// A range of rows. `after` and `before` are exclusive, and `limit` is cut at `SCAN_MAX`.
///
/// Scans over all tenants run in the store's own order: by tenant and id, or by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scan {
    /// A tenant's charges, newest first.
    ChargesOf { tenant: TenantId, before: Option<ChargeId>, limit: usize },
    /// The audit records of one subject, in order.
    Timeline { tenant: TenantId, subject: SubjectId, after: Option<Ulid>, limit: usize },
    /// All claims.
    Claims {
        /// The last claim seen, with all columns that a store may order by.
        after: Option<(TenantId, ClaimId, SubjectId)>,
        limit: usize,
    },
    /// All charges.
    Charges { after: Option<(TenantId, ChargeId)>, limit: usize },
    /// The operations on one charge, oldest first.
    OperationsOn { tenant: TenantId, charge: ChargeId, after: Option<OperationId>, limit: usize },
    /// A tenant's refunds, newest first.
    RefundsOf { tenant: TenantId, before: Option<OperationId>, limit: usize },
    /// All operations.
    Operations { after: Option<(TenantId, OperationId)>, limit: usize },
    /// A tenant's payouts, newest first.
    PayoutsOf { tenant: TenantId, before: Option<PayoutId>, limit: usize },
    /// All payouts.
    Payouts { after: Option<(TenantId, PayoutId)>, limit: usize },
    /// All outbox rows.
    Outbox { after: Option<(TenantId, SubjectId)>, limit: usize },
    /// The outbox rows in doubt of a payment: its creation and its operations, if some call may
    /// have had an effect.
    DoubtOn { payment: Payment, limit: usize },
    /// A tenant's parked work, newest first.
    ParkedOf { tenant: TenantId, before: Option<SubjectId>, limit: usize },
    /// A tenant's accounts, newest first.
    AccountsOf { tenant: TenantId, before: Option<AccountId>, limit: usize },
    /// A tenant's own assets, by code.
    AssetsOf { tenant: TenantId },
    /// A tenant's transactions, newest first.
    TransactionsOf { tenant: TenantId, before: Option<TransactionId>, limit: usize },
    /// Snapshots of one account up to a point, newest first.
    Snapshots {
        tenant: TenantId,
        account: AccountId,
        /// Only snapshots without commits after the point.
        upto: Upto,
        limit: usize,
    },
    /// All accounts.
    Accounts { after: Option<(TenantId, AccountId)>, limit: usize },
    /// All transactions.
    Transactions { after: Option<(TenantId, TransactionId)>, limit: usize },
    /// All balances; the shards of one account by number.
    Balances { after: Option<(TenantId, AccountId, u8)>, limit: usize },
    /// All holds.
    Holds { after: Option<(TenantId, HoldId)>, limit: usize },
    /// All tenants, by name.
    Tenants,
    /// All API keys, by digest.
    ApiKeys,
    /// All worker slots ever used, by number.
    Slots,
}

/// The kinds of rows that can be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Outbox rows, by `due_at`. Parked rows are never due.
    Outbox,
    /// Claims past the window of their answer or tombstone, by `sweep_at`. Nothing depends on the
    /// exact instant, so a store may report a claim late by a small part of its window.
    Claims,
    /// Holds past their deadline, by `expires_at`.
    Holds,
}

/// A page of an account's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPage {
    /// Newest first, older than this leg of one of the account's transactions; `None` starts at the
    /// newest. An unknown leg gives an empty page.
    Before(Option<(TransactionId, u16)>),
    /// Oldest first, committed after this position.
    After(Position),
}

/// A point in an account's history, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upto {
    /// Everything committed so far.
    Now,
    /// Everything up to this commit.
    Position(Position),
    /// Everything committed up to this store time.
    Time(Time),
}

impl Upto {
    /// Whether the point includes that commit.
    pub fn includes(self, receipt: CommitReceipt) -> bool {
        match self {
            Upto::Now => true,
            Upto::Position(position) => receipt.position <= position,
            Upto::Time(time) => receipt.at <= time,
        }
    }
}

/// A sum of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    pub totals: Totals,
    /// The commit of the last entry, if there is an entry.
    pub last: Option<CommitReceipt>,
}

/// Unparked rows that are overdue by more than this count as stuck.
pub const STUCK_AFTER: Span = Span::from_ms(60_000);

/// Counts of the outstanding work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Outbox rows that are not parked.
    pub pending: u64,
    /// Parked outbox rows.
    pub parked: u64,
    /// Unparked rows that are overdue by more than [`STUCK_AFTER`].
    pub stuck: u64,
    /// Milliseconds by which the most overdue row is late.
    pub lag_ms: u64,
}

/// Why a set was not committed, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitError {
    /// A precondition failed. Nothing was written.
    Refused(Box<CommitRefusal>),
    /// The set conflicted with a concurrent writer. Nothing was written; the caller may try again.
    Conflict,
    /// The set may or may not have been written. [`Store::committed`] tells.
    InDoubt(SetId),
    /// The store is unreachable or cannot write. Nothing was written.
    Unavailable(String),
    /// The store is overloaded. Nothing was written.
    Throttled,
}

/// The precondition that failed, and the row found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRefusal {
    /// Index of the change in its set.
    pub change: usize,
    pub reason: RefusalReason,
    /// The existing row, if any.
    pub found: Option<Row>,
}

/// Why a change is refused, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The set is empty, too large, or names a row twice.
    Malformed,
    /// An insertion found an existing row.
    Present,
    /// A replacement or removal found no row.
    Absent,
    /// The row has another revision.
    Stale,
    /// The row may never become the new row, or may never be removed.
    IllegalMove,
    /// The balance would fall below its floor.
    Insufficient,
    /// The balance would rise above its cap.
    CapExceeded,
    /// The change would release more than the balance holds.
    NotHeld,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError(pub String);

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the store cannot be read: {}", self.0)
    }
}

impl std::error::Error for ReadError {}

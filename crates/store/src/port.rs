//! The port: what every store can be asked, and the narrow answers it may give.

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
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use std::future::Future;

/// A store. Answers come only from committed state.
pub trait Store: Send + Sync + 'static {
    /// The store's clock: it never goes back, and a moved wall clock does not move it.
    fn now(&self) -> Time;

    /// 32 secret bytes made with the store, from which references and downstream keys are derived.
    fn secret(&self) -> Masked<[u8; 32]>;

    /// Whether no other process can write this store while this one has it open; leases of other holders are
    /// then leases of the dead.
    fn is_exclusive(&self) -> bool;

    /// The rows of these keys, all from one moment, in the order asked.
    fn read(&self, keys: Vec<RowKey>) -> impl Future<Output = Result<Vec<Option<Row>>, ReadError>> + Send;

    /// A bounded, ordered range of rows.
    fn scan(&self, scan: Scan) -> impl Future<Output = Result<Vec<Row>, ReadError>> + Send;

    /// Rows whose time has come, most overdue first, at most `limit`. Rows that somebody writes at this moment may be left out.
    fn due(
        &self,
        due: Due,
        now: Time,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Row>, ReadError>> + Send;

    /// Commits all of the set or nothing.
    fn commit(&self, set: ChangeSet) -> impl Future<Output = Result<CommitReceipt, CommitError>> + Send;

    /// Whether the set of that id was committed: how a commit in doubt is resolved. A set that is said not to be there
    /// does not appear later; a store that cannot promise that gives an error.
    fn committed(&self, id: SetId) -> impl Future<Output = Result<Option<CommitReceipt>, ReadError>> + Send;

    /// Committed sets after `after`, in commit order, at most `limit`.
    fn feed(
        &self,
        after: Position,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Committed>, ReadError>> + Send;

    /// Entries of one account of that tenant, at most `limit`. They are written with their transactions and never change.
    fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        page: EntryPage,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<AccountEntry>, ReadError>> + Send;

    /// What an account's entries after `after` and up to `upto` add up to.
    fn fold(
        &self,
        tenant: TenantId,
        account: AccountId,
        after: Position,
        upto: Upto,
    ) -> impl Future<Output = Result<Folded, ReadError>> + Send;

    /// Counts of the work at hand.
    fn tally(&self, now: Time) -> impl Future<Output = Result<Tally, ReadError>> + Send;

    /// Completes when a process may have settled or put off the claim since this was called: the call itself takes the
    /// place in the queue, so who calls first and looks then misses nothing. It may complete for no reason, and is no
    /// promise: who waits must look now and then all the same. `None` where the store cannot tell, or not now.
    fn settled_elsewhere(&self, claim: ClaimId) -> Option<impl Future<Output = ()> + Send>;
}

/// A commit that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitReceipt {
    /// Its place in the order.
    pub position: Position,
    /// The store's time of it.
    pub at: Time,
}

/// A committed set, as the feed tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its place and time.
    pub receipt: CommitReceipt,
    /// Which set.
    pub set: SetId,
    /// The rows it wrote or removed.
    pub touched: Vec<RowKey>,
}

/// Ranges of rows. `after` and `before` are exclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scan {
    /// A tenant's charges, newest first.
    ChargesOf {
        /// Whose.
        tenant: TenantId,
        /// Older than this one.
        before: Option<ChargeId>,
        /// At most so many.
        limit: usize,
    },
    /// The audit records of one subject, in order.
    Timeline {
        /// Whose.
        tenant: TenantId,
        /// Of what.
        subject: SubjectId,
        /// Younger than this one.
        after: Option<Ulid>,
        /// At most so many.
        limit: usize,
    },
    /// All claims, in the store's own order.
    Claims {
        /// After this one, told by all that a store may go by: its key and what it made.
        after: Option<(TenantId, ClaimId, SubjectId)>,
        /// At most so many.
        limit: usize,
    },
    /// All charges, in the store's own order: by tenant and id, or by id.
    Charges {
        /// After this one.
        after: Option<(TenantId, ChargeId)>,
        /// At most so many.
        limit: usize,
    },
    /// The operations on one charge, oldest first.
    OperationsOn {
        /// Whose.
        tenant: TenantId,
        /// Which.
        charge: ChargeId,
        /// Younger than this one.
        after: Option<OperationId>,
        /// At most so many.
        limit: usize,
    },
    /// A tenant's refunds, newest first.
    RefundsOf {
        /// Whose.
        tenant: TenantId,
        /// Older than this one.
        before: Option<OperationId>,
        /// At most so many.
        limit: usize,
    },
    /// All operations, in the store's own order: by tenant and id, or by id.
    Operations {
        /// After this one.
        after: Option<(TenantId, OperationId)>,
        /// At most so many.
        limit: usize,
    },
    /// A tenant's payouts, newest first.
    PayoutsOf {
        /// Whose.
        tenant: TenantId,
        /// Older than this one.
        before: Option<PayoutId>,
        /// At most so many.
        limit: usize,
    },
    /// All payouts, in the store's own order: by tenant and id, or by id.
    Payouts {
        /// After this one.
        after: Option<(TenantId, PayoutId)>,
        /// At most so many.
        limit: usize,
    },
    /// All work, in the store's own order: by tenant and id, or by id.
    Outbox {
        /// After this one.
        after: Option<(TenantId, SubjectId)>,
        /// At most so many.
        limit: usize,
    },
    /// The work on a payment of which some call may have had an effect, whoever's it is: its making, and what was asked of it since.
    DoubtOn {
        /// Which payment.
        payment: Payment,
        /// At most so many.
        limit: usize,
    },
    /// A tenant's parked work, newest first.
    ParkedOf {
        /// Whose.
        tenant: TenantId,
        /// Older than this one.
        before: Option<SubjectId>,
        /// At most so many.
        limit: usize,
    },
    /// A tenant's accounts, newest first.
    AccountsOf {
        /// Whose.
        tenant: TenantId,
        /// Older than this one.
        before: Option<AccountId>,
        /// At most so many.
        limit: usize,
    },
    /// A tenant's own assets, by code.
    AssetsOf {
        /// Whose.
        tenant: TenantId,
    },
    /// A tenant's transactions, newest first.
    TransactionsOf {
        /// Whose.
        tenant: TenantId,
        /// Older than this one.
        before: Option<TransactionId>,
        /// At most so many.
        limit: usize,
    },
    /// Snapshots of one account up to a point, newest first.
    Snapshots {
        /// The account's tenant.
        tenant: TenantId,
        /// Whose.
        account: AccountId,
        /// Only those that include nothing after this point.
        upto: Upto,
        /// At most so many.
        limit: usize,
    },
    /// All accounts, in the store's own order: by tenant and id, or by id.
    Accounts {
        /// After this one.
        after: Option<(TenantId, AccountId)>,
        /// At most so many.
        limit: usize,
    },
    /// All transactions, in the store's own order: by tenant and id, or by id.
    Transactions {
        /// After this one.
        after: Option<(TenantId, TransactionId)>,
        /// At most so many.
        limit: usize,
    },
    /// All balances, in the store's own order; shards of one account by number.
    Balances {
        /// After this one.
        after: Option<(TenantId, AccountId, u8)>,
        /// At most so many.
        limit: usize,
    },
    /// All holds, in the store's own order: by tenant and id, or by id.
    Holds {
        /// After this one.
        after: Option<(TenantId, HoldId)>,
        /// At most so many.
        limit: usize,
    },
    /// All tenants by name.
    Tenants,
    /// All API keys by digest.
    ApiKeys,
    /// All worker slots ever used, by number.
    Slots,
}

/// What may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Outbox rows, by `due_at`; parked ones are never due.
    Outbox,
    /// Claims whose answer or tombstone has outlived its window, by `sweep_at`. Nothing depends on when they are swept: a store may bring
    /// one up later by a small part of its window.
    Claims,
    /// Holds whose deadline has passed, by `expires_at`.
    Holds,
}

/// Which entries of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPage {
    /// Newest first, older than this leg of a transaction of the account; absent means from the newest. A leg that is
    /// not there gives nothing.
    Before(Option<(TransactionId, u16)>),
    /// Oldest first, committed after this position.
    After(Position),
}

/// A point in an account's history; what happened at it is included.
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
    /// Whether a commit is within.
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
    /// What they add up to.
    pub totals: Totals,
    /// The commit of the last of them, if there was any.
    pub last: Option<CommitReceipt>,
}

/// Counts of the work at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Outbox rows that are not parked.
    pub pending: u64,
    /// Parked outbox rows.
    pub parked: u64,
    /// Rows whose time came more than a minute ago.
    pub stuck: u64,
    /// Milliseconds by which the most overdue row is late.
    pub lag_ms: u64,
}

/// Why a set was not committed, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitError {
    /// A precondition does not hold. Nothing was written.
    Refused(Box<CommitRefusal>),
    /// Another writer was in the way. Nothing was written; try again.
    Conflict,
    /// The set may or may not have been written. Ask [`Store::committed`].
    InDoubt(SetId),
    /// The store cannot be reached or cannot write. Nothing was written.
    Unavailable(String),
    /// More is asked of the store than it can take. Nothing was written.
    Throttled,
}

/// Which precondition failed, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRefusal {
    /// Index of the change in its set.
    pub change: usize,
    /// What is wrong with it.
    pub reason: RefusalReason,
    /// The row that is there, if one is.
    pub found: Option<Row>,
}

/// Why a change is refused, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The set is empty, too large, or names a row twice.
    Malformed,
    /// An insertion found the row there.
    Present,
    /// A replacement or removal found nothing.
    Absent,
    /// The row has another revision.
    Stale,
    /// The row may never become that, or may never be removed.
    IllegalMove,
    /// The balance would fall below its floor.
    Insufficient,
    /// The balance would rise above its cap.
    CapExceeded,
    /// Less is held in the balance than the change would release.
    NotHeld,
}

/// A read that could not be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError(pub String);

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the store cannot be read: {}", self.0)
    }
}

impl std::error::Error for ReadError {}

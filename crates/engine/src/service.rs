//! The object-safe interface of the engine, used by the HTTP API and the command line.

use counterfoil_core::audit::AuditRecord;
use counterfoil_core::idempotency::claim::{Claim, ClaimId, Settled};
use counterfoil_core::idempotency::request::Request;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::ledger::totals::{AccountEntry, BalanceAmounts};
use counterfoil_core::ledger::transaction::{Reversal, Transaction};
use counterfoil_core::outbox::{Outbox, ParkReason, Payment};
use counterfoil_core::payments::PaymentSubject;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::charge::create::CreateCharge;
use counterfoil_core::payments::ledger::{AccountSelector, Item, LedgerCommand};
use counterfoil_core::payments::operation::Operation;
use counterfoil_core::payments::operation::launch::Operate;
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::payments::payout::create::CreatePayout;
use counterfoil_core::tenancy::{ApiKey, KeyPolicy, Scopes, Tenant};
use counterfoil_core::types::digest::Digest;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::{
    AccountId, ChargeId, OperationId, PayoutId, SubjectId, TenantId, TransactionId,
};
use counterfoil_core::types::position::Position;
use counterfoil_core::types::reference::References;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::{ReadError, Tally, Upto};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The boxed future of a service call.
pub type ServiceFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The engine's calls.
pub trait Service: Send + Sync + 'static {
    /// The store's time.
    fn now(&self) -> Time;

    /// A fresh request id.
    fn request_id(&self) -> Ulid;

    /// Turns ids into public references and back.
    fn references(&self) -> &References;

    /// Creates a charge. Dropping the future cancels the wait, never the work.
    fn submit(&self, command: CreateCharge) -> ServiceFuture<'_, Submitted>;

    /// Captures, voids or refunds a charge. Dropping the future cancels the wait, never the work.
    fn operate(&self, command: Operate) -> ServiceFuture<'_, Submitted>;

    /// Creates a payout. Dropping the future cancels the wait, never the work.
    fn pay_out(&self, command: CreatePayout) -> ServiceFuture<'_, Submitted>;

    fn payout(&self, tenant: TenantId, id: PayoutId) -> ServiceFuture<'_, Result<Option<Payout>, ReadError>>;

    /// A tenant's payouts, newest first, older than `before`.
    fn payouts(
        &self,
        tenant: TenantId,
        before: Option<PayoutId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Payout>, ReadError>>;

    fn refund(
        &self,
        tenant: TenantId,
        id: OperationId,
    ) -> ServiceFuture<'_, Result<Option<RefundView>, ReadError>>;

    /// A tenant's refunds, newest first, older than `before`.
    fn refunds(
        &self,
        tenant: TenantId,
        before: Option<OperationId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<RefundView>, ReadError>>;

    /// A tenant's dead letters, newest first, older than `before`.
    fn dead_letters(
        &self,
        tenant: TenantId,
        before: Option<SubjectId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<DeadLetter>, ReadError>>;

    fn dead_letter(
        &self,
        tenant: TenantId,
        id: SubjectId,
    ) -> ServiceFuture<'_, Result<Option<DeadLetter>, ReadError>>;

    /// Resolves a dead letter as an operator decided.
    fn resolve(
        &self,
        request: Request,
        id: SubjectId,
        resolution: Resolution,
    ) -> ServiceFuture<'_, Submitted>;

    /// Takes a hint that the provider may have news of a payment: doubtful work on it becomes due
    /// now. Returns how many pieces of work.
    fn hint(&self, payment: Payment) -> ServiceFuture<'_, Result<usize, ReadError>>;

    fn charge(&self, tenant: TenantId, id: ChargeId) -> ServiceFuture<'_, Result<Option<Charge>, ReadError>>;

    /// A tenant's charges, newest first, older than `before`.
    fn charges(
        &self,
        tenant: TenantId,
        before: Option<ChargeId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Charge>, ReadError>>;

    /// Executes a ledger command.
    fn execute(&self, request: Request, command: LedgerCommand) -> ServiceFuture<'_, Submitted>;

    /// Executes many transactions under one key, with a result for each.
    fn bulk(&self, request: Request, items: Vec<Item>) -> ServiceFuture<'_, Submitted>;

    fn account(
        &self,
        tenant: TenantId,
        named: AccountSelector,
    ) -> ServiceFuture<'_, Result<Option<Arc<Account>>, ReadError>>;

    /// A tenant's accounts, newest first, older than `before`.
    fn accounts(
        &self,
        tenant: TenantId,
        before: Option<AccountId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Account>, ReadError>>;

    /// The balance of an account of the caller's tenant, up to a point.
    fn balance(&self, account: Arc<Account>, upto: Upto)
    -> ServiceFuture<'_, Result<BalanceView, ReadError>>;

    /// Entries of an account of the caller's tenant, newest first, older than `before`. An unknown
    /// place gives no entries.
    fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        before: Option<(TransactionId, u16)>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<AccountEntry>, ReadError>>;

    fn transfer(
        &self,
        tenant: TenantId,
        id: TransactionId,
    ) -> ServiceFuture<'_, Result<Option<TransferView>, ReadError>>;

    /// A transaction and its reversal, if any.
    fn transaction(
        &self,
        tenant: TenantId,
        id: TransactionId,
    ) -> ServiceFuture<'_, Result<Option<TransactionView>, ReadError>>;

    /// A tenant's transactions, newest first, older than `before`.
    fn transactions(
        &self,
        tenant: TenantId,
        before: Option<TransactionId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Transaction>, ReadError>>;

    /// A tenant's own assets, by code.
    fn assets(&self, tenant: TenantId) -> ServiceFuture<'_, Result<Vec<AssetDefinition>, ReadError>>;

    /// Audit records of a subject, in order, after `after`. `None`: the tenant has no such subject.
    fn timeline(
        &self,
        tenant: TenantId,
        subject: SubjectId,
        after: Option<Ulid>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Option<Vec<AuditRecord>>, ReadError>>;

    /// The claim of an idempotency key.
    fn claim(&self, tenant: TenantId, id: ClaimId) -> ServiceFuture<'_, Result<Option<KeyView>, ReadError>>;

    /// The principal of an API key, found by the secret's digest. A revocation takes effect within
    /// half a second.
    fn principal(&self, key: Digest) -> ServiceFuture<'_, Result<Option<Arc<Principal>>, ReadError>>;

    /// Counts of pending work.
    fn tally(&self) -> ServiceFuture<'_, Result<Tally, ReadError>>;

    /// Whether the server can take new requests: the store answers and the server is not draining.
    fn ready(&self) -> ServiceFuture<'_, Result<(), String>>;

    /// Creates a tenant and its first API key.
    fn create_tenant(&self, tenant: NewTenant) -> ServiceFuture<'_, Result<Tenant, AdminError>>;

    /// Adds an API key to a tenant.
    fn create_key(&self, key: NewKey) -> ServiceFuture<'_, Result<ApiKey, AdminError>>;

    /// Revokes an API key.
    fn revoke_key(&self, id: String) -> ServiceFuture<'_, Result<ApiKey, AdminError>>;

    /// All tenants with their API keys, by name.
    fn tenants(&self) -> ServiceFuture<'_, Result<Vec<TenantView>, ReadError>>;
}

/// The claim of an idempotency key, and its payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyView {
    pub claim: Claim,
    /// The payment the claim created or is about.
    pub payment: Option<Payment>,
    /// The reason if its work is parked.
    pub parked: Option<ParkReason>,
}

/// A refund and its charge.
pub type RefundView = (Operation, Charge);

/// Parked work that needs a human decision. Its history is the payment's timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub outbox: Outbox,
    pub subject: PaymentSubject,
}

/// An operator's decision on a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Accept the provider's result, even if it differs from the request.
    Adopt,
    /// Compensate at the provider, then mark the payment failed.
    Void,
    /// Nothing happened at the provider: mark the payment failed.
    Fail {
        /// In the operator's words; kept in the timeline.
        reason: String,
    },
    /// Continue as if the work had not been parked.
    Retry,
}

impl Resolution {
    /// The word in the API and in timelines.
    pub const fn name(&self) -> &'static str {
        match self {
            Resolution::Adopt => "adopt",
            Resolution::Void => "void",
            Resolution::Fail { .. } => "fail",
            Resolution::Retry => "retry",
        }
    }
}

/// The reason why a resolution is impossible. The dead letter is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The provider gave no evidence, or the answer may still change.
    NoEvidence,
    /// The payment's peer is not set up here as before, so nobody can be asked.
    NotSetUp,
    /// Several payments at the provider carry our reference.
    Several,
    /// The provider executed the payment, so it must not be marked failed.
    Executed,
    /// The provider holds nothing to undo, or the time for a void has passed.
    NothingToUndo,
    /// Another process works on the payment at this moment.
    Busy,
}

/// A transaction and its reversal, if any.
pub type TransactionView = (Transaction, Option<Reversal>);

/// A transfer: posted at once, or held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferView {
    Done(Transaction),
    /// A hold, open or ended.
    Held(Hold),
}

/// An account's balance and the last commit it includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceView {
    pub view: BalanceAmounts,
    /// The last included commit with an entry of the account; the start if there is none.
    pub position: Position,
}

/// A tenant and its API keys.
pub type TenantView = (Tenant, Vec<ApiKey>);

/// Result of a submitted command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// The stored answer.
    Answer {
        settled: Settled,
        /// Whether an earlier request made the answer.
        replayed: bool,
    },
    /// The request does not fit the existing resources. Nothing was stored.
    Invalid(Vec<Flaw>),
    /// The request's resource does not exist. Nothing was stored.
    NotFound,
    /// The key belongs to another request.
    Mismatch,
    /// The key's first request is still running after the wait.
    InUse,
    /// The key's window is over.
    Expired {
        /// The time of the key's first use.
        original_request_at: Time,
    },
    /// Another operation on the same payment is running. Nothing was stored.
    InProgress,
    /// The outcome is not known yet.
    Pending { payment: Payment, retry_after: Span },
    /// The store could not be written; the provider was not called.
    StoreUnavailable,
    /// The server is shutting down and takes no new work.
    Draining,
}

/// The authenticated sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub tenant: TenantId,
    /// The tenant's name, for metrics.
    pub name: String,
    pub scopes: Scopes,
    /// The tenant's own key policy, if any.
    pub key_policy: Option<KeyPolicy>,
}

/// A tenant to be created, and its first API key.
#[derive(Clone, Debug)]
pub struct NewTenant {
    pub name: String,
    /// The tenant's own key policy, if it differs from the server's.
    pub key_policy: Option<KeyPolicy>,
    /// Digest of the first key's secret.
    pub digest: Digest,
    pub key_id: String,
    pub scopes: Scopes,
}

/// An API key to be created.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub tenant: String,
    /// Digest of the secret.
    pub digest: Digest,
    pub key_id: String,
    pub scopes: Scopes,
}

/// The reason why an administrative command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminError {
    /// The name is no valid tenant name.
    BadName,
    Exists,
    NotFound,
    Store(String),
}

impl std::fmt::Display for AdminError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AdminError::BadName => {
                f.write_str("a tenant's name is 1 to 64 lower-case letters, digits, '-' and '_'")
            }
            AdminError::Exists => f.write_str("that name is taken; choose another"),
            AdminError::NotFound => {
                f.write_str("there is no such tenant or key; `counterfoil tenant list` shows them")
            }
            AdminError::Store(why) => write!(f, "the store could not be changed: {why}"),
        }
    }
}

impl std::error::Error for AdminError {}

//! What the faces of the program (HTTP, command line, layer) may ask of the engine: an object-safe door.

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

/// A boxed answer to come.
pub type ServiceFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The engine's door.
pub trait Service: Send + Sync + 'static {
    /// The store's time.
    fn now(&self) -> Time;

    /// A fresh request id.
    fn request_id(&self) -> Ulid;

    /// Turns ids into public references and back.
    fn references(&self) -> &References;

    /// Runs a creation to its answer. Dropping the future cancels the waiting, never the work.
    fn submit(&self, command: CreateCharge) -> ServiceFuture<'_, Submitted>;

    /// Runs a capture, a void or a refund to its answer. Dropping the future cancels the waiting, never the work.
    fn operate(&self, command: Operate) -> ServiceFuture<'_, Submitted>;

    /// Runs a payout to its answer. Dropping the future cancels the waiting, never the work.
    fn pay_out(&self, command: CreatePayout) -> ServiceFuture<'_, Submitted>;

    /// One payout, if the tenant has it.
    fn payout(&self, tenant: TenantId, id: PayoutId) -> ServiceFuture<'_, Result<Option<Payout>, ReadError>>;

    /// A tenant's payouts, newest first, older than `before`.
    fn payouts(
        &self,
        tenant: TenantId,
        before: Option<PayoutId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Payout>, ReadError>>;

    /// One refund, if the tenant has it.
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

    /// What of a tenant's needs a human, newest first, older than `before`.
    fn dead_letters(
        &self,
        tenant: TenantId,
        before: Option<SubjectId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<DeadLetter>, ReadError>>;

    /// One dead letter, if the tenant has it.
    fn dead_letter(
        &self,
        tenant: TenantId,
        id: SubjectId,
    ) -> ServiceFuture<'_, Result<Option<DeadLetter>, ReadError>>;

    /// Settles a dead letter as a human decided.
    fn resolve(
        &self,
        request: Request,
        id: SubjectId,
        resolution: Resolution,
    ) -> ServiceFuture<'_, Submitted>;

    /// Takes a hint that there may be news of a payment at its provider: what is in doubt about it is asked about now. Says
    /// how much work that was.
    fn hint(&self, payment: Payment) -> ServiceFuture<'_, Result<usize, ReadError>>;

    /// One charge, if the tenant has it.
    fn charge(&self, tenant: TenantId, id: ChargeId) -> ServiceFuture<'_, Result<Option<Charge>, ReadError>>;

    /// A tenant's charges, newest first, older than `before`.
    fn charges(
        &self,
        tenant: TenantId,
        before: Option<ChargeId>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<Charge>, ReadError>>;

    /// Runs a request about the ledger to its answer.
    fn keep(&self, request: Request, act: LedgerCommand) -> ServiceFuture<'_, Submitted>;

    /// Runs many transactions under one key, each with its own result.
    fn bulk(&self, request: Request, items: Vec<Item>) -> ServiceFuture<'_, Submitted>;

    /// One account, if the tenant has it.
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

    /// The balance of an account the caller has been given, up to a point.
    fn balance(&self, account: Arc<Account>, upto: Upto)
    -> ServiceFuture<'_, Result<BalanceView, ReadError>>;

    /// Entries of an account the caller has been given, newest first, older than `before`. A place that is not there
    /// gives nothing.
    fn entries(
        &self,
        tenant: TenantId,
        account: AccountId,
        before: Option<(TransactionId, u16)>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Vec<AccountEntry>, ReadError>>;

    /// One transfer, if the tenant has it.
    fn transfer(
        &self,
        tenant: TenantId,
        id: TransactionId,
    ) -> ServiceFuture<'_, Result<Option<TransferView>, ReadError>>;

    /// One transaction, if the tenant has it, and what undid it.
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

    /// The audited steps of something the tenant has, in order, after `after`. Nothing if it has no such thing.
    fn timeline(
        &self,
        tenant: TenantId,
        subject: SubjectId,
        after: Option<Ulid>,
        limit: usize,
    ) -> ServiceFuture<'_, Result<Option<Vec<AuditRecord>>, ReadError>>;

    /// The record of a key, and why it is parked if it is.
    fn claim(&self, tenant: TenantId, id: ClaimId) -> ServiceFuture<'_, Result<Option<KeyView>, ReadError>>;

    /// Who holds the API key of that digest. Revocation is seen within half a second.
    fn principal(&self, key: Digest) -> ServiceFuture<'_, Result<Option<Arc<Principal>>, ReadError>>;

    /// Counts of the work at hand.
    fn tally(&self) -> ServiceFuture<'_, Result<Tally, ReadError>>;

    /// Whether new requests should be sent here: the store answers and the server is not draining.
    fn ready(&self) -> ServiceFuture<'_, Result<(), String>>;

    /// Makes a tenant with its first API key.
    fn create_tenant(&self, tenant: NewTenant) -> ServiceFuture<'_, Result<Tenant, AdminError>>;

    /// Adds an API key to a tenant.
    fn create_key(&self, key: NewKey) -> ServiceFuture<'_, Result<ApiKey, AdminError>>;

    /// Revokes an API key by its id.
    fn revoke_key(&self, id: String) -> ServiceFuture<'_, Result<ApiKey, AdminError>>;

    /// All tenants with their keys, by name.
    fn tenants(&self) -> ServiceFuture<'_, Result<Vec<TenantView>, ReadError>>;
}

/// The record of a key, what it made, and why its work is parked if it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyView {
    /// The record.
    pub claim: Claim,
    /// The payment it made or was about.
    pub payment: Option<Payment>,
    /// Why its work is parked.
    pub parked: Option<ParkReason>,
}

/// A refund and the charge it gives back.
pub type RefundView = (Operation, Charge);

/// Work that needs a human, with everything that is known of it. Its history is the payment's timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Why, since when, at which step, under which key, what is known of the calls.
    pub outbox: Outbox,
    /// The payment it is about, and what was to be done to it.
    pub subject: PaymentSubject,
}

/// What a human decides about a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Ask the provider and take its word for what happened, even if it differs from what we asked for.
    Adopt,
    /// Undo it at the provider, as a step of its own, then mark it failed.
    Void,
    /// Nothing happened: mark it failed, for this reason.
    Fail {
        /// In the words of the human; kept in the timeline.
        reason: String,
    },
    /// Go on as if it had not been parked.
    Retry,
}

impl Resolution {
    /// The word clients and timelines see.
    pub const fn name(&self) -> &'static str {
        match self {
            Resolution::Adopt => "adopt",
            Resolution::Void => "void",
            Resolution::Fail { .. } => "fail",
            Resolution::Retry => "retry",
        }
    }
}

/// Why a dead letter could not be resolved so. It stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The provider could not be asked, or did not say anything that can be believed, or what it says may still change.
    NoEvidence,
    /// It is bound to a peer that is not set up here as it was, so nobody here can ask it.
    NotSetUp,
    /// The provider says that more than one payment carries our reference.
    Several,
    /// The provider took the money, so it cannot be marked as failed.
    Executed,
    /// It cannot be undone at the provider: there is nothing there, it is too late, or it holds nothing of its own.
    NothingToUndo,
    /// Somebody works on it at this moment.
    Busy,
}

/// A transaction and what undid it, if anything did.
pub type TransactionView = (Transaction, Option<Reversal>);

/// A transfer, done or held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferView {
    /// Posted at once.
    Done(Transaction),
    /// Held, or ended after it was.
    Held(Hold),
}

/// An account's balance and the last commit it includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceView {
    /// The balance.
    pub view: BalanceAmounts,
    /// The last commit with an entry of the account that is included; the start if there is none.
    pub position: Position,
}

/// A tenant and its keys.
pub type TenantView = (Tenant, Vec<ApiKey>);

/// What came of a submitted command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// The stored answer.
    Answer {
        /// What to send.
        settled: Settled,
        /// Whether an earlier request made it.
        replayed: bool,
    },
    /// The request names something that is not there or does not fit. Nothing was stored.
    Invalid(Vec<Flaw>),
    /// What the request is about is not there. Nothing was stored.
    NotFound,
    /// The key belongs to another request.
    Mismatch,
    /// Still running after the wait.
    InUse,
    /// The key's window is over.
    Expired {
        /// When the key was first used.
        original_request_at: Time,
    },
    /// Another operation on the same payment is under way. Nothing was stored.
    InProgress,
    /// The outcome is not known yet.
    Pending {
        /// The payment that is under way.
        payment: Payment,
        /// When it is worth asking again.
        retry_after: Span,
    },
    /// The store could not be written; the provider was not called.
    StoreUnavailable,
    /// The server is shutting down and takes no new work.
    Draining,
}

/// Who a request comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The tenant.
    pub tenant: TenantId,
    /// Its name, for metrics.
    pub name: String,
    /// What the key may do.
    pub scopes: Scopes,
    /// The tenant's own key policy.
    pub key_policy: Option<KeyPolicy>,
}

/// A tenant to be made.
#[derive(Clone, Debug)]
pub struct NewTenant {
    /// Its name.
    pub name: String,
    /// Its key policy, if it should differ from the server's.
    pub key_policy: Option<KeyPolicy>,
    /// Digest of its first secret.
    pub digest: Digest,
    /// Id of its first key.
    pub key_id: String,
    /// What the first key may do.
    pub scopes: Scopes,
}

/// An API key to be made.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Whose.
    pub tenant: String,
    /// Digest of the secret.
    pub digest: Digest,
    /// Its id.
    pub key_id: String,
    /// What it may do.
    pub scopes: Scopes,
}

/// Why an administrative act was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminError {
    /// The name is not a tenant's name.
    BadName,
    /// There is such a tenant or key already.
    Exists,
    /// There is no such tenant or key.
    NotFound,
    /// The store could not be read or written.
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

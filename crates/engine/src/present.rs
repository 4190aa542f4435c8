//! How an answer becomes bytes. The public form belongs to `wire`; the engine only stores what it is given, in the
//! same change set as the effect.

use crate::service::{DeadLetter, Resolution, Unresolved};
use counterfoil_core::idempotency::reply::Reply;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::asset::AssetDefinition;
use counterfoil_core::ledger::hold::Hold;
use counterfoil_core::ledger::transaction::Transaction;
use counterfoil_core::payments::PaymentSubject;
use counterfoil_core::payments::charge::{Charge, PaymentFailure};
use counterfoil_core::payments::ledger::LedgerRefusal;
use counterfoil_core::payments::operation::launch::OperationRefusal;
use counterfoil_core::payments::operation::{Operation, OperationKind};
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::SubjectId;
use counterfoil_core::types::reference::References;
use counterfoil_core::types::ulid::Ulid;

/// Renders answers.
pub trait Present: Send + Sync + 'static {
    /// Under which names it shows things: those of the store.
    fn references(&self) -> &References;

    /// The answer to a charge that was made (201), or captured or voided (200).
    fn charge(&self, charge: &Charge, made: Made) -> Reply;

    /// The answer to a refund that was made: 201.
    fn refund(&self, refund: &Operation, charge: &Charge) -> Reply;

    /// The answer to a payout that was made: 201.
    fn payout(&self, payout: &Payout) -> Reply;

    /// The answer to a payment, or an operation on one, that failed; `request` is the request that made the claim.
    fn failure(&self, subject: &PaymentSubject, failure: &PaymentFailure, request: Ulid) -> Reply;

    /// The answer to an operation the charge's state does not allow: 409 with that state.
    fn impossible(&self, charge: &Charge, kind: OperationKind, why: OperationRefusal, request: Ulid)
    -> Reply;

    /// The answer to a dead letter that was resolved (200), or could not be so (409).
    fn resolved(&self, letter: &DeadLetter, how: Result<&Resolution, Unresolved>, request: Ulid) -> Reply;

    /// The answer to a request about the ledger; `request` is the request that made the claim.
    fn ledger(&self, shown: LedgerReply<'_>, request: Ulid) -> Reply;
}

/// How a charge came to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// The request made it.
    Created,
    /// The request moved it.
    Changed,
}

/// What came of a request about the ledger.
#[derive(Clone, Copy, Debug)]
pub enum LedgerReply<'a> {
    /// An account was opened: 201.
    Opened(&'a Account),
    /// An account has another spread: 200.
    Resharded(&'a Account),
    /// An asset was defined: 201.
    Defined(&'a AssetDefinition),
    /// A transfer was posted: 201.
    Transferred(&'a Transaction),
    /// A transfer is held: 201.
    Held(&'a Hold),
    /// A held transfer has ended: 200.
    Ended(&'a Hold),
    /// A transaction, a conversion or a reversal was posted: 201.
    Posted(&'a Transaction),
    /// Many transactions, each with its result: 200.
    Bulk {
        /// The number of the request's own reference.
        id: SubjectId,
        /// In the order of the request.
        results: &'a [ItemResult],
    },
    /// Refused for good.
    Refused(LedgerRefusal),
}

/// What came of one of many transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemResult {
    /// It was posted.
    Posted(Box<Transaction>),
    /// It was refused.
    Refused(LedgerRefusal),
    /// It does not fit what it is about; pointers start at the item.
    Invalid(Vec<Flaw>),
}

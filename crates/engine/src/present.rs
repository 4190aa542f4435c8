//! The port that renders answers as bytes. The `wire` crate owns the public form. The engine stores
//! the bytes in the same change set as the effect.

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
    /// The store's public references.
    fn references(&self) -> &References;

    /// The answer to a created charge (201), or to a captured or voided one (200).
    fn charge(&self, charge: &Charge, made: Made) -> Reply;

    /// The answer to a refund: 201.
    fn refund(&self, refund: &Operation, charge: &Charge) -> Reply;

    /// The answer to a payout: 201.
    fn payout(&self, payout: &Payout) -> Reply;

    /// The answer to a failed payment or operation. `request` is the request that made the claim.
    fn failure(&self, subject: &PaymentSubject, failure: &PaymentFailure, request: Ulid) -> Reply;

    /// The answer to an operation that the charge's state does not allow: 409 with that state.
    fn impossible(&self, charge: &Charge, kind: OperationKind, why: OperationRefusal, request: Ulid)
    -> Reply;

    /// The answer to the resolution of a dead letter: 200, or 409 if it was impossible.
    fn resolved(&self, letter: &DeadLetter, how: Result<&Resolution, Unresolved>, request: Ulid) -> Reply;

    /// The answer to a ledger request. `request` is the request that made the claim.
    fn ledger(&self, shown: LedgerReply<'_>, request: Ulid) -> Reply;
}

/// The reason why a charge is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    Created,
    /// The request captured or voided it.
    Changed,
}

/// Result of a ledger request.
#[derive(Clone, Copy, Debug)]
pub enum LedgerReply<'a> {
    /// An account was opened: 201.
    Opened(&'a Account),
    /// An account has another number of shards: 200.
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
    /// A bulk request with the results of all items: 200.
    Bulk {
        /// The subject of the bulk request's own reference.
        id: SubjectId,
        /// In the order of the request's items.
        results: &'a [ItemResult],
    },
    Refused(LedgerRefusal),
}

/// Result of one item of a bulk request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemResult {
    Posted(Box<Transaction>),
    Refused(LedgerRefusal),
    /// The item is invalid. The flaws' pointers start at the item.
    Invalid(Vec<Flaw>),
}

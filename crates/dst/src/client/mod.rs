//! The clients: their requests, answers and knowledge.

mod present;
mod request;

pub use present::PlainPresenter;
pub use request::{
    ACCOUNTS, BULK_LARGE, ClientRequest, LIVES, OPERATIONS, PAYOUTS_ALIKE, charge_amount, charge_asset,
    fingerprint, opening, operation, payout_amount, request, wallet_part,
};

use crate::script::Ask;
use counterfoil_core::types::id::{AccountId, ChargeId, HoldId, TransactionId};
use counterfoil_core::types::time::Time;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::service::{BalanceView, KeyView, Submitted};
use std::collections::BTreeMap;

/// The id of the request at index `place`.
pub fn request_id(place: usize) -> Ulid {
    Ulid::new(Time::from_ms(1), u128::try_from(place).unwrap_or(0))
}

/// One request and its answer.
#[derive(Clone, Debug)]
pub struct ClientCall {
    pub ask: Ask,
    pub process: u64,
    /// Time of the request, in virtual milliseconds.
    pub invoked: u64,
    /// Number of commits at that time.
    pub commits: usize,
    /// Time of the answer.
    pub returned: Option<u64>,
    pub response: Option<Response>,
}

/// A client's answer.
#[derive(Clone, Debug)]
pub enum Response {
    Submitted(Submitted),
    Balance(AccountId, BalanceView),
    /// The answer to a read of a charge or a payout.
    Payment {
        /// Whether the asking tenant owns the payment.
        own: bool,
        /// Whether the payment was found.
        shown: bool,
    },
    Key(Option<Box<KeyView>>),
    /// The store could not be read.
    Unreadable,
    /// The process was down.
    NobodyThere,
}

/// Ids from earlier answers.
#[derive(Clone, Debug, Default)]
pub struct ClientKnowledge {
    /// Accounts by code.
    pub accounts: BTreeMap<String, AccountId>,
    /// Holds by key.
    pub holds: BTreeMap<u64, HoldId>,
    /// The first charge of each key, by tenant and key.
    pub charges: BTreeMap<(u64, u64), ChargeId>,
    /// Transactions by key.
    pub transactions: BTreeMap<u64, TransactionId>,
}

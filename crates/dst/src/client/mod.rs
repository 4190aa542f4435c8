//! The clients: what a key stands for, what was asked, and what was heard.

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

/// The id of the request that is noted at `place`.
pub fn request_id(place: usize) -> Ulid {
    Ulid::new(Time::from_ms(1), u128::try_from(place).unwrap_or(0))
}

/// One request and what came of it.
#[derive(Clone, Debug)]
pub struct ClientCall {
    /// What was asked.
    pub ask: Ask,
    /// Of which process.
    pub process: u64,
    /// When, in virtual milliseconds.
    pub invoked: u64,
    /// How many commits the store had taken by then.
    pub commits: usize,
    /// When the answer came.
    pub returned: Option<u64>,
    /// The answer, if one came.
    pub response: Option<Response>,
}

/// What a client may hear.
#[derive(Clone, Debug)]
pub enum Response {
    /// The answer to a write.
    Submitted(Submitted),
    /// A balance.
    Balance(AccountId, BalanceView),
    /// What a tenant sees of a charge or a payout, and whether it is its own.
    Payment {
        /// Whether the asking tenant owns it.
        own: bool,
        /// Whether it was shown.
        shown: bool,
    },
    /// The record of a key.
    Key(Option<Box<KeyView>>),
    /// The store could not be read.
    Unreadable,
    /// Nobody listened.
    NobodyThere,
}

/// What clients have learnt from answers.
#[derive(Clone, Debug, Default)]
pub struct ClientKnowledge {
    /// Accounts by code.
    pub accounts: BTreeMap<String, AccountId>,
    /// Holds by the key that made them.
    pub holds: BTreeMap<u64, HoldId>,
    /// Charges by tenant and the key that made them; the first under each.
    pub charges: BTreeMap<(u64, u64), ChargeId>,
    /// Transactions by the key that made them.
    pub transactions: BTreeMap<u64, TransactionId>,
}

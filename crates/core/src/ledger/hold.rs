//! Holds: money reserved for a transfer that is posted, voided, or lapses at its deadline.

use crate::types::asset::Asset;
use crate::types::id::{AccountId, HoldId, TenantId, TransactionId};
use crate::types::mask::Masked;
use crate::types::time::Time;
use std::collections::BTreeMap;

/// A transfer that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Minted with the claim; the transaction that reserves has the same number.
    pub id: HoldId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The account reserved in.
    pub from: AccountId,
    /// The account it is meant for.
    pub to: AccountId,
    /// How much is reserved.
    pub amount: i64,
    /// The accounts' asset.
    pub asset: Asset,
    /// When it lapses unless it was ended before.
    pub expires_at: Time,
    /// Where it stands.
    pub state: HoldState,
    /// The client's own pairs.
    pub metadata: BTreeMap<String, Masked<String>>,
    /// When it was made.
    pub created_at: Time,
    /// Grows with every write of the row.
    pub revision: u64,
}

/// Where a hold stands. It ends once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// The money is reserved.
    Pending,
    /// So much of it was transferred; the rest is free again.
    Posted {
        /// How much.
        amount: i64,
        /// By which transaction.
        by: TransactionId,
    },
    /// Given up.
    Voided {
        /// By which transaction.
        by: TransactionId,
    },
    /// Its deadline passed.
    Lapsed {
        /// By which transaction.
        by: TransactionId,
    },
}

impl HoldState {
    /// The word clients see.
    pub const fn name(self) -> &'static str {
        match self {
            HoldState::Pending => "pending",
            HoldState::Posted { .. } => "posted",
            HoldState::Voided { .. } => "voided",
            HoldState::Lapsed { .. } => "lapsed",
        }
    }
}

impl Hold {
    /// The deadline of what a payment reserved: the payment ends it, not a clock and not a client.
    pub const NEVER: Time = Time::MAX;

    /// Whether a payment reserved it for itself.
    pub fn is_a_payments(&self) -> bool {
        self.expires_at == Hold::NEVER
    }

    /// Whether it still reserves anything at `now`: a deadline counts whether or not the worker was there.
    pub fn is_open(&self, now: Time) -> bool {
        self.state == HoldState::Pending && now < self.expires_at
    }

    /// When a worker should end it.
    pub fn lapses_at(&self) -> Option<Time> {
        (self.state == HoldState::Pending).then_some(self.expires_at)
    }

    /// Whether `next` may stand where this hold stands: it ends once, and nothing else changes.
    pub fn may_become(&self, next: &Hold) -> bool {
        let ended = self.state == HoldState::Pending && next.state != HoldState::Pending;
        let within =
            !matches!(next.state, HoldState::Posted { amount, .. } if amount < 1 || amount > self.amount);
        ended && within && *self == Hold { state: self.state, revision: self.revision, ..next.clone() }
    }

    /// The hold in its end state.
    pub fn ended(&self, state: HoldState) -> Hold {
        Hold { state, revision: self.revision.saturating_add(1), ..self.clone() }
    }
}

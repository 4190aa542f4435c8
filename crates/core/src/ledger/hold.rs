//! Holds: money reserved for a transfer that is posted, voided, or lapses at its deadline.

use crate::types::asset::Asset;
use crate::types::id::{AccountId, HoldId, TenantId, TransactionId};
use crate::types::mask::Masked;
use crate::types::time::Time;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Minted with the claim. The reserving transaction has the same number.
    pub id: HoldId,
    pub tenant: TenantId,
    /// The account to debit; its money is reserved.
    pub from: AccountId,
    /// The account to credit.
    pub to: AccountId,
    pub amount: i64,
    pub asset: Asset,
    /// The time of lapse, unless the hold ends earlier.
    pub expires_at: Time,
    pub state: HoldState,
    pub metadata: BTreeMap<String, Masked<String>>,
    pub created_at: Time,
    pub revision: u64,
}

/// The state of a hold. A hold ends once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// The money is reserved.
    Pending,
    /// This amount was transferred; the rest is free again.
    Posted {
        amount: i64,
        /// The ending transaction.
        by: TransactionId,
    },
    Voided {
        /// The ending transaction.
        by: TransactionId,
    },
    /// The deadline passed.
    Lapsed {
        /// The ending transaction.
        by: TransactionId,
    },
}

impl HoldState {
    /// The name clients see.
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
    /// The deadline of a payment's own hold. The payment ends such a hold; neither the clock nor a
    /// client does.
    pub const NEVER: Time = Time::MAX;

    /// Whether a payment owns this hold.
    pub fn is_a_payments(&self) -> bool {
        self.expires_at == Hold::NEVER
    }

    /// Whether the hold still reserves money at `now`. The deadline counts even if no worker has
    /// ended the hold yet.
    pub fn is_open(&self, now: Time) -> bool {
        self.state == HoldState::Pending && now < self.expires_at
    }

    /// When a worker should end the hold.
    pub fn lapses_at(&self) -> Option<Time> {
        (self.state == HoldState::Pending).then_some(self.expires_at)
    }

    /// Whether `next` is a legal successor of the hold. A hold ends once, and nothing else changes.
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

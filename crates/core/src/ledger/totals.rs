//! Totals: four sums of entries per account, in 128 bits, so that no history overflows them.

use super::account::Side;
use super::transaction::{Layer, Leg};
use crate::types::asset::Asset;
use crate::types::id::{AccountId, TransactionId};
use crate::types::position::Position;
use crate::types::time::Time;

/// A leg in its account's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountEntry {
    pub transaction: TransactionId,
    pub leg: u16,
    /// The commit of the entry.
    pub position: Position,
    /// The store's time of the commit.
    pub at: Time,
    pub account: AccountId,
    pub side: Side,
    pub layer: Layer,
    /// Minor units, above zero.
    pub amount: i64,
    pub asset: Asset,
}

/// Sums of an account's entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub debits: i128,
    pub credits: i128,
    /// Debits reserved and not yet released.
    pub debits_pending: i128,
    /// Credits reserved and not yet released.
    pub credits_pending: i128,
    /// The number of entries.
    pub entries: u64,
}

/// An account's balance, in terms of its normal side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceAmounts {
    pub posted: i128,
    /// Reserved by holds to go out.
    pub outgoing: i128,
    /// Reserved by holds to come in.
    pub incoming: i128,
    /// The posted balance less outgoing reservations.
    pub available: i128,
}

impl Totals {
    pub fn plus(self, side: Side, layer: Layer, amount: i64) -> Totals {
        // 2^63 amounts of 2^63 would fit, so sums of existing entries cannot overflow.
        let amount = i128::from(amount);
        let mut next = Totals { entries: self.entries.saturating_add(1), ..self };
        let (sum, signed) = match (side, layer) {
            (Side::Debit, Layer::Posted) => (&mut next.debits, amount),
            (Side::Credit, Layer::Posted) => (&mut next.credits, amount),
            (Side::Debit, Layer::Pending) => (&mut next.debits_pending, amount),
            (Side::Credit, Layer::Pending) => (&mut next.credits_pending, amount),
            (Side::Debit, Layer::Released) => (&mut next.debits_pending, amount.saturating_neg()),
            (Side::Credit, Layer::Released) => (&mut next.credits_pending, amount.saturating_neg()),
        };
        *sum = sum.saturating_add(signed);
        next
    }

    pub fn plus_leg(self, leg: &Leg) -> Totals {
        self.plus(leg.side, leg.layer, leg.amount)
    }

    pub fn and(self, other: Totals) -> Totals {
        Totals {
            debits: self.debits.saturating_add(other.debits),
            credits: self.credits.saturating_add(other.credits),
            debits_pending: self.debits_pending.saturating_add(other.debits_pending),
            credits_pending: self.credits_pending.saturating_add(other.credits_pending),
            entries: self.entries.saturating_add(other.entries),
        }
    }

    /// The balance for an account of that normal side.
    pub fn seen_from(&self, normal: Side) -> BalanceAmounts {
        let (raised, lowered, incoming, outgoing) = match normal {
            Side::Credit => (self.credits, self.debits, self.credits_pending, self.debits_pending),
            Side::Debit => (self.debits, self.credits, self.debits_pending, self.credits_pending),
        };
        let posted = raised.saturating_sub(lowered);
        BalanceAmounts { posted, outgoing, incoming, available: posted.saturating_sub(outgoing) }
    }
}

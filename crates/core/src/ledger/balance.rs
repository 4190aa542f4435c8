//! Balances of guarded accounts. Deltas move balances, never past a bound. The store's judge calls
//! [`Balance::moved`] in the commit, so no writer reads, changes and writes back a balance.

use super::account::Side;
use super::transaction::{Layer, Leg};
use crate::types::id::{AccountId, TenantId};

/// One shard of a guarded account's balance, in terms of the account's normal side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    pub tenant: TenantId,
    pub account: AccountId,
    pub shard: u8,
    pub posted: i64,
    /// Reserved by holds to go out.
    pub outgoing: i64,
    /// Reserved by holds to come in.
    pub incoming: i64,
    /// The shard's part of the account's floor.
    pub floor: Option<i64>,
    /// The shard's part of the account's cap.
    pub cap: Option<i64>,
    pub revision: u64,
}

/// The existing bounds of an account. A shard without a row has a part of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarded {
    pub floor: bool,
    pub cap: bool,
}

/// A change of a balance. Parts of floor and cap move only between shards of one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    pub posted: i64,
    /// Change of the reservations to go out.
    pub outgoing: i64,
    /// Change of the reservations to come in.
    pub incoming: i64,
    /// Change of the shard's part of the floor.
    pub floor: i64,
    /// Change of the shard's part of the cap.
    pub cap: i64,
}

/// Why a balance does not allow a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalanceRefusal {
    /// The available balance would fall below the floor.
    Insufficient,
    /// The posted or expected balance would rise above the cap.
    CapExceeded,
    /// The delta releases more than this shard holds.
    NotHeld,
}

impl Delta {
    /// The effect of a leg on an account of that normal side.
    pub fn of(leg: &Leg, normal: Side) -> Delta {
        let raises = leg.side == normal;
        // Amounts of legs are above zero, so the negation exists.
        let (plus, minus) = (leg.amount, leg.amount.saturating_neg());
        let mut delta = Delta::default();
        match (leg.layer, raises) {
            (Layer::Posted, true) => delta.posted = plus,
            (Layer::Posted, false) => delta.posted = minus,
            (Layer::Pending, true) => delta.incoming = plus,
            (Layer::Pending, false) => delta.outgoing = plus,
            (Layer::Released, true) => delta.incoming = minus,
            (Layer::Released, false) => delta.outgoing = minus,
        }
        delta
    }

    /// The sum of both; `None` on overflow.
    pub fn and(self, other: Delta) -> Option<Delta> {
        Some(Delta {
            posted: self.posted.checked_add(other.posted)?,
            outgoing: self.outgoing.checked_add(other.outgoing)?,
            incoming: self.incoming.checked_add(other.incoming)?,
            floor: self.floor.checked_add(other.floor)?,
            cap: self.cap.checked_add(other.cap)?,
        })
    }
}

impl Balance {
    /// A shard without a row.
    pub const fn empty(tenant: TenantId, account: AccountId, shard: u8, guarded: Guarded) -> Balance {
        Balance {
            tenant,
            account,
            shard,
            posted: 0,
            outgoing: 0,
            incoming: 0,
            floor: if guarded.floor { Some(0) } else { None },
            cap: if guarded.cap { Some(0) } else { None },
            revision: 0,
        }
    }

    /// The amount that may still go out, before the floor.
    pub fn available(&self) -> i128 {
        i128::from(self.posted).saturating_sub(i128::from(self.outgoing))
    }

    /// The balance after all expected money has come in.
    pub fn expected(&self) -> i128 {
        i128::from(self.posted).saturating_add(i128::from(self.incoming))
    }

    /// The amount that may go out down to the floor, or down to zero without a floor.
    pub fn spendable(&self) -> i128 {
        let floor = self.floor.map_or(i128::from(i64::MIN), i128::from);
        self.available().saturating_sub(floor).max(0)
    }

    /// The amount that may come in up to the cap.
    pub fn room(&self) -> i128 {
        let cap = self.cap.map_or(i128::from(i64::MAX), i128::from);
        cap.saturating_sub(self.expected()).max(0)
    }

    /// The balance after `delta`. Bounds are checked on the sum of all parts, and only for a delta
    /// that moves towards them. A balance beyond a bound may therefore move back.
    pub fn moved(&self, delta: Delta) -> Result<Balance, BalanceRefusal> {
        let beyond = if delta.posted.is_negative() {
            BalanceRefusal::Insufficient
        } else {
            BalanceRefusal::CapExceeded
        };
        let posted = self.posted.checked_add(delta.posted).ok_or(beyond)?;
        let outgoing = self.outgoing.checked_add(delta.outgoing).ok_or(BalanceRefusal::Insufficient)?;
        let incoming = self.incoming.checked_add(delta.incoming).ok_or(BalanceRefusal::CapExceeded)?;
        if outgoing < 0 || incoming < 0 {
            return Err(BalanceRefusal::NotHeld);
        }
        let floor = match self.floor {
            Some(floor) => Some(floor.checked_add(delta.floor).ok_or(BalanceRefusal::Insufficient)?),
            None => None,
        };
        let cap = match self.cap {
            Some(cap) => Some(cap.checked_add(delta.cap).ok_or(BalanceRefusal::CapExceeded)?),
            None => None,
        };
        let next = Balance {
            posted,
            outgoing,
            incoming,
            floor,
            cap,
            revision: self.revision.saturating_add(1),
            ..*self
        };
        let down = next.available() < self.available() || delta.floor > 0;
        if down && next.floor.is_some_and(|floor| next.available() < i128::from(floor)) {
            return Err(BalanceRefusal::Insufficient);
        }
        let up = next.expected() > self.expected() || delta.cap < 0;
        if up && next.cap.is_some_and(|cap| next.expected() > i128::from(cap)) {
            return Err(BalanceRefusal::CapExceeded);
        }
        Ok(next)
    }
}

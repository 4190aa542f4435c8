//! Balances of guarded accounts: moved by deltas, never past their bounds. The store's judge calls [`Balance::moved`]
//! in the commit; nothing is read, changed and written back.

use super::account::Side;
use super::transaction::{Layer, Leg};
use crate::types::id::{AccountId, TenantId};

/// One shard of a guarded account's balance, in terms of the account's normal side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The account's tenant.
    pub tenant: TenantId,
    /// Whose it is.
    pub account: AccountId,
    /// Which of its shards.
    pub shard: u8,
    /// What was posted.
    pub posted: i64,
    /// What holds have reserved to go out.
    pub outgoing: i64,
    /// What holds may bring in.
    pub incoming: i64,
    /// This shard's part of the account's floor.
    pub floor: Option<i64>,
    /// This shard's part of the account's cap.
    pub cap: Option<i64>,
    /// Grows with every write of the row.
    pub revision: u64,
}

/// Which bounds an account has; their parts in a shard that was never written are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// It has a floor.
    pub floor: bool,
    /// It has a cap.
    pub cap: bool,
}

/// A change of a balance. The parts of floor and cap move only between shards of one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Of what was posted.
    pub posted: i64,
    /// Of what is reserved to go out.
    pub outgoing: i64,
    /// Of what may come in.
    pub incoming: i64,
    /// Of the floor's part.
    pub floor: i64,
    /// Of the cap's part.
    pub cap: i64,
}

/// Why a balance cannot move so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalanceRefusal {
    /// What is available would fall below the floor.
    Insufficient,
    /// What is posted or expected would rise above the cap.
    CapExceeded,
    /// Less is held in this shard than is to be released.
    NotHeld,
}

impl Delta {
    /// What a leg does to an account of that normal side.
    pub fn of(leg: &Leg, normal: Side) -> Delta {
        let raises = leg.side == normal;
        // Amounts of legs are above zero, so their negation exists.
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

    /// Both together; nothing if a sum does not fit.
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
    /// A shard that was never written.
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

    /// What may still go out, before the floor is looked at.
    pub fn available(&self) -> i128 {
        i128::from(self.posted).saturating_sub(i128::from(self.outgoing))
    }

    /// What will be here if everything expected comes.
    pub fn expected(&self) -> i128 {
        i128::from(self.posted).saturating_add(i128::from(self.incoming))
    }

    /// What may go out without touching the floor; nothing if there is none.
    pub fn spendable(&self) -> i128 {
        let floor = self.floor.map_or(i128::from(i64::MIN), i128::from);
        self.available().saturating_sub(floor).max(0)
    }

    /// What may come in without touching the cap.
    pub fn room(&self) -> i128 {
        let cap = self.cap.map_or(i128::from(i64::MAX), i128::from);
        cap.saturating_sub(self.expected()).max(0)
    }

    /// The balance after `delta`. The bounds are judged on the whole of it, and only if it moves towards them: what
    /// is beyond a bound already may come back.
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

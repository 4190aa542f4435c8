//! 63-bit ids: 41 bits of milliseconds since [`EPOCH`], 14 bits of worker slot, 8 bits of sequence.
//!
//! A [`Mint`] works only during its slot's lease. A mint never goes back with the clock, and
//! refuses instead of guessing. A row in the store ([`Slot`]) assigns a slot to a process.

use super::limits::{ID_RUN_AHEAD_MS, IDS_PER_MS, WORKER_SLOTS};
use super::time::{Span, Time};

/// The beginning of the 41 bits: 2025-01-01T00:00:00Z. They last until 2094.
pub const EPOCH: Time = Time::from_ms(1_735_689_600_000);

const SEQUENCE_BITS: u32 = 8;
const SLOT_BITS: u32 = 14;
const MS_MAX: i64 = (1 << 41) - 1;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(i64);

        impl $name {
            /// Wraps a minted or stored number.
            pub const fn from_i64(id: i64) -> $name {
                $name(id)
            }

            /// The number to store. Clients see references instead.
            pub const fn to_i64(self) -> i64 {
                self.0
            }
        }
    )*};
}

id! {
    TenantId,
    ChargeId,
    /// A request on an existing charge: a capture, a void or a refund.
    OperationId,
    PayoutId,
    AccountId,
    /// A ledger transaction.
    TransactionId,
    /// A transfer that is held until it is posted, voided or lapses.
    HoldId,
    /// The object of a claim and of audit records: whatever an idempotency key creates or moves.
    SubjectId,
    /// One atomic change of state, stored with it.
    SetId,
}

macro_rules! subject {
    ($($name:ident),*) => {$(
        impl From<$name> for SubjectId {
            fn from(id: $name) -> SubjectId {
                SubjectId(id.0)
            }
        }

        impl From<SubjectId> for $name {
            fn from(id: SubjectId) -> $name {
                $name(id.0)
            }
        }
    )*};
}

subject!(ChargeId, OperationId, PayoutId, AccountId, TransactionId, HoldId);

/// A stored worker slot: the right to mint ids with its number, until its lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Below [`WORKER_SLOTS`].
    pub number: u16,
    /// Counts the holders of the slot.
    pub epoch: u32,
    /// Ids with this slot have times before this instant.
    pub lease_until: Time,
    pub revision: u64,
}

impl Slot {
    /// A slot without an earlier holder, taken now.
    pub const fn first(number: u16, now: Time, lease: Span) -> Slot {
        Slot { number, epoch: 1, lease_until: now.plus(lease), revision: 1 }
    }

    /// Whether another process may take the slot.
    pub const fn is_free(&self, now: Time) -> bool {
        self.lease_until.ms() <= now.ms()
    }

    /// The slot under a new holder.
    pub const fn taken_over(&self, now: Time, lease: Span) -> Slot {
        Slot { epoch: self.epoch.saturating_add(1), ..self.renewed(now, lease) }
    }

    /// The slot under the same holder, for longer.
    pub const fn renewed(&self, now: Time, lease: Span) -> Slot {
        Slot { lease_until: now.plus(lease), revision: self.revision.saturating_add(1), ..*self }
    }

    /// The current holder. No two processes ever share this value.
    pub const fn holder(&self) -> Holder {
        Holder { slot: self.number, epoch: self.epoch }
    }
}

/// A process that holds a worker slot and therefore may hold leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    pub slot: u16,
    /// The slot's epoch when this process took it.
    pub epoch: u32,
}

impl Holder {
    /// The holder as one number, for the store.
    pub fn to_i64(self) -> i64 {
        (i64::from(self.epoch) << SLOT_BITS) | i64::from(self.slot)
    }

    pub fn from_i64(stored: i64) -> Holder {
        let slot = u16::try_from(stored & i64::from(WORKER_SLOTS.saturating_sub(1))).unwrap_or(0);
        Holder { slot, epoch: u32::try_from(stored >> SLOT_BITS).unwrap_or(0) }
    }
}

/// Mints ids for the holder of one slot.
#[derive(Debug)]
pub struct Mint {
    slot: Slot,
    last_ms: i64,
    sequence: u16,
}

/// Why no id was minted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MintError {
    /// The slot's lease is over or uncertain; renew it first.
    LeaseOver,
    /// The layout has no more ids at this time; wait a moment.
    Exhausted,
    /// The clock is outside the 41 bits.
    ClockOutOfRange,
}

impl Mint {
    /// A mint for a slot of this process. `not_before` is the latest time at which an earlier
    /// holder may have minted.
    pub fn new(slot: Slot, not_before: Time) -> Mint {
        Mint { slot, last_ms: not_before.ms().saturating_sub(EPOCH.ms()), sequence: IDS_PER_MS }
    }

    /// The slot as of its last renewal.
    pub const fn slot(&self) -> Slot {
        self.slot
    }

    /// Takes over a slot renewed in the store.
    pub fn renewed(&mut self, slot: Slot) {
        self.slot = slot;
    }

    /// The next id. Ids always grow, even if the clock goes back.
    pub fn next(&mut self, now: Time) -> Result<i64, MintError> {
        let now_ms = now.ms().saturating_sub(EPOCH.ms());
        let (ms, sequence) = if now_ms > self.last_ms {
            (now_ms, 0)
        } else if self.sequence < IDS_PER_MS.saturating_sub(1) {
            (self.last_ms, self.sequence.saturating_add(1))
        } else {
            (self.last_ms.saturating_add(1), 0)
        };
        if !(0..=MS_MAX).contains(&ms) {
            return Err(MintError::ClockOutOfRange);
        }
        if ms.saturating_sub(now_ms) > ID_RUN_AHEAD_MS {
            return Err(MintError::Exhausted);
        }
        if EPOCH.ms().saturating_add(ms) >= self.slot.lease_until.ms() {
            return Err(MintError::LeaseOver);
        }
        (self.last_ms, self.sequence) = (ms, sequence);
        let high = (ms << (SLOT_BITS + SEQUENCE_BITS)) | (i64::from(self.slot.number) << SEQUENCE_BITS);
        Ok(high | i64::from(sequence))
    }

    /// Mints `count` ids and returns the first; [`nth_after`] computes the others.
    pub fn block(&mut self, now: Time, count: usize) -> Result<i64, MintError> {
        let first = self.next(now)?;
        for _ in 1..count {
            // At the same instant as the first id, so the clock leaves no gap in the block.
            self.next(now)?;
        }
        Ok(first)
    }
}

/// The `n`th id of a block after its first. The sequence counts up before the millisecond does.
pub fn nth_after(first: i64, n: usize) -> Option<i64> {
    const SEQUENCE_MASK: i64 = (1 << SEQUENCE_BITS) - 1;
    let place = (first & SEQUENCE_MASK).checked_add(i64::try_from(n).ok()?)?;
    let ms = (place >> SEQUENCE_BITS).checked_shl(SLOT_BITS + SEQUENCE_BITS)?;
    (first & !SEQUENCE_MASK).checked_add(ms)?.checked_add(place & SEQUENCE_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: Span = Span::from_ms(3_600_000);

    fn mint(now: Time) -> Mint {
        Mint::new(Slot::first(5, now, HOUR), Time::EPOCH)
    }

    #[test]
    fn golden_layout() {
        let now = EPOCH.plus(Span::from_ms(1_000));
        let mut mint = mint(now);
        assert_eq!(mint.next(now), Ok((1_000 << 22) | (5 << 8)));
        assert_eq!(mint.next(now), Ok((1_000 << 22) | (5 << 8) | 1));
        let last = EPOCH.plus(Span::from_ms((1 << 41) - 1));
        let mut top = Mint::new(Slot::first(WORKER_SLOTS - 1, last, HOUR), Time::EPOCH);
        assert_eq!(top.next(last), Ok(i64::MAX - 255));
    }

    #[test]
    fn a_lapsed_lease_mints_nothing() {
        let now = EPOCH.plus(HOUR);
        let mut mint = mint(now);
        assert!(mint.next(now.plus(Span::from_ms(3_599_999))).is_ok());
        assert_eq!(mint.next(now.plus(HOUR)), Err(MintError::LeaseOver));
        let renewed = mint.slot().renewed(now.plus(HOUR), HOUR);
        mint.renewed(renewed);
        assert!(mint.next(now.plus(HOUR)).is_ok());
    }

    #[test]
    fn a_clock_outside_the_layout_mints_nothing() {
        let before = EPOCH.minus(Span::from_ms(1));
        assert_eq!(mint(before).next(before), Err(MintError::ClockOutOfRange));
        let after = EPOCH.plus(Span::from_ms(1 << 41));
        assert_eq!(mint(after).next(after), Err(MintError::ClockOutOfRange));
    }

    #[test]
    fn a_new_holder_starts_above_every_id_of_the_old_one() {
        let now = EPOCH.plus(HOUR);
        let mut old = mint(now);
        let end = old.slot().lease_until;
        let last = old.next(end.minus(Span::from_ms(1))).unwrap();
        let taken = old.slot().taken_over(end, HOUR);
        assert_ne!(taken.holder(), old.slot().holder());
        assert!(Mint::new(taken, end).next(end).unwrap() > last);
    }

    #[test]
    fn a_burst_within_one_millisecond_runs_ahead_up_to_a_bound() {
        let now = EPOCH.plus(HOUR);
        let mut mint = mint(now);
        let allowed = usize::try_from(ID_RUN_AHEAD_MS + 1).unwrap() * usize::from(IDS_PER_MS);
        for _ in 0..allowed {
            mint.next(now).unwrap();
        }
        assert_eq!(mint.next(now), Err(MintError::Exhausted));
    }

    proptest! {
        #[test]
        fn ids_grow_even_if_the_clock_goes_back(steps in prop::collection::vec(-2_000_i64..2_000, 1..200)) {
            let mut now = EPOCH.plus(HOUR);
            let mut mint = Mint::new(Slot::first(1, now, Span::from_ms(1 << 40)), Time::EPOCH);
            let mut last = 0;
            for step in steps {
                now = Time::from_ms(now.ms() + step);
                if let Ok(id) = mint.next(now) {
                    prop_assert!(id > last);
                    last = id;
                }
            }
        }

        #[test]
        fn holders_read_back_from_the_store(slot in 0..WORKER_SLOTS, epoch: u32) {
            let holder = Holder { slot, epoch };
            prop_assert_eq!(Holder::from_i64(holder.to_i64()), holder);
        }
    }
}

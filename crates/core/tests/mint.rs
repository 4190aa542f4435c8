//! Ids and worker slots: no id twice, no gap in a block, no slot with two holders.

#![allow(clippy::unwrap_used, reason = "an invalid fixture must stop its test")]

use counterfoil_core::types::id::{EPOCH, Holder, Mint, MintError, Slot, nth_after};
use counterfoil_core::types::limits::{IDS_PER_MS, WORKER_SLOTS};
use counterfoil_core::types::time::{Span, Time};

const LEASE: Span = Span::from_ms(60_000);

fn at(ms: u64) -> Time {
    EPOCH.plus(Span::from_ms(ms))
}

fn mint(number: u16) -> Mint {
    Mint::new(Slot::first(number, at(1_000), LEASE), Time::EPOCH)
}

#[test]
fn a_slot_is_free_from_the_end_of_its_lease() {
    let slot = Slot::first(3, at(1_000), LEASE);
    assert_eq!(slot, Slot { number: 3, epoch: 1, lease_until: at(61_000), revision: 1 });
    assert!(!slot.is_free(at(60_999)));
    assert!(slot.is_free(at(61_000)));
    assert!(slot.is_free(at(61_001)));
}

#[test]
fn a_renewal_keeps_the_holder_and_a_takeover_does_not() {
    let slot = Slot { number: 3, epoch: 7, lease_until: at(9), revision: 20 };
    let renewed = slot.renewed(at(5), LEASE);
    assert_eq!(renewed, Slot { number: 3, epoch: 7, lease_until: at(60_005), revision: 21 });
    assert_eq!(renewed.holder(), Holder { slot: 3, epoch: 7 });
    let taken = slot.taken_over(at(9), LEASE);
    assert_eq!(taken, Slot { number: 3, epoch: 8, lease_until: at(60_009), revision: 21 });
    assert_eq!(taken.holder(), Holder { slot: 3, epoch: 8 });
}

#[test]
fn a_holder_is_stored_as_epoch_and_slot() {
    for (holder, stored) in [
        (Holder { slot: 0, epoch: 0 }, 0),
        (Holder { slot: 5, epoch: 0 }, 5),
        (Holder { slot: 0, epoch: 1 }, 16_384),
        (Holder { slot: WORKER_SLOTS - 1, epoch: 2 }, 3 * 16_384 - 1),
        (Holder { slot: WORKER_SLOTS - 1, epoch: u32::MAX }, (1 << 46) - 1),
    ] {
        assert_eq!(holder.to_i64(), stored);
        assert_eq!(Holder::from_i64(stored), holder);
    }
}

#[test]
fn ids_of_one_instant_count_up_the_sequence_then_the_millisecond() {
    let mut mint = mint(5);
    let first = (1_000 << 22) | (5 << 8);
    for sequence in 0..i64::from(IDS_PER_MS) {
        assert_eq!(mint.next(at(1_000)), Ok(first | sequence));
    }
    assert_eq!(mint.next(at(1_000)), Ok(first + (1 << 22)));
    assert_eq!(mint.next(at(1_000)), Ok(first + (1 << 22) + 1));
    assert_eq!(mint.next(at(1_001)), Ok(first + (1 << 22) + 2), "the millisecond was begun already");
    assert_eq!(mint.next(at(1_002)), Ok(first + (2 << 22)));
}

#[test]
fn a_mint_begins_above_the_ids_of_the_previous_holder() {
    let slot = Slot::first(5, at(1_000), LEASE);
    let mut late = Mint::new(slot, at(1_500));
    assert_eq!(late.next(at(1_000)), Ok((1_501 << 22) | (5 << 8)));
    assert_eq!(late.slot(), slot);
}

#[test]
fn ids_of_a_block_follow_the_first_and_are_never_reused() {
    for count in [1, 2, 255, 256, 257, 600] {
        let mut whole = mint(5);
        whole.next(at(1_000)).unwrap();
        let first = whole.block(at(1_000), count).unwrap();
        let mut single = mint(5);
        single.next(at(1_000)).unwrap();
        for n in 0..count {
            assert_eq!(nth_after(first, n), single.next(at(1_000)).ok(), "{n} of {count}");
        }
        assert_eq!(whole.next(at(1_000)), single.next(at(1_000)), "after {count}");
    }
}

#[test]
fn a_block_beyond_the_lease_is_refused() {
    let mut mint = mint(5);
    assert_eq!(mint.block(at(60_999), 257), Err(MintError::LeaseOver));
    assert_eq!(mint.block(at(61_000), 1), Err(MintError::LeaseOver));
}

#[test]
fn an_id_beyond_the_layout_does_not_exist() {
    assert_eq!(nth_after(i64::MAX, 0), Some(i64::MAX));
    assert_eq!(nth_after(i64::MAX, 1), None);
    assert_eq!(nth_after(0, usize::MAX), None);
    assert_eq!(nth_after(255, 1), Some(1 << 22));
    assert_eq!(nth_after(254, 1), Some(255));
}

//! The snapshot to drop when there are too many, and the readers of the feed.

#![allow(clippy::expect_used, reason = "an invalid fixture must stop its test")]

use counterfoil_core::ledger::snapshot::{FeedReader, Snapshot, snapshot_to_drop};
use counterfoil_core::ledger::totals::Totals;
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_core::types::limits::SNAPSHOTS_MAX;
use counterfoil_core::types::position::Position;
use counterfoil_core::types::time::Time;
use proptest::prelude::*;

/// A snapshot after a number of entries, identified by position.
fn after(entries: u64, position: u64) -> Snapshot {
    let totals = Totals { entries, ..Totals::default() };
    let tenant = TenantId::from_i64(2);
    Snapshot {
        tenant,
        account: AccountId::from_i64(1),
        position: Position(position),
        at: Time::EPOCH,
        totals,
    }
}

/// Newest first, positions counted down from 100.
fn history(entries: &[u64]) -> Vec<Snapshot> {
    entries.iter().zip((0..=100).rev()).map(|(entries, position)| after(*entries, position)).collect()
}

/// Evenly spaced, the oldest after one entry.
fn even(count: usize, gap: u64) -> Vec<u64> {
    (0..).map(|place| 1 + place * gap).take(count).collect::<Vec<_>>().into_iter().rev().collect()
}

#[test]
fn no_snapshot_is_dropped_while_there_is_room() {
    for count in [0, 1, SNAPSHOTS_MAX - 1] {
        assert_eq!(snapshot_to_drop(&after(10_000, 200), &history(&even(count, 10))), None, "{count}");
    }
    assert!(snapshot_to_drop(&after(10_000, 200), &history(&even(SNAPSHOTS_MAX, 10))).is_some());
}

#[test]
fn the_oldest_of_evenly_spaced_snapshots_is_dropped() {
    let older = history(&even(SNAPSHOTS_MAX, 10));
    let next = after(older[0].totals.entries + 10, 200);
    assert_eq!(snapshot_to_drop(&next, &older), Some(older[SNAPSHOTS_MAX - 2].position));
}

#[test]
fn a_crowded_snapshot_is_dropped_before_older_ones() {
    let mut entries = even(SNAPSHOTS_MAX, 1_000);
    // The third newest snapshot moves next to its older neighbour: a gap of two where others have 2
    // 000.
    entries[2] = entries[4] + 2;
    entries[3] = entries[4] + 1;
    let older = history(&entries);
    let next = after(entries[0] + 1_000, 200);
    assert_eq!(snapshot_to_drop(&next, &older), Some(older[3].position));
}

#[test]
fn the_younger_of_equally_crowded_snapshots_is_dropped() {
    // As many entries as the newest snapshot: every gap is zero, and so is every ratio.
    let older = history(&[100; SNAPSHOTS_MAX]);
    assert_eq!(snapshot_to_drop(&after(100, 200), &older), Some(older[0].position));
}

/// Gap and age of each snapshot with two neighbours.
fn ratios(next: &Snapshot, older: &[Snapshot]) -> Vec<(u64, u64)> {
    let entries: Vec<u64> =
        std::iter::once(next).chain(older).map(|snapshot| snapshot.totals.entries).collect();
    entries.windows(3).map(|three| (three[0] - three[2], (entries[0] - three[1]).max(1))).collect()
}

/// The first snapshot with the least ratio, by comparing all pairs as exact fractions.
fn naive(next: &Snapshot, older: &[Snapshot]) -> Option<Position> {
    let ratios = ratios(next, older);
    let fraction = |(gap, age): (u64, u64)| (u128::from(gap), u128::from(age));
    let first = ratios.iter().position(|one| {
        let (gap, age) = fraction(*one);
        ratios.iter().all(|other| {
            let (other_gap, other_age) = fraction(*other);
            gap * other_age <= other_gap * age
        })
    });
    first.and_then(|place| older.get(place)).map(|snapshot| snapshot.position)
}

#[test]
fn the_feed_reader_has_its_name() {
    assert_eq!(FeedReader::Projection.name(), "projection");
    assert_eq!(FeedReader::parse("projection"), Some(FeedReader::Projection));
    assert_eq!(FeedReader::parse("Projection"), None);
    assert_eq!(FeedReader::parse(""), None);
}

proptest! {
    #[test]
    fn the_snapshot_with_the_least_gap_for_its_age_is_dropped(
        gaps in prop::collection::vec(prop_oneof![Just(0), 1..5_u64, 1..1_000_000_u64], SNAPSHOTS_MAX + 1),
    ) {
        let entries: Vec<u64> = gaps
            .iter()
            .scan(0, |sum, gap| {
                *sum += gap;
                Some(*sum)
            })
            .collect();
        let (newest, older) = entries.split_last().expect("one more than the most");
        let older: Vec<u64> = older.iter().rev().copied().collect();
        let (next, older) = (after(*newest, 200), history(&older));
        prop_assert_eq!(snapshot_to_drop(&next, &older), naive(&next, &older));
    }
}

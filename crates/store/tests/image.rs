//! The image that a group of sets is judged against: its knowledge, its eviction, and the size of a
//! set.

#![allow(clippy::unwrap_used, reason = "an invalid fixture must stop its test")]

use counterfoil_core::types::limits::CHANGES_PER_SET_MAX;
use counterfoil_store::conformance::fixtures::{TENANT, charge, charge_id, set};
use counterfoil_store::judge::{Image, judge};
use counterfoil_store::{ChangeSet, RefusalReason, Row, RowKey};

fn key(number: i64) -> RowKey {
    RowKey::Charge(TENANT, charge_id(number))
}

#[test]
fn absence_is_known_once_it_was_added() {
    let mut image = Image::default();
    assert!(!image.knows(&key(1)));
    image.bring(key(1), None::<Row>);
    assert!(image.knows(&key(1)));
    assert_eq!(image.get(&key(1)), None);
    image.bring(key(2), Some(Row::from(charge(2))));
    assert_eq!(image.get(&key(2)), Some(&Row::from(charge(2))));
    assert!(!image.knows(&key(3)));
}

#[test]
fn an_image_drops_rows_that_are_not_kept() {
    let mut image = Image::default();
    for number in 1..=3 {
        image.bring(key(number), Some(Row::from(charge(number))));
    }
    assert_eq!(image.keep(|kept| *kept != key(2)), 2);
    assert!(image.knows(&key(1)) && !image.knows(&key(2)) && image.knows(&key(3)));
    image.clear();
    assert!(!image.knows(&key(1)) && !image.knows(&key(3)));
    assert_eq!(image.keep(|_| true), 0);
}

#[test]
fn a_set_has_a_largest_size() {
    let of = |count: usize| (1..).take(count).map(charge).fold(set(1), ChangeSet::insert);
    let image = Image::default();
    assert_eq!(judge(&image, &of(CHANGES_PER_SET_MAX)), Ok(()));
    for count in [0, CHANGES_PER_SET_MAX + 1] {
        let refusal = judge(&image, &of(count)).unwrap_err();
        assert_eq!(
            (refusal.change, refusal.reason, refusal.found),
            (0, RefusalReason::Malformed, None),
            "{count}"
        );
    }
}

#[test]
fn a_removed_row_is_absent_for_the_next_set() {
    let mut image = Image::default();
    image.admit(&set(1).insert(charge(1))).unwrap();
    assert_eq!(image.get(&key(1)), Some(&Row::from(charge(1))));
    let again = image.admit(&set(2).insert(charge(1))).unwrap_err();
    assert_eq!((again.reason, again.found), (RefusalReason::Present, Some(charge(1).into())));
}

//! The judge alone: its refusal reasons in order of precedence, and the image of a group.

use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::ledger::balance::{Balance, Delta, Guarded};
use counterfoil_core::payments::charge::{Charge, ChargeStatus};
use counterfoil_core::types::limits::CHANGES_PER_SET_MAX;
use counterfoil_store::conformance::fixtures::ledger::{
    BOTH, FLOOR, account_id, moving, opened, outgoing, posted,
};
use counterfoil_store::conformance::fixtures::{
    TENANT, at, charge, charge_id, claim, claim_in, outbox, set, settled,
};
use counterfoil_store::judge::{Image, judge};
use counterfoil_store::{ChangeSet, CommitRefusal, RefusalReason, Row, RowKey};

fn image(rows: &[Row]) -> Image {
    let mut image = Image::default();
    for row in rows {
        image.bring(row.key(), Some(row.clone()));
    }
    image
}

fn reason(image: &Image, set: &ChangeSet) -> Option<(usize, RefusalReason)> {
    judge(image, set).err().map(|refusal| (refusal.change, refusal.reason))
}

fn charge_at(number: i64, status: ChargeStatus, revision: u64) -> Charge {
    Charge { status, revision, ..charge(number) }
}

#[test]
fn malformed_precedes_every_other_reason() {
    let image = image(&[charge(1).into()]);
    // The first change alone would be refused as present.
    let twice = set(1).insert(charge(1)).insert(charge(2)).insert(charge(2));
    assert_eq!(reason(&image, &twice), Some((2, RefusalReason::Malformed)));
    let long = (1..=100).map(charge).fold(set(1), ChangeSet::insert);
    assert_eq!(reason(&image, &long), Some((0, RefusalReason::Malformed)));
    assert_eq!(reason(&image, &set(1)), Some((0, RefusalReason::Malformed)));
    let refusal = judge(&image, &twice).unwrap_err();
    assert_eq!(refusal.found, None, "a malformed set is not held against any row");
}

#[test]
fn a_set_as_long_as_allowed_commits() {
    let longest = (1..).map(charge).take(CHANGES_PER_SET_MAX).fold(set(1), ChangeSet::insert);
    assert_eq!(reason(&image(&[]), &longest), None);
}

#[test]
fn too_many_changes_precede_a_duplicate() {
    let long = (1..=99).map(charge).fold(set(1), ChangeSet::insert).insert(charge(1));
    assert_eq!(reason(&image(&[]), &long), Some((0, RefusalReason::Malformed)));
}

#[test]
fn stale_precedes_an_illegal_move() {
    let image = image(&[charge_at(1, ChargeStatus::Succeeded, 5).into()]);
    let illegal = charge_at(1, ChargeStatus::Failed, 6);
    let replace = |expect| set(1).replace(illegal.clone(), expect);
    assert_eq!(reason(&image, &replace(4)), Some((0, RefusalReason::Stale)));
    assert_eq!(reason(&image, &replace(5)), Some((0, RefusalReason::IllegalMove)));
    let remove = |expect| set(1).remove(RowKey::Charge(TENANT, charge_id(1)), expect);
    assert_eq!(reason(&image, &remove(4)), Some((0, RefusalReason::Stale)));
    assert_eq!(reason(&image, &remove(5)), Some((0, RefusalReason::IllegalMove)));
}

#[test]
fn absent_precedes_stale_and_illegal() {
    let none = image(&[]);
    let replace = set(1).replace(charge_at(1, ChargeStatus::Failed, 1), 1);
    assert_eq!(reason(&none, &replace), Some((0, RefusalReason::Absent)));
    assert_eq!(
        reason(&none, &set(1).remove(RowKey::Charge(TENANT, charge_id(1)), 1)),
        Some((0, RefusalReason::Absent))
    );
}

#[test]
fn an_earlier_change_is_refused_before_a_later_one() {
    let image = image(&[charge(1).into(), charge(2).into()]);
    let sets = [
        (
            set(1).remove(RowKey::Charge(TENANT, charge_id(2)), 1).insert(charge(1)),
            RefusalReason::IllegalMove,
        ),
        (set(1).insert(charge(1)).remove(RowKey::Charge(TENANT, charge_id(2)), 1), RefusalReason::Present),
        (set(1).replace(outbox(9), 1).insert(charge(1)), RefusalReason::Absent),
    ];
    for (set, first) in sets {
        assert_eq!(reason(&image, &set), Some((0, first)));
    }
}

#[test]
fn a_refusal_contains_the_row_found() {
    let there = Row::from(charge_at(1, ChargeStatus::Processing, 5));
    let image = image(std::slice::from_ref(&there));
    for (set, reason) in [
        (set(1).insert(charge(1)), RefusalReason::Present),
        (set(1).replace(charge_at(1, ChargeStatus::Failed, 6), 4), RefusalReason::Stale),
        (set(1).replace(charge_at(1, ChargeStatus::Failed, 5), 5), RefusalReason::IllegalMove),
        (set(1).remove(there.key(), 5), RefusalReason::IllegalMove),
    ] {
        let expected = CommitRefusal { change: 0, reason, found: Some(there.clone()) };
        assert_eq!(judge(&image, &set), Err(Box::new(expected)));
    }
}

#[test]
fn later_sets_see_admitted_writes_only() {
    let mut image = Image::default();
    image.admit(&set(1).insert(claim(1)).insert(outbox(1))).unwrap();
    assert_eq!(image.get(&RowKey::Claim(TENANT, claim(1).id)), Some(&claim(1).into()));
    let refused = set(2).insert(charge(2)).insert(claim(1));
    assert_eq!(
        image.admit(&refused).unwrap_err(),
        Box::new(CommitRefusal { change: 1, reason: RefusalReason::Present, found: Some(claim(1).into()) })
    );
    assert_eq!(image.get(&RowKey::Charge(TENANT, charge_id(2))), None);
    let done = claim_in(1, ClaimState::Completed(settled(b"", at(1))));
    let done = Claim { revision: 2, ..done };
    image.admit(&set(3).replace(done, 1).remove(RowKey::Outbox(TENANT, charge_id(1).into()), 1)).unwrap();
    assert!(image.knows(&RowKey::Outbox(TENANT, charge_id(1).into())));
    assert_eq!(image.get(&RowKey::Outbox(TENANT, charge_id(1).into())), None);
    image.admit(&set(4).insert(outbox(1))).unwrap();
    image.clear();
    assert!(!image.knows(&RowKey::Outbox(TENANT, charge_id(1).into())));
}

#[test]
fn malformed_precedes_a_refused_move() {
    let image = image(&[opened(1, Some(0), None).into()]);
    let debit = || moving(1, FLOOR, posted(-1));
    let twice = set(1).shift(debit()).insert(charge(1)).shift(debit());
    assert_eq!(reason(&image, &twice), Some((2, RefusalReason::Malformed)));
    assert_eq!(reason(&image, &set(1).shift(debit())), Some((0, RefusalReason::Insufficient)));
}

#[test]
fn present_precedes_the_check_of_a_new_balance() {
    let rich = Balance { posted: 1, ..opened(1, None, None) };
    assert_eq!(reason(&image(&[]), &set(1).insert(rich)), Some((0, RefusalReason::IllegalMove)));
    let there = image(&[opened(1, Some(0), None).into()]);
    assert_eq!(reason(&there, &set(1).insert(rich)), Some((0, RefusalReason::Present)));
    let replaced = set(1).replace(Balance { revision: 2, ..opened(1, Some(0), None) }, 7);
    assert_eq!(reason(&there, &replaced), Some((0, RefusalReason::Stale)));
}

#[test]
fn not_held_precedes_both_bounds() {
    let beyond = Balance { posted: -5, ..opened(1, Some(0), Some(-9)) };
    let image = image(&[beyond.into()]);
    let release = |posted| Delta { posted, ..outgoing(-1) };
    for posted in [-1, 0, 1] {
        let set = set(1).shift(moving(1, BOTH, release(posted)));
        assert_eq!(reason(&image, &set), Some((0, RefusalReason::NotHeld)), "{posted}");
    }
}

#[test]
fn a_move_is_judged_by_the_stored_bounds() {
    let unbound = image(&[opened(1, None, None).into()]);
    assert_eq!(reason(&unbound, &set(1).shift(moving(1, BOTH, posted(-9)))), None);
    let bound = image(&[opened(1, Some(0), None).into()]);
    let none = Guarded { floor: false, cap: false };
    assert_eq!(
        reason(&bound, &set(1).shift(moving(1, none, posted(-9)))),
        Some((0, RefusalReason::Insufficient))
    );
}

#[test]
fn later_sets_see_admitted_moves_only() {
    let mut image = image(&[opened(1, Some(0), None).into()]);
    let key = RowKey::Balance(TENANT, account_id(1), 0);
    let at = |posted, revision| Row::from(Balance { posted, revision, ..opened(1, Some(0), None) });
    image.admit(&set(1).shift(moving(1, FLOOR, posted(10)))).unwrap();
    image.admit(&set(2).shift(moving(1, FLOOR, posted(-7)))).unwrap();
    assert_eq!(image.get(&key), Some(&at(3, 3)));
    let refused = image.admit(&set(3).insert(claim(1)).shift(moving(1, FLOOR, posted(-4)))).unwrap_err();
    let expected = CommitRefusal { change: 1, reason: RefusalReason::Insufficient, found: Some(at(3, 3)) };
    assert_eq!(*refused, expected);
    assert_eq!(image.get(&RowKey::Claim(TENANT, claim(1).id)), None);
    image.admit(&set(4).shift(moving(1, FLOOR, posted(-3)))).unwrap();
    assert_eq!(image.get(&key), Some(&at(0, 4)));
}

#[test]
fn an_image_keeps_selected_rows_and_counts_them() {
    let mut image = image(&[charge(1).into(), charge(2).into(), charge(3).into()]);
    image.bring(RowKey::Charge(TENANT, charge_id(4)), None::<Row>);
    let dropped = RowKey::Charge(TENANT, charge_id(2));
    assert_eq!(image.keep(|key| *key != dropped), 3, "known absences count");
    assert!(!image.knows(&dropped));
    assert!(image.knows(&RowKey::Charge(TENANT, charge_id(4))));
    assert_eq!(image.get(&RowKey::Charge(TENANT, charge_id(1))), Some(&Row::from(charge(1))));
    assert_eq!(image.keep(|_| false), 0);
}

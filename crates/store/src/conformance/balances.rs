//! Balances change by deltas that the commit judges. No move passes a bound, and no writer replaces
//! a balance.

use super::ask::{balance, commit, refusal, refused, row, rows, together};
use super::fixtures::ledger::{
    BOTH, CAP, FLOOR, account_id, incoming, moving, opened, outgoing, posted, transaction_id, transfer,
};
use super::fixtures::{TENANT, claim, set};
use crate::change::{ChangeSet, Move};
use crate::port::{CommitReceipt, CommitRefusal, RefusalReason, Store};
use crate::row::{Row, RowKey};
use counterfoil_core::ledger::balance::{Balance, Delta, Guarded};
use std::sync::Arc;
use tokio::task::{JoinSet, yield_now};

const ONE: RowKey = RowKey::Balance(TENANT, account_id(1), 0);

/// Opens account 1 with these bounds and posts an amount to it.
async fn begin<S: Store>(store: &Arc<S>, floor: Option<i64>, cap: Option<i64>, amount: i64) -> Balance {
    commit(&**store, set(900).insert(opened(1, floor, cap))).await;
    let guarded = Guarded { floor: floor.is_some(), cap: cap.is_some() };
    commit(&**store, set(901).shift(moving(1, guarded, posted(amount)))).await;
    let expected = Balance { posted: amount, revision: 2, ..opened(1, floor, cap) };
    assert_eq!(balance(&**store, account_id(1)).await, Some(expected));
    expected
}

/// Moves account 1 by `delta` and expects the balance that the pure rule computes.
async fn moves<S: Store>(store: &Arc<S>, number: i64, delta: Delta) {
    let before = balance(&**store, account_id(1)).await.expect("the balance has begun");
    commit(&**store, set(number).shift(moving(1, BOTH, delta))).await;
    let after = before.moved(delta).expect("a move that fits");
    assert_eq!(balance(&**store, account_id(1)).await, Some(after), "{delta:?}");
}

/// Expects a refusal of a move of account 1, with this reason and the balance found.
async fn stays<S: Store>(store: &Arc<S>, delta: Delta, reason: RefusalReason) {
    let before = row(&**store, ONE).await;
    assert!(before.is_some(), "the balance has begun");
    let found = refused(&**store, set(999).shift(moving(1, BOTH, delta)), reason).await;
    assert_eq!(found, before, "{delta:?}");
    assert_eq!(row(&**store, ONE).await, before, "{delta:?}");
}

pub async fn a_move_creates_an_unwritten_shard<S: Store>(store: &Arc<S>) {
    let shards = [(FLOOR, Some(0), None), (CAP, None, Some(0)), (BOTH, Some(0), Some(0))];
    for (number, (guarded, floor, cap)) in (1..).zip(shards) {
        for shard in [0, 1, u8::MAX] {
            let delta = if guarded.cap { incoming(0) } else { posted(5) };
            let motion = Move { shard, ..moving(number, guarded, delta) };
            commit(&**store, set(number * 1_000 + i64::from(shard)).shift(motion)).await;
            let expected = Balance { shard, posted: delta.posted, ..opened(number, floor, cap) };
            let key = RowKey::Balance(TENANT, account_id(number), shard);
            assert_eq!(row(&**store, key).await, Some(expected.into()));
        }
    }
}

pub async fn an_unwritten_shard_refuses_moves_beyond_its_empty_bounds<S: Store>(store: &Arc<S>) {
    for (guarded, delta, reason) in [
        (FLOOR, posted(-1), RefusalReason::Insufficient),
        (FLOOR, outgoing(1), RefusalReason::Insufficient),
        (CAP, posted(1), RefusalReason::CapExceeded),
        (CAP, incoming(1), RefusalReason::CapExceeded),
        (BOTH, outgoing(-1), RefusalReason::NotHeld),
        (BOTH, incoming(-1), RefusalReason::NotHeld),
    ] {
        let found = refused(&**store, set(1).shift(moving(1, guarded, delta)), reason).await;
        assert_eq!(found, None, "there is no balance to tell: {delta:?}");
        assert_eq!(balance(&**store, account_id(1)).await, None);
    }
}

pub async fn a_debit_below_the_floor_finds_the_balance<S: Store>(store: &Arc<S>) {
    begin(store, Some(-50), None, 100).await;
    stays(store, posted(-151), RefusalReason::Insufficient).await;
    moves(store, 1, posted(-150)).await;
    stays(store, posted(-1), RefusalReason::Insufficient).await;
}

pub async fn a_credit_above_the_cap_finds_the_balance<S: Store>(store: &Arc<S>) {
    begin(store, None, Some(100), 40).await;
    stays(store, posted(61), RefusalReason::CapExceeded).await;
    moves(store, 1, posted(60)).await;
    stays(store, posted(1), RefusalReason::CapExceeded).await;
}

pub async fn more_than_is_held_is_not_released<S: Store>(store: &Arc<S>) {
    begin(store, Some(0), Some(100), 50).await;
    stays(store, outgoing(-1), RefusalReason::NotHeld).await;
    stays(store, incoming(-1), RefusalReason::NotHeld).await;
    moves(store, 1, Delta { incoming: 20, ..outgoing(30) }).await;
    stays(store, outgoing(-31), RefusalReason::NotHeld).await;
    stays(store, incoming(-21), RefusalReason::NotHeld).await;
    moves(store, 2, Delta { incoming: -20, ..outgoing(-30) }).await;
}

pub async fn holds_count_against_floor_and_cap<S: Store>(store: &Arc<S>) {
    begin(store, Some(0), Some(100), 60).await;
    moves(store, 1, outgoing(45)).await;
    // 15 are available: an amount reserved to go out cannot go out twice.
    stays(store, outgoing(16), RefusalReason::Insufficient).await;
    stays(store, posted(-16), RefusalReason::Insufficient).await;
    moves(store, 2, incoming(30)).await;
    // 90 are expected: incoming reservations count against the cap.
    stays(store, incoming(11), RefusalReason::CapExceeded).await;
    stays(store, posted(11), RefusalReason::CapExceeded).await;
    // Incoming money is not available yet, and outgoing money is not gone yet.
    stays(store, outgoing(16), RefusalReason::Insufficient).await;
    moves(store, 3, Delta { incoming: 10, ..outgoing(15) }).await;
}

pub async fn the_whole_delta_is_judged_and_not_its_parts<S: Store>(store: &Arc<S>) {
    begin(store, Some(0), Some(100), 100).await;
    moves(store, 1, outgoing(100)).await;
    // Posting a hold: each part of the delta alone would pass a bound.
    moves(store, 2, Delta { outgoing: -100, ..posted(-60) }).await;
    moves(store, 3, incoming(60)).await;
    moves(store, 4, Delta { incoming: -60, ..posted(60) }).await;
    // Each part of the delta alone would fit.
    stays(store, Delta { outgoing: 60, ..posted(-60) }, RefusalReason::Insufficient).await;
    moves(store, 5, posted(-50)).await;
    stays(store, Delta { incoming: 40, ..posted(40) }, RefusalReason::CapExceeded).await;
}

pub async fn a_balance_beyond_its_bound_may_move_back<S: Store>(store: &Arc<S>) {
    // The floor is above zero and the cap below it, so the account starts beyond both.
    commit(&**store, set(1).insert(opened(1, Some(100), None))).await;
    stays(store, posted(-1), RefusalReason::Insufficient).await;
    moves(store, 2, posted(99)).await;
    stays(store, outgoing(1), RefusalReason::Insufficient).await;
    moves(store, 3, posted(1)).await;
    stays(store, posted(-1), RefusalReason::Insufficient).await;
    commit(&**store, set(4).insert(opened(2, None, Some(-100)))).await;
    let credit = set(5).shift(moving(2, CAP, posted(1)));
    refused(&**store, credit, RefusalReason::CapExceeded).await;
    commit(&**store, set(6).shift(moving(2, CAP, posted(-60)))).await;
    let expected = Balance { posted: -60, revision: 2, ..opened(2, None, Some(-100)) };
    assert_eq!(balance(&**store, account_id(2)).await, Some(expected));
}

pub async fn sums_that_do_not_fit_are_refused_and_never_wrap<S: Store>(store: &Arc<S>) {
    begin(store, None, None, i64::MAX).await;
    stays(store, posted(1), RefusalReason::CapExceeded).await;
    stays(store, posted(i64::MAX), RefusalReason::CapExceeded).await;
    moves(store, 1, posted(i64::MIN)).await;
    moves(store, 2, posted(i64::MIN + 1)).await;
    stays(store, posted(-1), RefusalReason::Insufficient).await;
    stays(store, posted(i64::MIN), RefusalReason::Insufficient).await;
    moves(store, 3, Delta { incoming: i64::MAX, ..outgoing(i64::MAX) }).await;
    stays(store, outgoing(1), RefusalReason::Insufficient).await;
    stays(store, incoming(1), RefusalReason::CapExceeded).await;
    stays(store, outgoing(i64::MIN), RefusalReason::NotHeld).await;
}

pub async fn bounds_at_the_edges_of_64_bits_are_kept<S: Store>(store: &Arc<S>) {
    begin(store, Some(i64::MIN), Some(i64::MAX), i64::MIN).await;
    // The available balance would fall below the range of 64 bits.
    stays(store, outgoing(1), RefusalReason::Insufficient).await;
    stays(store, posted(-1), RefusalReason::Insufficient).await;
    moves(store, 1, incoming(i64::MAX)).await;
    moves(store, 2, posted(i64::MAX)).await;
    moves(store, 3, posted(1)).await;
    stays(store, posted(1), RefusalReason::CapExceeded).await;
    stays(store, Delta { floor: -1, ..posted(0) }, RefusalReason::Insufficient).await;
    stays(store, Delta { cap: 1, ..posted(0) }, RefusalReason::CapExceeded).await;
}

pub async fn parts_of_a_bound_move_between_shards<S: Store>(store: &Arc<S>) {
    begin(store, Some(-100), Some(100), 0).await;
    let other = |delta| Move { shard: 1, ..moving(1, BOTH, delta) };
    let part = |floor, cap| Delta { floor, cap, ..posted(0) };
    let moved = set(1).shift(moving(1, BOTH, part(60, -70))).shift(other(part(-60, 70)));
    commit(&**store, moved).await;
    let expected = Balance { shard: 1, ..opened(1, Some(-60), Some(70)) };
    let key = RowKey::Balance(TENANT, account_id(1), 1);
    assert_eq!(row(&**store, key.clone()).await, Some(expected.into()));
    stays(store, posted(-41), RefusalReason::Insufficient).await;
    stays(store, posted(31), RefusalReason::CapExceeded).await;
    // A shard cannot give away a needed part of a bound.
    moves(store, 2, posted(-40)).await;
    stays(store, part(1, 0), RefusalReason::Insufficient).await;
    moves(store, 3, posted(70)).await;
    stays(store, part(0, -1), RefusalReason::CapExceeded).await;
    commit(&**store, set(4).shift(other(posted(-60)))).await;
    let expected = Balance { posted: -60, revision: 2, ..expected };
    assert_eq!(row(&**store, key).await, Some(expected.into()));
}

pub async fn moves_of_one_group_see_each_other<S: Store>(store: &Arc<S>) {
    begin(store, Some(0), None, 50).await;
    // All moves fit in any order: 50 covers every debit before the first credit.
    let amounts = (1..=100_i64).map(|number| if number % 2 == 0 { 3 } else { -1 });
    let sets = (1..).zip(amounts).map(|(number, amount)| set(number).shift(moving(1, FLOOR, posted(amount))));
    for answer in together(store, sets.collect()).await {
        answer.expect("a move that fits");
    }
    let expected = Balance { posted: 150, revision: 102, ..opened(1, Some(0), None) };
    assert_eq!(balance(&**store, account_id(1)).await, Some(expected));
}

/// Two hundred writers of the same account with separate transactions.
async fn crowd<S: Store>(
    store: &Arc<S>,
    guarded: Guarded,
    amount: i64,
) -> Vec<Result<CommitReceipt, Box<CommitRefusal>>> {
    let sets = (1..=200).map(|number| {
        set(number).insert(transfer(number, 1, 2, amount.abs())).shift(moving(1, guarded, posted(amount)))
    });
    together(store, sets.collect()).await
}

/// Expects that exactly `fit` sets were committed. Every other set was refused for `reason` with
/// the balance at its bound, and wrote nothing.
async fn exactly<S: Store>(
    store: &Arc<S>,
    answers: Vec<Result<CommitReceipt, Box<CommitRefusal>>>,
    fit: usize,
    reason: RefusalReason,
    last: Balance,
) {
    assert_eq!(balance(&**store, account_id(1)).await, Some(last));
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), fit);
    let keys = (1..=200).map(|number| RowKey::Transaction(TENANT, transaction_id(number))).collect();
    for (answer, written) in answers.into_iter().zip(rows(&**store, keys).await) {
        assert_eq!(written.is_some(), answer.is_ok(), "{answer:?}");
        if let Err(refusal) = answer {
            assert_eq!(*refusal, CommitRefusal { change: 1, reason, found: Some(last.into()) });
        }
    }
}

pub async fn two_hundred_debits_stop_at_the_floor<S: Store>(store: &Arc<S>) {
    let first = begin(store, Some(-3), None, 1_000).await;
    let answers = crowd(store, FLOOR, -10).await;
    let last = Balance { posted: 0, revision: 102, ..first };
    exactly(store, answers, 100, RefusalReason::Insufficient, last).await;
}

pub async fn two_hundred_credits_stop_at_the_cap<S: Store>(store: &Arc<S>) {
    let first = begin(store, None, Some(1_009), 0).await;
    let answers = crowd(store, CAP, 10).await;
    let last = Balance { posted: 1_000, revision: 102, ..first };
    exactly(store, answers, 100, RefusalReason::CapExceeded, last).await;
}

pub async fn a_refused_move_leaves_nothing_of_its_set<S: Store>(store: &Arc<S>) {
    let first = begin(store, Some(0), None, 100).await;
    // Every change before the last one is valid, including a move of another account.
    let almost = set(1)
        .insert(claim(1))
        .insert(transfer(1, 1, 2, 101))
        .shift(moving(2, FLOOR, posted(101)))
        .shift(moving(1, FLOOR, posted(-101)));
    let expected =
        CommitRefusal { change: 3, reason: RefusalReason::Insufficient, found: Some(first.into()) };
    assert_eq!(refusal(&**store, almost.clone()).await, expected);
    let keys: Vec<RowKey> = almost.changes().iter().map(crate::change::Change::key).collect();
    assert_eq!(rows(&**store, keys).await, [None, None, None, Some(first.into())]);
    assert_eq!(store.committed(almost.id()).await, Ok(None));
    // A move is also undone if a later change of the set is refused.
    commit(&**store, set(2).insert(claim(2))).await;
    let late = set(3).shift(moving(1, FLOOR, posted(-1))).insert(claim(2));
    let expected = CommitRefusal { change: 1, reason: RefusalReason::Present, found: Some(claim(2).into()) };
    assert_eq!(refusal(&**store, late).await, expected);
    assert_eq!(balance(&**store, account_id(1)).await, Some(first));
}

pub async fn a_refused_move_leaves_its_neighbours_alone<S: Store>(store: &Arc<S>) {
    begin(store, Some(0), None, 100).await;
    let sets: Vec<ChangeSet> = (1..=100)
        .map(|number| {
            let amount = if number % 2 == 0 { -1 } else { -1_000 };
            set(number).insert(claim(number)).shift(moving(1, FLOOR, posted(amount)))
        })
        .collect();
    let answers = together(store, sets).await;
    for (number, answer) in (1..).zip(answers) {
        let there = row(&**store, RowKey::Claim(TENANT, claim(number).id)).await;
        if number % 2 == 0 {
            answer.expect("a debit that fits");
            assert_eq!(there, Some(claim(number).into()));
        } else {
            let refusal = answer.expect_err("a debit that can never fit");
            assert_eq!((refusal.change, refusal.reason), (1, RefusalReason::Insufficient));
            assert!(matches!(refusal.found, Some(Row::Balance(found)) if (50..=100).contains(&found.posted)));
            assert_eq!(there, None);
        }
    }
    let expected = Balance { posted: 50, revision: 52, ..opened(1, Some(0), None) };
    assert_eq!(balance(&**store, account_id(1)).await, Some(expected));
}

pub async fn a_balance_changes_only_by_moving<S: Store>(store: &Arc<S>) {
    for money in [posted(1), posted(-1), outgoing(1), incoming(1)] {
        let rich = Balance {
            posted: money.posted,
            outgoing: money.outgoing,
            incoming: money.incoming,
            ..opened(1, Some(-9), Some(9))
        };
        assert_eq!(refused(&**store, set(1).insert(rich), RefusalReason::IllegalMove).await, None);
        assert_eq!(balance(&**store, account_id(1)).await, None);
    }
    let there = begin(store, Some(0), None, 100).await;
    let found = refused(&**store, set(2).insert(opened(1, None, None)), RefusalReason::Present).await;
    assert_eq!(found, Some(there.into()));
    for next in [
        Balance { revision: 3, ..there },
        Balance { posted: 101, revision: 3, ..there },
        Balance { floor: None, revision: 3, ..there },
    ] {
        let found = refused(&**store, set(3).replace(next, 2), RefusalReason::IllegalMove).await;
        assert_eq!(found, Some(there.into()));
    }
    let found = refused(&**store, set(4).remove(ONE, 2), RefusalReason::IllegalMove).await;
    assert_eq!(found, Some(there.into()));
    commit(&**store, set(5).shift(moving(1, FLOOR, posted(-100)))).await;
    let emptied = Balance { posted: 0, revision: 3, ..there };
    let found = refused(&**store, set(6).remove(ONE, 3), RefusalReason::IllegalMove).await;
    assert_eq!(found, Some(emptied.into()), "not even an empty balance");
}

pub async fn a_revision_counts_the_moves<S: Store>(store: &Arc<S>) {
    for revision in 1..=5 {
        commit(&**store, set(revision).shift(moving(1, FLOOR, posted(0)))).await;
        refused(&**store, set(99).shift(moving(1, FLOOR, posted(-1))), RefusalReason::Insufficient).await;
        let expected = Balance { revision: revision.unsigned_abs(), ..opened(1, Some(0), None) };
        assert_eq!(balance(&**store, account_id(1)).await, Some(expected));
    }
}

pub async fn a_shard_moves_once_in_a_set<S: Store>(store: &Arc<S>) {
    let twice = set(1).shift(moving(1, FLOOR, posted(5))).shift(moving(1, FLOOR, posted(5)));
    let expected = CommitRefusal { change: 1, reason: RefusalReason::Malformed, found: None };
    assert_eq!(refusal(&**store, twice).await, expected);
    let begun = set(2).insert(opened(1, Some(0), None)).shift(moving(1, FLOOR, posted(5)));
    let expected = CommitRefusal { change: 1, reason: RefusalReason::Malformed, found: None };
    assert_eq!(refusal(&**store, begun).await, expected);
    assert_eq!(balance(&**store, account_id(1)).await, None);
}

/// Money moves back and forth. A reader of both balances must see the full sum exactly once.
pub async fn money_is_never_seen_twice_or_nowhere<S: Store>(store: &Arc<S>) {
    begin(store, Some(0), None, 1_000).await;
    commit(&**store, set(902).shift(moving(2, FLOOR, posted(0)))).await;
    let mut writer = JoinSet::new();
    let writing = Arc::clone(store);
    writer.spawn(async move {
        for number in 1..=100 {
            let amount = if number % 2 == 0 { -7 } else { 9 };
            let both =
                set(number).shift(moving(1, FLOOR, posted(-amount))).shift(moving(2, FLOOR, posted(amount)));
            commit(&*writing, both).await;
        }
    });
    let keys = vec![ONE, RowKey::Balance(TENANT, account_id(2), 0)];
    let mut last = 0;
    while last < 101 {
        let both = rows(&**store, keys.clone()).await;
        let [Some(Row::Balance(one)), Some(Row::Balance(two))] = &both[..] else {
            panic!("a balance is missing: {both:?}")
        };
        assert_eq!(one.posted + two.posted, 1_000, "half a transfer was read: {both:?}");
        last = two.revision;
        yield_now().await;
    }
    writer.join_all().await;
}

//! The journal: entries in commit order, their sums up to any point, and snapshots of such sums.

use super::ask::{commit, entries, fill, fold, refused, row, scan};
use super::fixtures::at;
use super::fixtures::ledger::{account_id, reversal, snapshot, transaction_id, transfer};
use super::fixtures::{TENANT, claim, set};
use super::variants::ledger::{every_layer, most_legs, several_assets};
use crate::change::ChangeSet;
use crate::port::{CommitReceipt, EntryPage, Folded, Position, RefusalReason, Scan, Store, Upto};
use crate::row::{Row, RowKey};
use counterfoil_core::ledger::snapshot::Snapshot;
use counterfoil_core::ledger::totals::{AccountEntry, Totals};
use counterfoil_core::ledger::transaction::{Layer, Legs, Transaction, TransactionKind};
use counterfoil_core::types::limits::{AMOUNT_MAX, CHANGES_PER_SET_MAX};
use counterfoil_core::types::time::{Span, Time};
use std::sync::Arc;

/// The accounts of most cases.
const PAIR: [i64; 2] = [1, 2];

/// Commits the transactions in separate sets. Returns the account's entries in commit order.
async fn written<S: Store>(store: &Arc<S>, account: i64, transactions: &[Transaction]) -> Vec<AccountEntry> {
    let mut all = Vec::new();
    for (number, transaction) in (1..).zip(transactions) {
        let receipt = commit(&**store, set(number).insert(transaction.clone())).await;
        all.extend(of(account, transaction, receipt));
    }
    all
}

/// The entries of a committed transaction in an account.
fn of(account: i64, transaction: &Transaction, receipt: CommitReceipt) -> Vec<AccountEntry> {
    let own = |entry: &AccountEntry| entry.account == account_id(account);
    transaction.entries(receipt.position, receipt.at).filter(own).collect()
}

/// The sum of the entries, as a store returns it.
fn sum<'a>(entries: impl IntoIterator<Item = &'a AccountEntry>) -> Folded {
    let mut folded = Folded::default();
    for entry in entries {
        folded.totals = folded.totals.plus(entry.side, entry.layer, entry.amount);
        folded.last = Some(CommitReceipt { position: entry.position, at: entry.at });
    }
    folded
}

/// Transfers whose ids and commits are in different orders; some belong to other accounts.
fn transfers() -> Vec<Transaction> {
    let order = [(9, 1, 2), (4, 2, 1), (7, 3, 4), (1, 1, 3), (8, 3, 1), (3, 2, 4), (2, 1, 2)];
    order.into_iter().map(|(number, from, to)| transfer(number, from, to, number * 10)).collect()
}

fn newest_first(entries: &[AccountEntry]) -> Vec<AccountEntry> {
    entries.iter().rev().copied().collect()
}

const fn mark(entry: &AccountEntry) -> EntryPage {
    EntryPage::Before(Some((entry.transaction, entry.leg)))
}

pub async fn an_empty_store_has_no_entries<S: Store>(store: &Arc<S>) {
    for page in [EntryPage::Before(None), EntryPage::After(Position::START)] {
        assert_eq!(entries(&**store, account_id(1), page, 10).await, []);
    }
    for upto in [Upto::Now, Upto::Position(Position(9)), Upto::Time(Time::MAX)] {
        assert_eq!(fold(&**store, account_id(1), 0, upto).await, Folded::default());
    }
}

pub async fn entries_of_an_account_newest_first<S: Store>(store: &Arc<S>) {
    let own = newest_first(&written(store, 1, &transfers()).await);
    assert_eq!(own.len(), 5);
    let (one, all) = (account_id(1), EntryPage::Before(None));
    assert_eq!(entries(&**store, one, all, 99).await, own);
    assert_eq!(entries(&**store, one, all, 2).await, own[..2]);
    assert_eq!(entries(&**store, one, all, 0).await, []);
    for (index, entry) in own.iter().enumerate() {
        assert_eq!(entries(&**store, one, mark(entry), 99).await, own[index + 1..], "before {entry:?}");
        assert_eq!(entries(&**store, one, mark(entry), 0).await, []);
    }
    assert_eq!(entries(&**store, account_id(9), all, 99).await, []);
}

pub async fn entries_of_an_account_oldest_first_after_a_position<S: Store>(store: &Arc<S>) {
    let own = written(store, 1, &transfers()).await;
    for after in [0, 1, 2, 3, 6, 7, 8, u64::MAX] {
        let page = EntryPage::After(Position(after));
        let expected: Vec<AccountEntry> =
            own.iter().filter(|entry| entry.position > Position(after)).copied().collect();
        assert_eq!(entries(&**store, account_id(1), page, 99).await, expected, "after {after}");
        let some: Vec<AccountEntry> = expected.into_iter().take(2).collect();
        assert_eq!(entries(&**store, account_id(1), page, 2).await, some);
        assert_eq!(entries(&**store, account_id(1), page, 0).await, []);
    }
}

pub async fn pages_stay_stable_while_entries_come<S: Store>(store: &Arc<S>) {
    let own = newest_first(&written(store, 1, &transfers()).await);
    let (mut seen, mut page) = (Vec::new(), EntryPage::Before(None));
    for round in 0..4 {
        let next = entries(&**store, account_id(1), page, 2).await;
        page = next.last().map_or(page, mark);
        seen.extend(next);
        // Newer entries with smaller and larger ids. They belong before the first page.
        let (low, high) = (20 - round, 100 + round);
        let more = set(50 + round).insert(transfer(low, 1, 2, 1)).insert(transfer(high, 2, 1, 1));
        commit(&**store, more).await;
    }
    // The last page was empty, so its mark stayed the same.
    assert_eq!(seen, own);
}

pub async fn an_unknown_mark_gives_an_empty_page<S: Store>(store: &Arc<S>) {
    written(store, 1, &transfers()).await;
    for (transaction, leg) in [(99, 0), (9, 2), (9, u16::MAX), (7, 0), (9, 1), (i64::MAX, 0)] {
        // Transaction 7 belongs to other accounts, and so does the second leg of 9.
        let page = EntryPage::Before(Some((transaction_id(transaction), leg)));
        assert_eq!(entries(&**store, account_id(1), page, 99).await, [], "{transaction}/{leg}");
    }
}

pub async fn entries_of_one_set_are_ordered_by_id_and_leg<S: Store>(store: &Arc<S>) {
    let together = [5, 2, 9].map(|number| Transaction { legs: every_layer(), ..transfer(number, 1, 2, 1) });
    let before = commit(&**store, set(1).insert(transfer(7, 1, 2, 1))).await;
    let both = together.iter().cloned().fold(set(2), ChangeSet::insert);
    let receipt = commit(&**store, both).await;
    let after = commit(&**store, set(3).insert(transfer(1, 1, 2, 1))).await;
    for account in PAIR {
        let mut own = of(account, &transfer(7, 1, 2, 1), before);
        for index in [1, 0, 2] {
            own.extend(of(account, &together[index], receipt));
        }
        own.extend(of(account, &transfer(1, 1, 2, 1), after));
        assert_eq!(own.len(), 11);
        let id = account_id(account);
        assert_eq!(entries(&**store, id, EntryPage::After(Position::START), 99).await, own);
        assert_eq!(entries(&**store, id, EntryPage::Before(None), 99).await, newest_first(&own));
        for (index, entry) in own.iter().enumerate() {
            let older = newest_first(&own[..index]);
            assert_eq!(entries(&**store, id, mark(entry), 99).await, older, "before {entry:?}");
        }
    }
}

pub async fn every_leg_is_an_entry_of_its_account<S: Store>(store: &Arc<S>) {
    let mut all = Vec::new();
    for (number, legs) in (1..).zip([most_legs(), every_layer(), several_assets()]) {
        let transaction = Transaction { legs, kind: TransactionKind::General, ..transfer(number, 1, 2, 1) };
        let receipt = commit(&**store, set(number).insert(transaction.clone())).await;
        all.extend(transaction.entries(receipt.position, receipt.at));
    }
    assert_eq!(all.len(), 40 + 6 + 7);
    for account in (1..=41).map(account_id) {
        let own: Vec<AccountEntry> = all.iter().filter(|entry| entry.account == account).copied().collect();
        let page = EntryPage::After(Position::START);
        assert_eq!(entries(&**store, account, page, 99).await, own);
        assert_eq!(fold(&**store, account, 0, Upto::Now).await, sum(&own));
    }
}

pub async fn a_refused_set_enters_nothing<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(claim(1))).await;
    let almost = set(2).insert(transfer(1, 1, 2, 5)).insert(claim(1));
    let refusal = super::ask::refusal(&**store, almost).await;
    assert_eq!((refusal.change, refusal.reason), (1, RefusalReason::Present));
    let again = set(3).insert(transfer(2, 1, 2, 5));
    commit(&**store, again).await;
    refused(&**store, set(4).insert(transfer(2, 1, 2, 500)), RefusalReason::Present).await;
    for account in PAIR {
        let own = entries(&**store, account_id(account), EntryPage::Before(None), 9).await;
        let amounts: Vec<_> = own.iter().map(|entry| (entry.transaction, entry.amount)).collect();
        assert_eq!(amounts, [(transaction_id(2), 5)]);
        assert_eq!(fold(&**store, account_id(account), 0, Upto::Now).await, sum(&own));
    }
}

pub async fn a_fold_begins_after_a_position_and_ends_at_a_point<S: Store>(store: &Arc<S>) {
    for account in PAIR {
        assert_eq!(fold(&**store, account_id(account), 0, Upto::Now).await, Folded::default());
    }
    let all = transfers();
    let mut receipts = Vec::new();
    for (number, transaction) in (1..).zip(&all) {
        receipts.push(commit(&**store, set(number).insert(transaction.clone())).await);
    }
    for account in [1, 2, 3, 4, 9] {
        let own: Vec<AccountEntry> =
            all.iter().zip(&receipts).flat_map(|(it, at)| of(account, it, *at)).collect();
        for after in [0, 1, 4, 7, u64::MAX] {
            let points = [0, 1, 3, 6, 7, u64::MAX].map(|position| Upto::Position(Position(position)));
            for upto in points.into_iter().chain([Upto::Now]) {
                let within = own.iter().filter(|entry| {
                    let receipt = CommitReceipt { position: entry.position, at: entry.at };
                    entry.position > Position(after) && upto.includes(receipt)
                });
                let folded = fold(&**store, account_id(account), after, upto).await;
                assert_eq!(folded, sum(within), "account {account} after {after} up to {upto:?}");
            }
        }
    }
}

pub async fn a_fold_up_to_a_time_goes_by_the_commit<S: Store>(store: &Arc<S>) {
    // The time of the decision has no influence.
    let decided = [Time::MAX, Time::EPOCH, at(5), Time::MAX, Time::EPOCH];
    let all: Vec<Transaction> = (1..)
        .zip(decided)
        .map(|(number, at)| Transaction { at, ..transfer(number, 1, 2, 1 << number) })
        .collect();
    let own = written(store, 1, &all).await;
    let mut points = vec![Time::EPOCH, Time::MAX];
    for entry in &own {
        let ms = Span::from_ms(1);
        points.extend([entry.at.minus(ms), entry.at, entry.at.plus(ms)]);
    }
    for time in points {
        for after in [0, 2] {
            // Commits may share a millisecond: a time then includes all of them or none.
            let within = own.iter().filter(|entry| entry.at <= time && entry.position > Position(after));
            let folded = fold(&**store, account_id(1), after, Upto::Time(time)).await;
            assert_eq!(folded, sum(within), "after {after} up to {time:?}");
        }
    }
}

pub async fn a_fold_is_the_sum_of_its_entries<S: Store>(store: &Arc<S>) {
    let layers = [Layer::Pending, Layer::Posted, Layer::Released];
    let sets = (1..=60).zip(layers.into_iter().cycle()).map(|(number, layer)| {
        let (from, to) = if number % 2 == 0 { (1, 2) } else { (2, 1) };
        let plain = transfer(number, from, to, number);
        let asset = plain.legs.as_slice()[0].asset;
        let legs = Legs::transfer(account_id(from), account_id(to), number, asset, layer);
        set(number).insert(Transaction { legs: legs.expect("legs that balance"), ..plain })
    });
    fill(store, sets.collect()).await;
    for account in PAIR.map(account_id) {
        let own = entries(&**store, account, EntryPage::After(Position::START), 99).await;
        assert_eq!(own.len(), 60);
        let whole = fold(&**store, account, 0, Upto::Now).await;
        assert_eq!(whole, sum(&own));
        // The sums of two parts of a history add up to the sum of the whole, for every cut.
        for cut in [0, 1, 17, 59, 60] {
            let head = fold(&**store, account, 0, Upto::Position(Position(cut))).await;
            let tail = fold(&**store, account, cut, Upto::Now).await;
            assert_eq!(head.totals.and(tail.totals), whole.totals, "cut after {cut}");
        }
    }
}

pub async fn sums_beyond_64_bits_are_exact<S: Store>(store: &Arc<S>) {
    // The fewest largest amounts that leave the range of an i64.
    let count = i64::MAX / AMOUNT_MAX + 1;
    let numbers: Vec<i64> = (1..=count).collect();
    let sets = (1..).zip(numbers.chunks(CHANGES_PER_SET_MAX)).map(|(number, chunk)| {
        chunk.iter().fold(set(number), |set, number| set.insert(transfer(*number, 1, 2, AMOUNT_MAX)))
    });
    fill(store, sets.collect()).await;
    let total = i128::from(AMOUNT_MAX) * i128::from(count);
    assert!(total > i128::from(i64::MAX));
    let plain = Totals { entries: count.unsigned_abs(), ..Totals::default() };
    let debited = fold(&**store, account_id(1), 0, Upto::Now).await;
    assert_eq!(debited.totals, Totals { debits: total, ..plain });
    let credited = fold(&**store, account_id(2), 0, Upto::Time(Time::MAX)).await;
    assert_eq!(credited.totals, Totals { credits: total, ..plain });
}

pub async fn a_transaction_is_never_replaced_or_removed<S: Store>(store: &Arc<S>) {
    let there = transfer(1, 1, 2, 5);
    commit(&**store, set(1).insert(there.clone())).await;
    let rewritten = Transaction { at: at(1), ..transfer(1, 1, 2, 6) };
    for next in [there.clone(), rewritten] {
        let found = refused(&**store, set(2).replace(next, 1), RefusalReason::IllegalMove).await;
        assert_eq!(found, Some(there.clone().into()));
    }
    let key = RowKey::Transaction(there.tenant, there.id);
    let found = refused(&**store, set(3).remove(key.clone(), 1), RefusalReason::IllegalMove).await;
    assert_eq!(found, Some(there.clone().into()));
    assert_eq!(row(&**store, key).await, Some(there.into()));
    let own = entries(&**store, account_id(1), EntryPage::Before(None), 9).await;
    assert_eq!(own.iter().map(|entry| entry.amount).collect::<Vec<_>>(), [5]);
}

pub async fn a_transaction_is_undone_once<S: Store>(store: &Arc<S>) {
    let first = reversal(1);
    commit(&**store, set(1).insert(first)).await;
    let second = counterfoil_core::ledger::transaction::Reversal { by: transaction_id(9), ..first };
    assert_eq!(refused(&**store, set(2).insert(second), RefusalReason::Present).await, Some(first.into()));
    assert_eq!(
        refused(&**store, set(3).replace(second, 1), RefusalReason::IllegalMove).await,
        Some(first.into())
    );
    assert_eq!(row(&**store, RowKey::Reversal(first.tenant, first.original)).await, Some(first.into()));
}

pub async fn snapshots_up_to_a_point_newest_first<S: Store>(store: &Arc<S>) {
    let all = [30, 10, 40, 20].map(|position| snapshot(1, position));
    let other = snapshot(2, 25);
    let written = all.into_iter().chain([other]).fold(set(1), ChangeSet::insert);
    commit(&**store, written).await;
    let upto = |upto, limit| Scan::Snapshots { tenant: TENANT, account: account_id(1), upto, limit };
    let expected = |positions: &[u64]| -> Vec<Row> {
        positions.iter().map(|position| snapshot(1, *position).into()).collect()
    };
    for (point, positions) in [
        (Upto::Now, &[40, 30, 20, 10][..]),
        (Upto::Position(Position(9)), &[]),
        (Upto::Position(Position(10)), &[10]),
        (Upto::Position(Position(35)), &[30, 20, 10]),
        (Upto::Position(Position(u64::MAX)), &[40, 30, 20, 10]),
        (Upto::Time(at(9)), &[]),
        (Upto::Time(at(20)), &[20, 10]),
        (Upto::Time(Time::MAX), &[40, 30, 20, 10]),
    ] {
        assert_eq!(scan(&**store, upto(point, 99)).await, expected(positions), "{point:?}");
        let first = positions.get(..1).unwrap_or_default();
        assert_eq!(scan(&**store, upto(point, 1)).await, expected(first), "{point:?}");
    }
    let none = Scan::Snapshots { tenant: TENANT, account: account_id(3), upto: Upto::Now, limit: 9 };
    assert_eq!(scan(&**store, none).await, []);
}

pub async fn a_snapshot_is_never_changed_but_may_be_removed<S: Store>(store: &Arc<S>) {
    let there = snapshot(1, 1);
    commit(&**store, set(1).insert(there).insert(snapshot(1, 2))).await;
    let other = Snapshot { totals: Totals::default(), ..there };
    assert_eq!(refused(&**store, set(2).insert(other), RefusalReason::Present).await, Some(there.into()));
    assert_eq!(
        refused(&**store, set(3).replace(other, 1), RefusalReason::IllegalMove).await,
        Some(there.into())
    );
    let key = RowKey::Snapshot(there.tenant, there.account, there.position);
    commit(&**store, set(4).remove(key.clone(), 1)).await;
    assert_eq!(row(&**store, key.clone()).await, None);
    let left = Scan::Snapshots { tenant: TENANT, account: account_id(1), upto: Upto::Now, limit: 9 };
    assert_eq!(scan(&**store, left).await, [snapshot(1, 2).into()]);
    commit(&**store, set(5).insert(other)).await;
    assert_eq!(row(&**store, key).await, Some(other.into()));
}

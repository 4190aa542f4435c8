//! Bounds: no answer is longer than the requested limit or the system's own bound.

use super::ask::{due, entries, fill, fold, scan};
use super::fixtures::ledger::{account, account_id, hold, opened, snapshot, transfer};
use super::fixtures::{TENANT, at, audit, charge, charge_id, claim_in, payout, set, settled, work_due};
use super::variants::one_of_each;
use crate::change::ChangeSet;
use crate::port::{Due, EntryPage, Position, Scan, Store, Upto};
use crate::row::Row;
use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::types::limits::{CHANGES_PER_SET_MAX, SCAN_MAX};
use counterfoil_core::types::time::Time;
use std::sync::Arc;

/// One row more than a scan may return.
fn one_too_many<R: Into<Row>>(build: impl Fn(i64) -> R) -> Vec<Row> {
    (1..).take(SCAN_MAX + 1).map(|number| build(number).into()).collect()
}

fn in_sets(rows: &[Row]) -> Vec<ChangeSet> {
    (1..)
        .zip(rows.chunks(CHANGES_PER_SET_MAX))
        .map(|(number, rows)| rows.iter().cloned().fold(set(number), ChangeSet::insert))
        .collect()
}

fn settled_claim(number: i64) -> Claim {
    claim_in(number, ClaimState::Completed(settled(b"", at(number.unsigned_abs()))))
}

/// Every scan with a limit, from its start.
fn ranges(limit: usize) -> [Scan; 7] {
    [
        Scan::ChargesOf { tenant: TENANT, before: None, limit },
        Scan::Charges { after: None, limit },
        Scan::PayoutsOf { tenant: TENANT, before: None, limit },
        Scan::Payouts { after: None, limit },
        Scan::Claims { after: None, limit },
        Scan::Outbox { after: None, limit },
        Scan::Timeline { tenant: TENANT, subject: charge_id(1).into(), after: None, limit },
    ]
}

pub async fn scans_stop_at_their_bound<S: Store>(store: &Arc<S>) {
    let mut rows = one_too_many(charge);
    rows.extend(one_too_many(payout));
    rows.extend(one_too_many(settled_claim));
    rows.extend(one_too_many(|number| work_due(number, 0)));
    rows.extend(one_too_many(|number| audit(1, number.unsigned_abs())));
    fill(store, in_sets(&rows)).await;
    for (limit, expected) in [
        (1, 1),
        (SCAN_MAX - 1, SCAN_MAX - 1),
        (SCAN_MAX, SCAN_MAX),
        (SCAN_MAX + 1, SCAN_MAX),
        (usize::MAX, SCAN_MAX),
    ] {
        for range in ranges(limit) {
            assert_eq!(scan(&**store, range.clone()).await.len(), expected, "{range:?}");
        }
    }
}

/// Every ledger scan with a limit, from its start.
fn ledger_ranges(limit: usize) -> [Scan; 7] {
    [
        Scan::AccountsOf { tenant: TENANT, before: None, limit },
        Scan::Accounts { after: None, limit },
        Scan::TransactionsOf { tenant: TENANT, before: None, limit },
        Scan::Transactions { after: None, limit },
        Scan::Balances { after: None, limit },
        Scan::Holds { after: None, limit },
        Scan::Snapshots { tenant: TENANT, account: account_id(1), upto: Upto::Now, limit },
    ]
}

const PAGES: [EntryPage; 2] = [EntryPage::Before(None), EntryPage::After(Position::START)];

pub async fn ledger_scans_stop_at_their_bound<S: Store>(store: &Arc<S>) {
    let mut rows = one_too_many(account);
    rows.extend(one_too_many(|number| transfer(number, 1, 2, 1)));
    rows.extend(one_too_many(|number| opened(number, Some(0), None)));
    rows.extend(one_too_many(hold));
    rows.extend(one_too_many(|number| snapshot(1, number.unsigned_abs())));
    fill(store, in_sets(&rows)).await;
    for (limit, expected) in [(1, 1), (SCAN_MAX, SCAN_MAX), (SCAN_MAX + 1, SCAN_MAX), (usize::MAX, SCAN_MAX)]
    {
        for range in ledger_ranges(limit) {
            assert_eq!(scan(&**store, range.clone()).await.len(), expected, "{range:?}");
        }
        for page in PAGES {
            assert_eq!(entries(&**store, account_id(1), page, limit).await.len(), expected, "{page:?}");
        }
        assert_eq!(due(&**store, Due::Holds, Time::MAX, limit).await.len(), expected);
    }
    // A fold has no bound: it returns one sum for any number of entries.
    let folded = fold(&**store, account_id(1), 0, Upto::Now).await;
    assert_eq!(usize::try_from(folded.totals.entries), Ok(SCAN_MAX + 1));
}

pub async fn due_lists_stop_at_their_bound<S: Store>(store: &Arc<S>) {
    let mut rows = one_too_many(settled_claim);
    rows.extend(one_too_many(|number| work_due(number, number.unsigned_abs())));
    fill(store, in_sets(&rows)).await;
    for what in [Due::Outbox, Due::Claims] {
        for limit in [SCAN_MAX, SCAN_MAX + 1, usize::MAX] {
            assert_eq!(due(&**store, what, Time::MAX, limit).await.len(), SCAN_MAX, "{what:?} {limit}");
        }
    }
}

pub async fn the_feed_stops_at_its_bound<S: Store>(store: &Arc<S>) {
    let rows = one_too_many(charge);
    let sets = (1..).zip(rows).map(|(number, row)| set(number).insert(row));
    fill(store, sets.collect()).await;
    for (after, limit, expected) in [
        (0, SCAN_MAX, SCAN_MAX),
        (0, usize::MAX, SCAN_MAX),
        (1, usize::MAX, SCAN_MAX),
        (2, usize::MAX, SCAN_MAX - 1),
    ] {
        let feed = store.feed(Position(after), limit).await.expect("a healthy store feeds");
        assert_eq!(feed.len(), expected, "after {after}, at most {limit}");
        let first = feed.first().map(|entry| entry.receipt.position);
        assert_eq!(first, Some(Position(after + 1)));
    }
}

pub async fn a_limit_of_zero_returns_nothing<S: Store>(store: &Arc<S>) {
    let mut rows = one_of_each().to_vec();
    rows.push(settled_claim(2).into());
    fill(store, in_sets(&rows)).await;
    for range in ranges(0).into_iter().chain(ledger_ranges(0)) {
        assert_eq!(scan(&**store, range).await, []);
    }
    for page in PAGES {
        assert_eq!(entries(&**store, account_id(1), page, 0).await, []);
    }
    for what in [Due::Outbox, Due::Claims, Due::Holds] {
        assert_eq!(due(&**store, what, Time::MAX, 0).await, []);
    }
    assert_eq!(store.feed(Position(0), 0).await, Ok(Vec::new()));
}

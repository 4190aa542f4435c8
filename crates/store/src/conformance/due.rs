//! Due rows: ordered by time, most overdue first, without parked work and without claims kept
//! forever.

use super::ask::{commit, due};
use super::fixtures::ledger::{hold, hold_id, transaction_id};
use super::fixtures::{TENANT, at, charge_id, claim, claim_id, claim_in, set, settled, work_due};
use super::variants::states;
use crate::change::ChangeSet;
use crate::port::{Due, Store};
use crate::row::RowKey;
use counterfoil_core::idempotency::claim::{Claim, ClaimState};
use counterfoil_core::ledger::hold::{self, Hold};
use counterfoil_core::outbox::{Outbox, ParkReason};
use counterfoil_core::types::time::Time;
use std::sync::Arc;

fn work(numbers: &[i64]) -> Vec<RowKey> {
    numbers.iter().map(|number| RowKey::Outbox(TENANT, charge_id(*number).into())).collect()
}

pub async fn work_is_due_when_its_time_has_come<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(work_due(1, 100))).await;
    for (ms, expected) in [(0, work(&[])), (99, work(&[])), (100, work(&[1])), (101, work(&[1]))] {
        assert_eq!(due(&**store, Due::Outbox, at(ms), 10).await, expected, "at {ms} ms");
    }
    let rows = store.due(Due::Outbox, at(100), 10).await;
    assert_eq!(rows, Ok(vec![work_due(1, 100).into()]));
    assert_eq!(due(&**store, Due::Claims, Time::MAX, 10).await, []);
}

pub async fn the_most_overdue_comes_first<S: Store>(store: &Arc<S>) {
    // Neither the order of writes nor the order of ids is the order of time.
    let times = [(5, 30), (1, 50), (4, 10), (2, 40), (3, 20)];
    let all = times.into_iter().fold(set(1), |set, (number, ms)| set.insert(work_due(number, ms)));
    commit(&**store, all).await;
    assert_eq!(due(&**store, Due::Outbox, at(50), 10).await, work(&[4, 3, 5, 2, 1]));
    assert_eq!(due(&**store, Due::Outbox, at(30), 10).await, work(&[4, 3, 5]));
}

pub async fn parked_work_is_never_due<S: Store>(store: &Arc<S>) {
    let parked = |number, parked| Outbox { parked: Some(parked), ..work_due(number, 1) };
    let all = set(1)
        .insert(parked(1, ParkReason::AnswerDiffers))
        .insert(parked(2, ParkReason::NoEvidence))
        .insert(parked(3, ParkReason::Contradiction))
        .insert(work_due(4, 2));
    commit(&**store, all).await;
    assert_eq!(due(&**store, Due::Outbox, Time::MAX, 10).await, work(&[4]));
    let freed = Outbox { parked: None, revision: 2, ..work_due(2, 1) };
    commit(&**store, set(2).replace(freed, 1)).await;
    assert_eq!(due(&**store, Due::Outbox, Time::MAX, 10).await, work(&[2, 4]));
}

pub async fn moved_work_is_due_at_its_new_time<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(work_due(1, 10)).insert(work_due(2, 20))).await;
    let later = Outbox { revision: 2, ..work_due(1, 30) };
    commit(&**store, set(2).replace(later, 1)).await;
    assert_eq!(due(&**store, Due::Outbox, at(29), 10).await, work(&[2]));
    assert_eq!(due(&**store, Due::Outbox, at(30), 10).await, work(&[2, 1]));
    let sooner = Outbox { revision: 3, ..work_due(1, 5) };
    commit(&**store, set(3).replace(sooner, 2)).await;
    assert_eq!(due(&**store, Due::Outbox, at(5), 10).await, work(&[1]));
}

pub async fn removed_work_is_not_due<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1).insert(work_due(1, 10)).insert(work_due(2, 20))).await;
    commit(&**store, set(2).remove(RowKey::Outbox(TENANT, charge_id(1).into()), 1)).await;
    assert_eq!(due(&**store, Due::Outbox, Time::MAX, 10).await, work(&[2]));
}

pub async fn claims_are_due_when_their_window_is_over<S: Store>(store: &Arc<S>) {
    let claims = |numbers: &[i64]| -> Vec<RowKey> {
        numbers.iter().map(|number| RowKey::Claim(TENANT, claim_id(*number))).collect()
    };
    let all = set(1)
        .insert(claim_in(1, ClaimState::Completed(settled(b"", at(300)))))
        .insert(claim_in(2, ClaimState::FailedTerminal(settled(b"", at(100)))))
        .insert(claim_in(3, ClaimState::Expired { tombstone_until: at(200) }))
        .insert(claim_in(4, ClaimState::Expired { tombstone_until: Time::MAX }))
        .insert(claim(5));
    commit(&**store, all).await;
    // Claims in flight and claims kept forever are never due.
    let rest = (10..)
        .zip(states())
        .filter(|(_, state)| state.settled().is_none() && state.name() != "expired")
        .map(|(number, state)| claim_in(number, state))
        .fold(set(2), ChangeSet::insert);
    commit(&**store, rest).await;
    for (ms, expected) in [(99, vec![]), (100, vec![2]), (299, vec![2, 3]), (300, vec![2, 3, 1])] {
        assert_eq!(due(&**store, Due::Claims, at(ms), 10).await, claims(&expected), "at {ms} ms");
    }
    assert_eq!(due(&**store, Due::Claims, Time::MAX, 100).await, claims(&[2, 3, 1]));
    assert_eq!(due(&**store, Due::Outbox, Time::MAX, 10).await, []);
    let aged = claim_in(2, ClaimState::Expired { tombstone_until: at(500) });
    let aged = Claim { revision: 2, ..aged };
    commit(&**store, set(3).replace(aged, 1)).await;
    assert_eq!(due(&**store, Due::Claims, at(499), 10).await, claims(&[3, 1]));
    assert_eq!(due(&**store, Due::Claims, at(500), 10).await, claims(&[3, 1, 2]));
}

pub async fn holds_are_due_at_their_deadline_and_not_after_their_end<S: Store>(store: &Arc<S>) {
    let until = |number, ms| Hold { expires_at: at(ms), ..hold(number) };
    let holds = |numbers: &[i64]| -> Vec<RowKey> {
        numbers.iter().map(|number| RowKey::Hold(TENANT, hold_id(*number))).collect()
    };
    let by = transaction_id(9);
    let ended = until(4, 10).ended(hold::HoldState::Voided { by });
    let all = [until(3, 100), until(1, 300), until(2, 200), ended, Hold { expires_at: Time::MAX, ..hold(5) }];
    commit(&**store, all.into_iter().fold(set(1), ChangeSet::insert)).await;
    for (ms, expected) in [(99, vec![]), (100, vec![3]), (299, vec![3, 2]), (300, vec![3, 2, 1])] {
        assert_eq!(due(&**store, Due::Holds, at(ms), 10).await, holds(&expected), "at {ms} ms");
    }
    assert_eq!(due(&**store, Due::Holds, at(300), 2).await, holds(&[3, 2]));
    let ends = [
        hold::HoldState::Posted { amount: 1, by },
        hold::HoldState::Voided { by },
        hold::HoldState::Lapsed { by },
    ];
    for ((number, ms), end) in [(3, 100), (2, 200), (1, 300)].into_iter().zip(ends) {
        commit(&**store, set(10 + number).replace(until(number, ms).ended(end), 1)).await;
    }
    assert_eq!(due(&**store, Due::Holds, at(999_999), 10).await, []);
    for other in [Due::Outbox, Due::Claims] {
        assert_eq!(due(&**store, other, Time::MAX, 10).await, []);
    }
}

pub async fn a_due_list_is_as_long_as_asked<S: Store>(store: &Arc<S>) {
    let all = (1..=5).map(|number| work_due(number, number.unsigned_abs()));
    commit(&**store, all.fold(set(1), ChangeSet::insert)).await;
    for limit in [1, 2, 4, 5, 6] {
        let expected: Vec<i64> = (1..=5).take(limit).collect();
        assert_eq!(due(&**store, Due::Outbox, at(9), limit).await, work(&expected), "limit {limit}");
    }
}

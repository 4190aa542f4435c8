//! Claims: the transitions that a store accepts from any writer, and races for one key.

use super::ask::{commit, refused, row, together};
use super::fixtures::{TENANT, at, charge_id, claim, claim_in, fingerprint, lease, reclaimed, set, settled};
use super::variants::states;
use crate::port::{CommitReceipt, CommitRefusal, RefusalReason, Store};
use crate::row::{Row, RowKey};
use counterfoil_core::idempotency::claim::{Claim, ClaimEvent, ClaimState, Custody, Resource};
use counterfoil_core::types::id::Holder;
use counterfoil_core::types::time::Time;
use std::sync::Arc;

/// The same claim in another state, at the next revision.
fn moved(claim: &Claim, state: ClaimState) -> Claim {
    Claim { revision: claim.revision + 1, state, ..claim.clone() }
}

pub async fn every_legal_move_commits<S: Store>(store: &Arc<S>) {
    let events = [
        ClaimEvent::Renewed { until: at(60_000) },
        ClaimEvent::TakenOver(lease(at(40_000))),
        ClaimEvent::Completed(settled(b"done", at(9))),
        ClaimEvent::Failed(settled(b"no", at(9))),
        ClaimEvent::PutOff { not_before: at(9) },
        ClaimEvent::Doubted { not_before: at(9) },
        ClaimEvent::Aged { tombstone_until: at(99) },
    ];
    let mut number = 0;
    for state in states() {
        for event in &events {
            number += 1;
            let before = claim_in(number, state.clone());
            let Ok(after) = before.on(event.clone()) else {
                continue;
            };
            commit(&**store, set(number * 2).insert(before)).await;
            commit(&**store, set(number * 2 + 1).replace(after.clone(), 1)).await;
            assert_eq!(row(&**store, RowKey::Claim(after.tenant, after.id)).await, Some(after.into()));
        }
    }
}

pub async fn an_illegal_move_is_refused<S: Store>(store: &Arc<S>) {
    let in_flight = ClaimState::InFlight(lease(at(0)));
    let put_off = ClaimState::FailedRetry { not_before: at(1) };
    let waiting = ClaimState::Uncertain(Custody::Waiting { not_before: at(1) });
    let completed = ClaimState::Completed(settled(b"yes", at(1)));
    let failed = ClaimState::FailedTerminal(settled(b"no", at(1)));
    let expired = ClaimState::Expired { tombstone_until: at(9) };
    let illegal = [
        (&in_flight, vec![&expired]),
        (&put_off, vec![&put_off, &waiting, &completed, &failed, &expired]),
        (&waiting, vec![&in_flight, &put_off, &expired]),
        (&completed, vec![&in_flight, &put_off, &waiting, &completed, &failed]),
        (&failed, vec![&in_flight, &put_off, &waiting, &completed, &failed]),
        (&expired, vec![&in_flight, &put_off, &waiting, &completed, &failed, &expired]),
    ];
    for (number, (from, targets)) in (1..).zip(illegal) {
        let before = claim_in(number, from.clone());
        commit(&**store, set(number).insert(before.clone())).await;
        for to in targets {
            let after = Claim { fence: 2, ..moved(&before, to.clone()) };
            let found = refused(&**store, set(99).replace(after, 1), RefusalReason::IllegalMove).await;
            assert_eq!(found, Some(before.clone().into()), "{} to {}", from.name(), to.name());
        }
        assert_eq!(row(&**store, RowKey::Claim(before.tenant, before.id)).await, Some(before.into()));
    }
}

pub async fn a_claim_never_forgets_its_past<S: Store>(store: &Arc<S>) {
    let before = Claim { fence: 4, attempts: 4, ..claim(1) };
    commit(&**store, set(1).insert(before.clone())).await;
    let legal = moved(&before, ClaimState::Completed(settled(b"", at(1))));
    for illegal in [
        Claim { fence: 3, ..legal.clone() },
        Claim { attempts: 3, ..legal.clone() },
        Claim { fingerprint: fingerprint(2), ..legal.clone() },
        Claim { created_at: at(1), ..legal.clone() },
        Claim { makes: Resource::Transfer, ..legal.clone() },
    ] {
        let found = refused(&**store, set(2).replace(illegal, 1), RefusalReason::IllegalMove).await;
        assert_eq!(found, Some(before.clone().into()));
    }
    commit(&**store, set(3).replace(legal, 1)).await;
}

pub async fn a_free_key_is_claimed_again<S: Store>(store: &Arc<S>) {
    let ends = [
        ClaimState::Expired { tombstone_until: at(1) },
        ClaimState::Completed(settled(b"", at(1))),
        ClaimState::FailedTerminal(settled(b"", at(1))),
    ];
    for (number, end) in (1..).zip(ends) {
        let old = Claim { fence: 7, revision: 7, attempts: 7, ..claim_in(number, end) };
        commit(&**store, set(number).insert(old.clone())).await;
        // A request that needs no provider is settled by its first write.
        let settled = ClaimState::Completed(settled(b"again", at(2)));
        let state = if number == 1 { reclaimed(&old, 0).state } else { settled };
        let new = Claim { state, makes: Resource::Transfer, ..reclaimed(&old, number + 100) };
        let stale_fence = Claim { fence: 7, ..new.clone() };
        let found = refused(&**store, set(50).replace(stale_fence, 7), RefusalReason::IllegalMove).await;
        assert_eq!(found, Some(old.into()));
        commit(&**store, set(number + 10).replace(new.clone(), 7)).await;
        assert_eq!(row(&**store, RowKey::Claim(new.tenant, new.id)).await, Some(new.into()));
    }
}

/// A key that was swept and used again counts its revisions from 1. A slow writer may therefore
/// expect the right revision of the wrong record.
pub async fn a_replayable_answer_is_not_claimed_over<S: Store>(store: &Arc<S>) {
    let swept = claim_in(1, ClaimState::Expired { tombstone_until: at(1) });
    let young = Claim { created_at: at(2), ..claim_in(1, ClaimState::Completed(settled(b"young", at(3)))) };
    commit(&**store, set(1).insert(young.clone())).await;
    let slow = Claim { created_at: at(2), ..reclaimed(&swept, 9) };
    let found = refused(&**store, set(2).replace(slow, swept.revision), RefusalReason::IllegalMove).await;
    assert_eq!(found, Some(young.into()));
}

pub async fn a_key_in_flight_is_not_claimed_again<S: Store>(store: &Arc<S>) {
    let at_work = [
        ClaimState::InFlight(lease(at(0))),
        ClaimState::FailedRetry { not_before: at(1) },
        ClaimState::Uncertain(Custody::Waiting { not_before: at(1) }),
        ClaimState::Uncertain(Custody::Held(lease(at(0)))),
    ];
    for (number, state) in (1..).zip(at_work) {
        let old = claim_in(number, state);
        commit(&**store, set(number).insert(old.clone())).await;
        let new = reclaimed(&old, number + 100);
        let found = refused(&**store, set(50).replace(new, 1), RefusalReason::IllegalMove).await;
        assert_eq!(found, Some(old.into()));
    }
}

pub async fn only_a_settled_claim_whose_time_ends_is_removed<S: Store>(store: &Arc<S>) {
    for (number, state) in (1..).zip(states()) {
        let kept = match &state {
            ClaimState::InFlight(_) | ClaimState::FailedRetry { .. } | ClaimState::Uncertain(_) => true,
            ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled) => {
                settled.windows.tombstone_until == Time::MAX
            }
            ClaimState::Expired { tombstone_until } => *tombstone_until == Time::MAX,
        };
        let there = claim_in(number, state);
        let key = RowKey::Claim(there.tenant, there.id);
        commit(&**store, set(number).insert(there.clone())).await;
        let removal = set(number + 50).remove(key.clone(), 1);
        if kept {
            let found = refused(&**store, removal, RefusalReason::IllegalMove).await;
            assert_eq!(found, Some(there.into()));
        } else {
            commit(&**store, removal).await;
            assert_eq!(row(&**store, key).await, None);
        }
    }
}

pub async fn a_hundred_claims_on_one_key_have_one_winner<S: Store>(store: &Arc<S>) {
    let rivals: Vec<Claim> =
        (1..=100).map(|number| Claim { subject: charge_id(number).into(), ..claim(1) }).collect();
    let sets = (1..).zip(&rivals).map(|(number, rival)| set(number).insert(rival.clone()));
    let answers = together(store, sets.collect()).await;
    one_winner(store, RowKey::Claim(TENANT, claim(1).id), &rivals, answers, RefusalReason::Present).await;
}

pub async fn a_hundred_takeovers_have_one_winner<S: Store>(store: &Arc<S>) {
    commit(&**store, set(1_000).insert(claim(1))).await;
    let rivals: Vec<Claim> = (1..=100)
        .map(|slot| {
            let mut lease = lease(at(60_000));
            lease.holder = Holder { slot, epoch: 1 };
            claim(1).on(ClaimEvent::TakenOver(lease)).expect("a claim in flight may be taken over")
        })
        .collect();
    let sets = (1..).zip(&rivals).map(|(number, rival)| set(number).replace(rival.clone(), 1));
    let answers = together(store, sets.collect()).await;
    one_winner(store, RowKey::Claim(TENANT, claim(1).id), &rivals, answers, RefusalReason::Stale).await;
}

/// Expects exactly one winner, whose row all rivals found.
async fn one_winner<S: Store>(
    store: &Arc<S>,
    key: RowKey,
    rivals: &[Claim],
    answers: Vec<Result<CommitReceipt, Box<CommitRefusal>>>,
    reason: RefusalReason,
) {
    let winners: Vec<&Claim> =
        rivals.iter().zip(&answers).filter(|(_, answer)| answer.is_ok()).map(|(rival, _)| rival).collect();
    assert_eq!(winners.len(), 1, "winners");
    let winner = winners.first().map(|claim| Row::from((*claim).clone()));
    for refusal in answers.into_iter().filter_map(Result::err) {
        assert_eq!((refusal.change, refusal.reason), (0, reason));
        assert_eq!(refusal.found, winner);
    }
    assert_eq!(row(&**store, key).await, winner);
}

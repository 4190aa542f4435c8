//! The two change sets of a charge, as the engine makes them: the opening, and the settlement with
//! its posting.

use counterfoil_core::idempotency::claim::{Claim, ClaimState, Settled};
use counterfoil_core::idempotency::window::{Reuse, WindowPolicy};
use counterfoil_core::payments::charge::{Charge, ChargeStatus, ChargeSums};
use counterfoil_core::payments::ledger::decide::post_charge;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::conformance::fixtures;
use counterfoil_store::conformance::fixtures::{at, audit, charge, outbox, set, settled};
use counterfoil_store::{ChangeSet, RowKey};

/// As long as the answer to a charge.
pub(super) const ANSWER: [u8; 480] = [b'x'; 480];
const RECEIVABLE: AccountId = AccountId::from_i64(8);
const DAY: Span = Span::from_ms(86_400_000);
/// The server's default retention of keys.
const KEPT: WindowPolicy = WindowPolicy { replay: DAY, tombstone: DAY, reuse: Reuse::AfterTombstone };
/// Charges opened within a millisecond.
const AT_ONCE: i64 = 10;

/// Claim, charge, outbox row and audit record.
pub(super) fn opening(number: i64) -> ChangeSet {
    let set = set(number.saturating_mul(2));
    set.insert(claim(number)).insert(charge(number)).insert(outbox(number)).insert(audit(number, 0))
}

fn opened_at(number: i64) -> Time {
    at(u64::try_from(number / AT_ONCE).unwrap_or(0))
}

fn claim(number: i64) -> Claim {
    Claim { created_at: opened_at(number), ..fixtures::claim(number) }
}

/// Ends claim and charge and removes the outbox row; adds two audit records and a transaction of
/// two legs.
pub(super) fn settling(number: i64) -> ChangeSet {
    let opened = charge(number);
    let work = RowKey::Outbox(opened.tenant, opened.id.into());
    let claimed = claim(number);
    let windows = KEPT.windows(claimed.id, claimed.created_at.plus(Span::from_ms(5)));
    let answer = Settled { windows, ..settled(&ANSWER, windows.replay_until) };
    let done = Claim { revision: 2, state: ClaimState::Completed(answer), ..claimed };
    let sums = ChargeSums { captured: opened.order.amount.minor(), ..ChargeSums::default() };
    let charged = Charge { status: ChargeStatus::Succeeded, sums, revision: 2, ..opened };
    let posting = post_charge(&charged, RECEIVABLE, charged.order.destination, at(9)).ok();
    let set = set(number.saturating_mul(2).saturating_add(1))
        .replace(done, 1)
        .replace(charged, 1)
        .remove(work, 1)
        .insert(audit(number, 1))
        .insert(audit(number, 2));
    match posting {
        Some(transaction) => set.insert(transaction),
        None => set,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_two_sets_and_the_second_has_the_posting() {
        assert_eq!(opening(1).changes().len(), 4);
        assert_eq!(settling(1).changes().len(), 6);
        assert_ne!(opening(1).id(), settling(1).id());
        assert_ne!(settling(1).id(), opening(2).id());
    }
}

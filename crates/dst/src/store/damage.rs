//! Planted bugs of stores.

use super::simulated::SimulatedStore;
use crate::bank::Bug;
use counterfoil_core::idempotency::claim::ClaimState;
use counterfoil_core::ledger::account::Account;
use counterfoil_core::ledger::balance::{Balance, Delta};
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::ledger::transaction::TransactionKind;
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::types::id::{AccountId, TenantId};
use counterfoil_core::types::money::Money;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::judge::{Image, judge as lawful};
use counterfoil_store::{
    Change, ChangeSet, CommitError, CommitReceipt, CommitRefusal, Due, Folded, Move, Position, RefusalReason,
    Row, RowKey, Upto,
};
use std::sync::Arc;

/// The rows after a set that the judge refuses and a broken store takes, or `None`.
pub(super) fn judge(bug: Bug, set: &ChangeSet, before: &[Option<Row>]) -> Option<Vec<Option<Row>>> {
    let mut image = Image::default();
    for (change, row) in set.changes().iter().zip(before) {
        image.bring(change.key(), row.clone());
    }
    let refusal = lawful(&image, set).err()?;
    if !overlooks(bug, &refusal, set) {
        return None;
    }
    let after = set.changes().iter().zip(before).map(|(change, before)| match change {
        // The revision must not reveal the concurrent write.
        Change::Replace { row, .. } if bug == Bug::PayoutOverdraws => Some(seen_anew(row, before.as_ref())),
        Change::Insert(row) | Change::Replace { row, .. } => Some(Row::clone(row)),
        Change::Remove { .. } => None,
        Change::Move(motion) => Some(Row::Balance(forced(motion, before.as_ref()))),
    });
    Some(after.collect())
}

fn overlooks(bug: Bug, refusal: &CommitRefusal, set: &ChangeSet) -> bool {
    let Some(change) = set.changes().get(refusal.change) else { return false };
    let stale = matches!(refusal.reason, RefusalReason::Stale | RefusalReason::IllegalMove);
    match (bug, change.key()) {
        (Bug::NoFence, RowKey::Claim(..))
        | (Bug::HoldEndsTwice, RowKey::Hold(..))
        | (Bug::PayoutOverdraws, RowKey::Account(..)) => stale,
        (Bug::SlotShared, RowKey::Slot(_)) => stale || refusal.reason == RefusalReason::Present,
        (Bug::ClaimOverwritten, RowKey::Claim(..))
        | (Bug::CodeTwice, RowKey::Name(..))
        | (Bug::ReversedTwice, RowKey::Reversal(..)) => refusal.reason == RefusalReason::Present,
        (Bug::RefundNotReserved, RowKey::Charge(..)) => refusal.reason == RefusalReason::IllegalMove,
        (Bug::FloorIgnored, RowKey::Balance(..)) => refusal.reason == RefusalReason::Insufficient,
        (Bug::CapIgnored, RowKey::Balance(..)) => refusal.reason == RefusalReason::CapExceeded,
        (Bug::HoldsNotCounted, RowKey::Balance(..)) => {
            let Change::Move(motion) = change else { return false };
            let posted = |balance: &Balance| balance.posted.saturating_add(motion.delta.posted);
            let free = matches!(&refusal.found, Some(Row::Balance(found)) if posted(found) >= found.floor.unwrap_or(i64::MIN));
            refusal.reason == RefusalReason::Insufficient && free
        }
        _ => false,
    }
}

fn seen_anew(row: &Row, before: Option<&Row>) -> Row {
    match (row, before) {
        (Row::Account(account), Some(Row::Account(found))) => {
            Row::Account(Account { revision: found.revision.saturating_add(1), ..account.clone() })
        }
        (row, _) => row.clone(),
    }
}

fn forced(motion: &Move, before: Option<&Row>) -> Balance {
    let found = match before {
        Some(Row::Balance(balance)) => *balance,
        _ => Balance::empty(motion.tenant, motion.account, motion.shard, motion.guarded),
    };
    let Delta { posted, outgoing, incoming, floor, cap } = motion.delta;
    Balance {
        posted: found.posted.saturating_add(posted),
        outgoing: found.outgoing.saturating_add(outgoing),
        incoming: found.incoming.saturating_add(incoming),
        floor: found.floor.map(|it| it.saturating_add(floor)),
        cap: found.cap.map(|it| it.saturating_add(cap)),
        revision: found.revision.saturating_add(1),
        ..found
    }
}

/// The rows that a broken store keeps of an accepted set.
pub(super) fn tear(
    bug: Bug,
    number: u64,
    set: &ChangeSet,
    before: &[Option<Row>],
    after: Vec<Option<Row>>,
) -> Vec<Option<Row>> {
    let strikes = number.is_multiple_of(3);
    // A reservation ends in the same set as its payment.
    let has = |wanted: fn(&RowKey) -> bool| set.changes().iter().any(|change| wanted(&change.key()));
    let refunds = has(|key| matches!(key, RowKey::Operation(..)));
    let pays_out = has(|key| matches!(key, RowKey::Payout(..)));
    let affected = match bug {
        Bug::RefundUnposted => refunds,
        Bug::WalletKept => !refunds && has(|key| matches!(key, RowKey::Charge(..))),
        Bug::PayoutUnposted | Bug::PayoutKept => pays_out,
        _ => false,
    };
    if affected && (strikes || pays_out) {
        let rows = set.changes().iter().zip(before).zip(after);
        return rows.map(|((_, before), after)| unreleased(bug, before.as_ref(), after)).collect();
    }
    let rows = set.changes().iter().zip(before).zip(after);
    rows.map(
        |((change, before), after)| if strikes { torn(bug, change, before.as_ref(), after) } else { after },
    )
    .collect()
}

/// Drops the end of a payment's reservation from the set.
fn unreleased(bug: Bug, before: Option<&Row>, after: Option<Row>) -> Option<Row> {
    match (bug, after) {
        (Bug::RefundUnposted | Bug::PayoutUnposted, Some(Row::Transaction(it)))
            if matches!(it.kind, TransactionKind::HoldPosted(_)) =>
        {
            None
        }
        (Bug::WalletKept | Bug::PayoutKept, Some(Row::Transaction(it)))
            if matches!(it.kind, TransactionKind::HoldVoided(_)) =>
        {
            None
        }
        (Bug::RefundUnposted | Bug::PayoutUnposted, Some(Row::Hold(it)))
            if matches!(it.state, HoldState::Posted { .. }) =>
        {
            before.cloned()
        }
        (Bug::WalletKept | Bug::PayoutKept, Some(Row::Hold(it)))
            if matches!(it.state, HoldState::Voided { .. }) =>
        {
            before.cloned()
        }
        (_, after) => after,
    }
}

fn torn(bug: Bug, change: &Change, before: Option<&Row>, after: Option<Row>) -> Option<Row> {
    let settled = matches!(&after, Some(Row::Claim(claim)) if claim.state.settled().is_some());
    match (bug, change, after) {
        (Bug::TornWork, Change::Insert(_), Some(Row::Outbox(_)))
        | (Bug::TornAudit, Change::Insert(_), Some(Row::Audit(_)))
        | (Bug::TornPosting, Change::Insert(_), Some(Row::Transaction(_)))
        | (Bug::TornHold, _, Some(Row::Hold(_)))
        | (Bug::TornCharge, Change::Replace { .. }, Some(Row::Charge(_)))
        | (Bug::TornOperation, Change::Replace { .. }, Some(Row::Operation(_)))
        | (Bug::TornPayout, Change::Replace { .. }, Some(Row::Payout(_)))
        | (Bug::TornMoves, Change::Move(_), _)
        | (Bug::TornWorkRemoval, Change::Remove { key: RowKey::Outbox(..), .. }, None) => before.cloned(),
        (Bug::ParkedForgotten, Change::Replace { .. }, Some(Row::Outbox(it))) if it.parked.is_some() => None,
        (
            Bug::RefundNotReserved | Bug::RefundNotCounted | Bug::WorkingStays,
            Change::Replace { .. },
            Some(Row::Charge(charge)),
        ) => Some(Row::Charge(forgetful(bug, before, charge))),
        (Bug::TornClaim, _, Some(Row::Claim(_))) if settled => before.cloned(),
        (Bug::MovedTwice, Change::Move(motion), Some(row)) => Some(Row::Balance(forced(motion, Some(&row)))),
        (Bug::LegsReversed, Change::Insert(_), Some(Row::Transaction(mut transaction))) => {
            transaction.legs = transaction.legs.reversed();
            Some(Row::Transaction(transaction))
        }
        (Bug::ReplyAltered, _, Some(Row::Claim(mut claim))) => {
            if let ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled) = &mut claim.state {
                settled.reply.status = settled.reply.status.saturating_add(1);
            }
            Some(Row::Claim(claim))
        }
        (Bug::AmountAltered, Change::Insert(_), Some(Row::Charge(mut charge))) => {
            let more = Money::new(charge.order.amount.minor().saturating_add(1), charge.order.amount.asset());
            let order = Arc::make_mut(&mut charge.order);
            order.amount = more.unwrap_or(order.amount);
            Some(Row::Charge(charge))
        }
        (Bug::SnapshotWrong, Change::Insert(_), Some(Row::Snapshot(mut snapshot))) => {
            snapshot.totals.credits = snapshot.totals.credits.saturating_add(1);
            Some(Row::Snapshot(snapshot))
        }
        (_, _, after) => after,
    }
}

/// Drops the results of operations from the charge.
fn forgetful(bug: Bug, before: Option<&Row>, mut charge: Charge) -> Charge {
    let Some(Row::Charge(before)) = before else { return charge };
    match bug {
        Bug::RefundNotReserved => charge.sums.refunding = before.sums.refunding.min(charge.sums.refunding),
        Bug::RefundNotCounted => charge.sums.refunded = before.sums.refunded,
        _ => charge.working = before.working.or(charge.working),
    }
    charge
}

pub(super) fn commit(
    bug: Bug,
    store: &mut SimulatedStore,
    set: &ChangeSet,
    at: Time,
) -> Result<CommitReceipt, CommitError> {
    let number = u64::try_from(store.history().len()).unwrap_or(0);
    let strikes = set.id().to_i64() % 7 == 0 || number % 11 == 5;
    if bug == Bug::AckWithoutCommit && strikes && number > 4 {
        return Ok(CommitReceipt { position: Position(number.saturating_add(1)), at });
    }
    let receipt = store.commit(set, at)?;
    match bug {
        Bug::LosesTail if number % 23 == 22 => {
            store.lose_last();
            Ok(receipt)
        }
        Bug::PositionGap if number % 23 == 22 => {
            store.skip_position();
            Ok(receipt)
        }
        Bug::AnswersForgotten if number % 9 == 8 => {
            store.forget_answers();
            Ok(receipt)
        }
        _ => Ok(receipt),
    }
}

pub(super) fn read(bug: Option<Bug>, store: &SimulatedStore, key: &RowKey) -> Option<Row> {
    if bug == Some(Bug::StaleRead) {
        return store.before_last(key);
    }
    store.row(key).cloned()
}

/// The due rows of a broken store.
pub(super) fn due(bug: Option<Bug>, store: &SimulatedStore, due: Due, now: Time, limit: usize) -> Vec<Row> {
    match (bug, due) {
        (Some(Bug::DueNever), Due::Outbox) | (Some(Bug::HoldsNeverLapse), Due::Holds) => Vec::new(),
        (Some(Bug::AgedEarly), Due::Claims) => {
            store.due(due, now.plus(Span::from_ms(400 * 86_400_000)), limit)
        }
        _ => store.due(due, now, limit),
    }
}

pub(super) fn fold(
    bug: Option<Bug>,
    store: &SimulatedStore,
    (tenant, account): (TenantId, AccountId),
    after: Position,
    upto: Upto,
) -> Folded {
    let whole = store.fold(tenant, account, after, upto);
    match (bug, whole.last) {
        (Some(Bug::FoldShort), Some(last)) if last.position.0 > after.0.saturating_add(1) => {
            store.fold(tenant, account, after, Upto::Position(Position(last.position.0.saturating_sub(1))))
        }
        _ => whole,
    }
}

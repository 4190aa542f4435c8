//! Reservations of payments in the ledger: the wallet's part of a split, refunds and payouts. Each
//! ends as its payment does, in the same commit. The wallet of a split is released after the card.

use super::{Evidence, Violation};
use crate::store::START;
use counterfoil_core::ledger::hold::{Hold, HoldState};
use counterfoil_core::outbox::{Flow, Outbox, Payment};
use counterfoil_core::payments::charge::{Charge, ChargeStatus};
use counterfoil_core::payments::operation::{Operation, OperationStatus};
use counterfoil_core::payments::payout::{Payout, PayoutStatus};
use counterfoil_core::payments::provider::ProviderStep;
use counterfoil_core::types::id::{HoldId, SubjectId};
use counterfoil_core::types::time::{Span, Time};
use counterfoil_store::{Row, RowKey};
use std::collections::{BTreeMap, BTreeSet};

/// The expected state of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Open,
    Posted,
    Freed,
}

/// Checks reservations and dead letters.
pub fn check(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut works: BTreeMap<SubjectId, &Outbox> = BTreeMap::new();
    let mut freed: BTreeMap<HoldId, Time> = BTreeMap::new();
    for applied in &evidence.history {
        for row in applied.rows() {
            match row {
                Row::Outbox(outbox) => drop(works.insert(outbox.id, outbox)),
                Row::Hold(hold) if matches!(hold.state, HoldState::Voided { .. }) => {
                    freed.entry(hold.id).or_insert(applied.committed.receipt.at);
                }
                _ => {}
            }
        }
    }
    let mut say = |invariant, what: String| found.push(Violation::new("reserved", invariant, what));
    let mut owned: BTreeSet<HoldId> = BTreeSet::new();
    for work in works.values() {
        let reserves = matches!(work.saga.flow, Flow::Split | Flow::Refund | Flow::Payout);
        let hold = work.hold.and_then(|id| match evidence.find_row(|tenant| RowKey::Hold(tenant, id)) {
            Some(Row::Hold(hold)) => Some(hold),
            _ => None,
        });
        match hold {
            Some(hold) if reserves => {
                if !owned.insert(hold.id) {
                    say("I8", format!("two payments reserve under {}", hold.id.to_i64()));
                }
                for what in against(evidence, work, hold, &freed) {
                    say("I7", what);
                }
            }
            None if !reserves => {}
            Some(_) | None => say(
                "I7",
                format!(
                    "{} of {} has no reservation, or one too many",
                    work.saga.flow.name(),
                    work.id.to_i64()
                ),
            ),
        }
    }
    for row in evidence.each() {
        match row {
            Row::Hold(hold) if hold.is_a_payments() && !owned.contains(&hold.id) => {
                say("I8", format!("the reservation {} belongs to no payment", hold.id.to_i64()));
            }
            Row::Charge(charge) if charge.status == ChargeStatus::Parked => {
                let id = charge.working.map_or_else(|| charge.id.into(), SubjectId::from);
                in_sight(evidence, id, &mut say);
            }
            Row::Operation(operation) if operation.status == OperationStatus::Parked => {
                in_sight(evidence, operation.id.into(), &mut say);
            }
            Row::Payout(payout) if payout.status == PayoutStatus::Parked => {
                in_sight(evidence, payout.id.into(), &mut say);
            }
            Row::Outbox(outbox) if outbox.parked.is_some() && !stands_parked(evidence, outbox) => {
                say("I9", format!("{} is parked, and its payment is not", outbox.id.to_i64()));
            }
            _ => {}
        }
    }
}

/// Parked work is a dead letter: its outbox row gives the reason.
fn in_sight(evidence: &Evidence, id: SubjectId, say: &mut impl FnMut(&'static str, String)) {
    let there = matches!(evidence.find_row(|tenant| RowKey::Outbox(tenant, id)), Some(Row::Outbox(work)) if work.parked.is_some());
    if !there {
        say("I9", format!("{} is parked without a dead letter", id.to_i64()));
    }
}

fn stands_parked(evidence: &Evidence, outbox: &Outbox) -> bool {
    let payment = match outbox.payment {
        Payment::Charge(charge) => evidence.find_row(|tenant| RowKey::Charge(tenant, charge)),
        Payment::Payout(payout) => evidence.find_row(|tenant| RowKey::Payout(tenant, payout)),
    };
    match evidence.find_row(|tenant| RowKey::Operation(tenant, outbox.id.into())).or(payment) {
        Some(Row::Operation(operation)) => operation.status == OperationStatus::Parked,
        Some(Row::Charge(charge)) => charge.status == ChargeStatus::Parked,
        Some(Row::Payout(payout)) => payout.status == PayoutStatus::Parked,
        _ => false,
    }
}

/// Checks a reservation against the payment.
fn against(evidence: &Evidence, work: &Outbox, hold: &Hold, freed: &BTreeMap<HoldId, Time>) -> Vec<String> {
    let own = match work.payment {
        Payment::Charge(charge) => evidence.find_row(|tenant| RowKey::Charge(tenant, charge)),
        Payment::Payout(payout) => evidence.find_row(|tenant| RowKey::Payout(tenant, payout)),
    };
    if let Some(Row::Payout(payout)) = own {
        return of_payout(payout, hold);
    }
    let Some(Row::Charge(charge)) = own else {
        return vec![format!("the reservation {} has no payment", hold.id.to_i64())];
    };
    let refund = match evidence.find_row(|tenant| RowKey::Operation(tenant, work.id.into())) {
        Some(Row::Operation(refund)) => Some(refund),
        _ => None,
    };
    let name = format!("{} of charge {}", work.saga.flow.name(), charge.id.to_i64());
    let mut broken = Vec::new();
    broken.extend(stands(hold, wanted(charge, refund)).map(|what| format!("{name}: {what}")));
    let amount = refund.map(|it| it.amount.minor()).or(charge.order.wallet.map(|it| it.amount));
    let from = match (refund, charge.order.wallet) {
        (None, Some(wallet)) => wallet.account,
        (Some(_), _) | (None, None) => charge.order.destination,
    };
    if amount != Some(hold.amount) || from != hold.from || hold.asset != charge.order.amount.asset() {
        broken.push(format!("{name}: the reservation is of another amount or account"));
    }
    if refund.is_none() {
        broken.extend(too_soon(evidence, charge, freed.get(&hold.id)).map(|what| format!("{name}: {what}")));
    }
    broken
}

/// The state of a reservation, if it differs from the expected one.
fn stands(hold: &Hold, wanted: Wanted) -> Option<String> {
    let stands = match hold.state {
        HoldState::Pending => Wanted::Open,
        HoldState::Posted { amount, .. } if amount == hold.amount => Wanted::Posted,
        HoldState::Voided { .. } => Wanted::Freed,
        HoldState::Posted { .. } | HoldState::Lapsed { .. } => {
            return Some("the reservation ended as no payment ends it".to_owned());
        }
    };
    (stands != wanted).then(|| format!("the reservation is {stands:?} and should be {wanted:?}"))
}

/// Checks a reservation against the payout.
fn of_payout(payout: &Payout, hold: &Hold) -> Vec<String> {
    let name = format!("payout {}", payout.id.to_i64());
    let wanted = match payout.status {
        PayoutStatus::Paid => Wanted::Posted,
        PayoutStatus::Failed => Wanted::Freed,
        PayoutStatus::Processing | PayoutStatus::Parked => Wanted::Open,
    };
    let (amount, account) = (payout.order.amount, payout.order.account);
    let same = (hold.amount, hold.asset, hold.from) == (amount.minor(), amount.asset(), account);
    let other = (!same).then(|| "the reservation is of another amount or account".to_owned());
    stands(hold, wanted).into_iter().chain(other).map(|what| format!("{name}: {what}")).collect()
}

fn wanted(charge: &Charge, refund: Option<&Operation>) -> Wanted {
    match refund.map(|refund| refund.status) {
        Some(OperationStatus::Succeeded) => Wanted::Posted,
        Some(OperationStatus::Failed) => Wanted::Freed,
        None if charge.status.is_captured() => Wanted::Posted,
        None if charge.status == ChargeStatus::Failed => Wanted::Freed,
        Some(OperationStatus::Processing | OperationStatus::Parked) | None => Wanted::Open,
    }
}

/// A wallet must not be released while the card is still held.
fn too_soon(evidence: &Evidence, charge: &Charge, freed: Option<&Time>) -> Option<String> {
    let on = charge.provider_reference.as_ref()?;
    let void = evidence.effects.iter().find(|it| it.step == ProviderStep::Void && it.on == *on)?;
    let at = START.plus(Span::from_ms(void.at));
    freed.filter(|freed| **freed < at).map(|_| "the wallet was released before the card".to_owned())
}

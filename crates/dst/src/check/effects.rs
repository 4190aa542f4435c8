//! The provider's effects, compared with charges, operations and claims.

use super::{Evidence, Violation};
use crate::provider::Effect;
use crate::run::references;
use crate::store::START;
use counterfoil_core::audit::AuditKind;
use counterfoil_core::idempotency::claim::{Claim, Resource};
use counterfoil_core::outbox::Payment;
use counterfoil_core::payments::charge::{Charge, ChargeStatus, FailureCode, PaymentFailure};
use counterfoil_core::payments::operation::{Operation, OperationKind, OperationStatus};
use counterfoil_core::payments::provider::ProviderStep;
use counterfoil_core::types::id::{ChargeId, PayoutId};
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_core::types::time::Span;
use counterfoil_store::{Row, RowKey};
use std::collections::BTreeMap;

/// Checks effects and calls.
pub fn check(evidence: &Evidence, found: &mut Vec<Violation>) {
    let references = references();
    let mut by_charge: BTreeMap<ChargeId, Vec<&Effect>> = BTreeMap::new();
    let mut by_payout: BTreeMap<PayoutId, Vec<&Effect>> = BTreeMap::new();
    for effect in &evidence.effects {
        match payment_of(&effect.payment) {
            Some(Payment::Charge(charge))
                if evidence.find_row(|tenant| RowKey::Charge(tenant, charge)).is_some() =>
            {
                by_charge.entry(charge).or_default().push(effect);
            }
            Some(Payment::Payout(payout))
                if evidence.find_row(|tenant| RowKey::Payout(tenant, payout)).is_some() =>
            {
                by_payout.entry(payout).or_default().push(effect);
            }
            Some(_) | None => {
                let what =
                    format!("an effect of {} belongs to no payment ({})", effect.amount, effect.payment);
                found.push(Violation::new("effects", "I5", what));
            }
        }
    }
    let mut operations: BTreeMap<ChargeId, Vec<&Operation>> = BTreeMap::new();
    let mut resolved: BTreeMap<ChargeId, Vec<&str>> = BTreeMap::new();
    for row in evidence.each() {
        match row {
            Row::Operation(operation) => {
                operations.entry(operation.charge).or_default().push(operation);
            }
            Row::Audit(record) if record.kind == AuditKind::Resolved => {
                resolved.entry(record.subject.into()).or_default().push(record.detail.as_str());
            }
            _ => {}
        }
    }
    for row in evidence.each() {
        if let Row::Charge(charge) = row {
            let effects = by_charge.get(&charge.id).map_or(&[][..], Vec::as_slice);
            let operations = operations.get(&charge.id).map_or(&[][..], Vec::as_slice);
            let resolved = resolved.get(&charge.id).map_or(&[][..], Vec::as_slice);
            let life = Life { charge, effects, operations, resolved };
            life.check(found);
            let payment = references.seal(ReferenceKind::Charge, charge.id.to_i64()).to_string();
            let declined = |step: ProviderStep| evidence.declines.contains(&(payment.clone(), step.name()));
            life.check_declines(declined, found);
        }
        if let Row::Payout(payout) = row {
            let effects = by_payout.get(&payout.id).map_or(&[][..], Vec::as_slice);
            super::payouts::paid(evidence, payout, effects, found);
        }
    }
    check_calls(evidence, found);
    found.extend(evidence.misuses.iter().map(|what| Violation::new("effects", "I1", what.clone())));
}

/// The payment of a reference.
fn payment_of(payment: &str) -> Option<Payment> {
    let references = references();
    let charge =
        references.open(ReferenceKind::Charge, payment).map(|id| Payment::Charge(ChargeId::from_i64(id)));
    charge.or_else(|| {
        references.open(ReferenceKind::Payout, payment).map(|id| Payment::Payout(PayoutId::from_i64(id)))
    })
}

/// A charge with the effects at the provider and its operations.
struct Life<'a> {
    charge: &'a Charge,
    effects: &'a [&'a Effect],
    operations: &'a [&'a Operation],
    /// Audit details of operators' resolutions.
    resolved: &'a [&'a str],
}

impl<'a> Life<'a> {
    /// Effects of these steps, without the provider's own duplicates.
    fn own(&self, steps: &'static [ProviderStep]) -> impl Iterator<Item = &'a Effect> {
        self.effects.iter().copied().filter(|it| !it.own_duplicate && steps.contains(&it.step))
    }

    /// Whether an operator used this resolution on the charge.
    fn was(&self, resolution: &str) -> bool {
        self.resolved.iter().any(|detail| detail.contains(resolution))
    }

    fn check(&self, found: &mut Vec<Violation>) {
        let (charge, order) = (self.charge, &self.charge.order);
        let name = format!(
            "charge {} of {} ({})",
            charge.id.to_i64(),
            charge.order.amount.minor(),
            charge.status.name()
        );
        let mut say = |invariant, what: String| {
            found.push(Violation::new("effects", invariant, format!("{name} {what}")));
        };
        for (steps, word) in [(MAKING, "executed"), (CAPTURE, "captured"), (VOID, "voided")] {
            let times = self.own(steps).count();
            if times > 1 {
                say("I1", format!("was {word} {times} times"));
            }
        }
        if self.own(CAPTURE).next().is_some() && self.own(VOID).next().is_some() {
            say("I7", "was captured and voided".to_owned());
        }
        let at_once = order.capture && order.wallet.is_none();
        let named = self.effects.iter().copied().find(|effect| {
            MAKING.contains(&effect.step)
                && charge.provider_reference.as_deref() == Some(effect.reference.as_str())
                // `adopt` accepts the provider's amount.
                && (effect.amount == order.card() || self.was("resolution=adopt"))
                && effect.asset == order.amount.asset()
                && effect.captured == at_once
        });
        let on_it = |step: ProviderStep| {
            self.effects
                .iter()
                .copied()
                .find(|it| it.step == step && Some(&it.on) == charge.provider_reference.as_ref())
        };
        match charge.status {
            ChargeStatus::Succeeded | ChargeStatus::RequiresCapture | ChargeStatus::Voided => {
                self.check_completed(named, &mut say);
            }
            ChargeStatus::Refunded | ChargeStatus::PartiallyRefunded => self.check_completed(named, &mut say),
            ChargeStatus::Failed => {
                // A failed split has voided its hold.
                let left = self.own(MAKING).find(|made| {
                    let given_up = |it: &&Effect| it.step == ProviderStep::Void && it.on == made.reference;
                    !self.effects.iter().copied().any(|it| given_up(&it))
                });
                if left.is_some() || self.own(CAPTURE).next().is_some() {
                    say("I7", "was charged and is reported as failed".to_owned());
                }
                if self.own(REFUND).next().is_some()
                    || (order.wallet.is_none()
                        && on_it(ProviderStep::Void).is_some()
                        && !self.was("resolution=void"))
                {
                    say("I7", "has effects without a request".to_owned());
                }
            }
            ChargeStatus::Processing if !self.effects.is_empty() => {
                say("I7", "was charged and never concluded".to_owned());
            }
            ChargeStatus::Processing | ChargeStatus::Parked => {}
        }
        self.check_operations(&mut say);
    }

    /// Every reported decline was a decline of the provider.
    fn check_declines(&self, declined: impl Fn(ProviderStep) -> bool, found: &mut Vec<Violation>) {
        let is_decline = |failure: &Option<PaymentFailure>| {
            failure.as_ref().is_some_and(|it| it.code == FailureCode::CardDeclined)
        };
        let mut say = |what: &str| {
            let what =
                format!("charge {}: {what} is reported as declined and was not", self.charge.id.to_i64());
            found.push(Violation::new("effects", "I7", what));
        };
        let steps = [ProviderStep::Charge, ProviderStep::Authorize, ProviderStep::Capture];
        if self.charge.status == ChargeStatus::Failed
            && is_decline(&self.charge.failure)
            && !steps.into_iter().any(&declined)
        {
            say("it");
        }
        for one in self.operations {
            let step = match one.kind {
                OperationKind::Capture => ProviderStep::Capture,
                OperationKind::Void => ProviderStep::Void,
                OperationKind::Refund => ProviderStep::Refund,
            };
            if one.status == OperationStatus::Failed && is_decline(&one.failure) && !declined(step) {
                say(one.kind.name());
            }
        }
    }

    /// A completed charge has exactly the effects that its status and sums state.
    fn check_completed(&self, made: Option<&Effect>, say: &mut impl FnMut(&'static str, String)) {
        let charge = self.charge;
        if made.is_none() {
            say("I7", "is reported as done and the provider has no such effect".to_owned());
        }
        let at_once = made.filter(|made| made.captured);
        let captured = at_once.or_else(|| self.own(CAPTURE).next()).map_or(0, |effect| effect.amount);
        if captured != charge.sums.captured {
            say("I7", format!("says {} was taken, and it was {captured}", charge.sums.captured));
        }
        let takes = charge.order.capture || charge.order.wallet.is_some();
        let is_voided = self.own(VOID).next().is_some();
        let whole = charge.sums.refunded == charge.sums.captured;
        let right = match charge.status {
            ChargeStatus::RequiresCapture => captured == 0 && !takes && !is_voided,
            ChargeStatus::Voided => captured == 0 && !takes && is_voided,
            ChargeStatus::Succeeded => captured > 0 && !is_voided && charge.sums.refunded == 0,
            ChargeStatus::PartiallyRefunded => {
                captured > 0 && !is_voided && !whole && charge.sums.refunded > 0
            }
            ChargeStatus::Refunded => captured > 0 && !is_voided && whole,
            ChargeStatus::Processing | ChargeStatus::Failed | ChargeStatus::Parked => true,
        };
        if !right {
            say("I7", format!("is not what the provider did: taken {captured}, voided: {is_voided}"));
        }
    }

    /// Every completed operation has its effect at the provider. Effects without a completed
    /// operation belong to parked ones.
    fn check_operations(&self, say: &mut impl FnMut(&'static str, String)) {
        let mut refunds: Vec<&Effect> = self.own(REFUND).collect();
        for one in self.operations {
            let name = format!("{} {} of {}", one.kind.name(), one.id.to_i64(), one.amount.minor());
            match one.status {
                OperationStatus::Processing => say("I9", format!("has a {name} that never ended")),
                OperationStatus::Failed | OperationStatus::Parked => {}
                OperationStatus::Succeeded => {
                    let steps = match one.kind {
                        OperationKind::Capture => CAPTURE,
                        OperationKind::Void => VOID,
                        OperationKind::Refund => REFUND,
                    };
                    let its = |effect: &Effect| {
                        one.provider_reference.as_ref() == Some(&effect.reference)
                            && (one.kind == OperationKind::Void
                                || effect.amount == one.amount.minor()
                                || self.was("resolution=adopt"))
                            && effect.asset == one.amount.asset()
                    };
                    let there = if one.kind == OperationKind::Refund {
                        let place = refunds.iter().position(|effect| its(effect));
                        place.map(|place| refunds.remove(place)).is_some()
                    } else {
                        self.own(steps).any(its)
                    };
                    if !there {
                        say("I7", format!("has a {name} that is reported as done and was not"));
                    }
                }
            }
        }
        let mut parked: Vec<i64> =
            self.with_a_human(OperationKind::Refund).map(|one| one.amount.minor()).collect();
        for effect in refunds {
            match parked.iter().position(|amount| *amount == effect.asked) {
                Some(place) => drop(parked.remove(place)),
                None => say("I7", format!("has {} given back and not reported", effect.amount)),
            }
        }
        let split = self.charge.order.wallet.is_some();
        for (kind, steps) in [(OperationKind::Capture, CAPTURE), (OperationKind::Void, VOID)] {
            let asked = self
                .operations
                .iter()
                .any(|one| one.kind == kind && one.status == OperationStatus::Succeeded);
            let done = self.own(steps).next().is_some();
            let by_hand = kind == OperationKind::Void && self.was("resolution=void");
            if done && !split && !asked && !by_hand && self.with_a_human(kind).next().is_none() {
                say("I7", format!("had a {} that is reported as not done", kind.name()));
            }
        }
        let given: i64 = self.own(REFUND).map(|effect| effect.amount).sum();
        let all = self.own(MAKING).chain(self.own(CAPTURE));
        let taken: i64 = all.filter(|effect| effect.captured).map(|effect| effect.amount).sum();
        if given > taken {
            say("I7", format!("gave {given} back and took {taken}"));
        }
    }

    fn with_a_human(&self, kind: OperationKind) -> impl Iterator<Item = &&'a Operation> {
        self.operations.iter().filter(move |one| one.kind == kind && one.status == OperationStatus::Parked)
    }
}

const MAKING: &[ProviderStep] = &[ProviderStep::Charge, ProviderStep::Authorize];
const CAPTURE: &[ProviderStep] = &[ProviderStep::Capture];
const VOID: &[ProviderStep] = &[ProviderStep::Void];
const REFUND: &[ProviderStep] = &[ProviderStep::Refund];

/// Claims by payment and subject, with the index of the commit.
type Versions<'a> = BTreeMap<Payment, BTreeMap<i64, Vec<(usize, &'a Claim)>>>;

/// Every call needs a committed claim with a valid lease at that moment.
fn check_calls(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut versions: Versions<'_> = BTreeMap::new();
    for (place, applied) in evidence.history.iter().enumerate() {
        for row in applied.rows() {
            let Row::Claim(claim) = row else { continue };
            let payment = match claim.makes {
                Resource::Charge => Some(Payment::Charge(claim.subject.into())),
                Resource::Payout => Some(Payment::Payout(claim.subject.into())),
                Resource::Capture | Resource::Void | Resource::Refund => {
                    match evidence.find_row(|tenant| RowKey::Operation(tenant, claim.subject.into())) {
                        Some(Row::Operation(operation)) => Some(Payment::Charge(operation.charge)),
                        _ => None,
                    }
                }
                _ => None,
            };
            if let Some(payment) = payment {
                let own = versions.entry(payment).or_default().entry(claim.subject.to_i64()).or_default();
                own.push((place, claim));
            }
        }
    }
    for sent in &evidence.sent {
        let own = payment_of(&sent.payment).and_then(|payment| versions.get(&payment));
        // The claim of the payment itself, or of an operation with this step.
        let fits = |claim: &Claim| match claim.makes {
            Resource::Charge => true,
            Resource::Capture => sent.step == ProviderStep::Capture,
            Resource::Void => sent.step == ProviderStep::Void,
            Resource::Refund => sent.step == ProviderStep::Refund,
            Resource::Payout => sent.step == ProviderStep::Payout,
            _ => false,
        };
        let then: Vec<&Claim> = own
            .into_iter()
            .flat_map(BTreeMap::values)
            .filter_map(|claims| claims.iter().rev().find(|(place, _)| *place < sent.commits))
            .map(|(_, claim)| *claim)
            .filter(|claim| fits(claim))
            .collect();
        let now = START.plus(Span::from_ms(sent.at));
        let held = then.iter().any(|claim| claim.state.lease().is_some());
        let in_time = then.iter().any(|claim| claim.state.lease().is_some_and(|lease| !lease.is_over(now)));
        let problem = match (then.is_empty(), held, in_time) {
            (true, _, _) => "before its claim was committed",
            (false, false, _) => "without a lease on its claim",
            (false, true, false) => "after its lease was over",
            (false, true, true) => continue,
        };
        let what = format!("{} of {} was sent {problem}", sent.step.name(), sent.payment);
        found.push(Violation::new("effects", "I5", what));
    }
}

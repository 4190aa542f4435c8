//! What the provider did, held against charges and claims.

use super::{Evidence, Violation};
use crate::provider::Effect;
use crate::run::references;
use crate::store::START;
use counterfoil_core::idempotency::claim::{Claim, Resource};
use counterfoil_core::payments::charge::{Charge, Status};
use counterfoil_core::types::id::ChargeId;
use counterfoil_core::types::reference::Kind;
use counterfoil_core::types::time::Span;
use counterfoil_store::{Row, RowKey};
use std::collections::BTreeMap;

/// Checks effects and calls.
pub fn check(evidence: &Evidence, found: &mut Vec<Violation>) {
    let references = references();
    let charge_of = |payment: &str| references.open(Kind::Charge, payment).map(ChargeId::from_i64);
    let mut by_charge: BTreeMap<ChargeId, Vec<&Effect>> = BTreeMap::new();
    for effect in &evidence.effects {
        match charge_of(&effect.payment) {
            Some(charge) if evidence.rows.contains_key(&RowKey::Charge(charge)) => {
                by_charge.entry(charge).or_default().push(effect);
            }
            Some(_) | None => {
                let what =
                    format!("an effect of {} belongs to no charge ({})", effect.amount, effect.payment);
                found.push(Violation::new("effects", "I5", what));
            }
        }
    }
    for row in evidence.rows.values() {
        if let Row::Charge(charge) = row {
            let effects = by_charge.get(&charge.id).map_or(&[][..], Vec::as_slice);
            check_charge(charge, effects, found);
        }
    }
    check_calls(evidence, charge_of, found);
}

fn check_charge(charge: &Charge, effects: &[&Effect], found: &mut Vec<Violation>) {
    let name = format!(
        "charge {} of {} ({})",
        charge.id.to_i64(),
        charge.order.amount.minor(),
        charge.status.name()
    );
    let own = effects.iter().filter(|effect| !effect.own_duplicate).count();
    if own > 1 {
        found.push(Violation::new("effects", "I1", format!("{name} was executed {own} times")));
    }
    let order = &charge.order;
    let as_asked = |effect: &&&Effect| {
        effect.amount == order.amount.minor()
            && effect.asset == order.amount.asset()
            && effect.captured == order.capture
    };
    match charge.status {
        Status::Succeeded | Status::RequiresCapture => {
            let named = effects
                .iter()
                .filter(as_asked)
                .any(|effect| charge.provider_reference.as_deref() == Some(effect.reference.as_str()));
            if !named {
                let what = format!("{name} is told as done and the provider did no such thing");
                found.push(Violation::new("effects", "I7", what));
            }
            if order.capture != (charge.status == Status::Succeeded) {
                found.push(Violation::new("effects", "I7", format!("{name} is not what was asked for")));
            }
        }
        Status::Failed if !effects.is_empty() => {
            found.push(Violation::new("effects", "I7", format!("{name} was charged and is told as failed")));
        }
        Status::Processing if !effects.is_empty() => {
            found.push(Violation::new("effects", "I7", format!("{name} was charged and never concluded")));
        }
        Status::Failed | Status::Processing | Status::Parked => {}
    }
}

/// No call without a committed claim that somebody holds at that moment.
fn check_calls(
    evidence: &Evidence,
    charge_of: impl Fn(&str) -> Option<ChargeId>,
    found: &mut Vec<Violation>,
) {
    let mut versions: BTreeMap<ChargeId, Vec<(usize, &Claim)>> = BTreeMap::new();
    for (place, applied) in evidence.history.iter().enumerate() {
        for row in applied.after.iter().flatten() {
            if let Row::Claim(claim) = row
                && claim.makes == Resource::Charge
            {
                versions.entry(claim.subject.into()).or_default().push((place, claim));
            }
        }
    }
    for sent in &evidence.sent {
        let claims = charge_of(&sent.payment).and_then(|charge| versions.get(&charge));
        let then = claims.and_then(|claims| claims.iter().rev().find(|(place, _)| *place < sent.commits));
        let now = START.plus(Span::from_ms(sent.at));
        let problem = match then {
            None => Some("before its claim was committed"),
            Some((_, claim)) => match claim.state.lease() {
                None => Some("while nobody held its claim"),
                Some(lease) if lease.is_over(now) => Some("after its lease was over"),
                Some(_) => None,
            },
        };
        if let Some(problem) = problem {
            found.push(Violation::new("effects", "I5", format!("{} was sent {problem}", sent.payment)));
        }
    }
}

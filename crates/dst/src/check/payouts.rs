//! Payouts: the provider's payments compared with the payouts' status.

use super::{Evidence, Violation};
use crate::client::request_id;
use crate::provider::Effect;
use crate::run::references;
use counterfoil_core::payments::charge::FailureCode;
use counterfoil_core::payments::payout::{Payout, PayoutStatus};
use counterfoil_core::payments::provider::ProviderStep;
use counterfoil_core::types::reference::ReferenceKind;
use counterfoil_core::types::ulid::Ulid;
use counterfoil_store::Row;
use std::collections::BTreeMap;

/// Checks one payout against the effects at the provider.
pub(super) fn paid(evidence: &Evidence, payout: &Payout, effects: &[&Effect], found: &mut Vec<Violation>) {
    let name = format!(
        "payout {} of {} ({})",
        payout.id.to_i64(),
        payout.order.amount.minor(),
        payout.status.name()
    );
    let mut say = |invariant, what: &str| {
        found.push(Violation::new("payouts", invariant, format!("{name} {what}")));
    };
    let times = effects.iter().filter(|effect| !effect.own_duplicate).count();
    if times > 1 {
        say("I1", &format!("was paid {times} times"));
    }
    if effects.iter().any(|effect| effect.step != ProviderStep::Payout) {
        say("I7", "has effects without a request");
    }
    match payout.status {
        PayoutStatus::Paid => {
            let its = |effect: &&Effect| {
                payout.provider_reference.as_ref() == Some(&effect.reference)
                    && effect.amount == payout.order.amount.minor()
                    && effect.asset == payout.order.amount.asset()
            };
            if !effects.iter().copied().any(|effect| its(&effect)) {
                say("I7", "is reported as paid and the provider has no such effect");
            }
        }
        PayoutStatus::Failed => {
            if times > 0 {
                say("I7", "was paid and is reported as failed");
            }
            let payment = references().seal(ReferenceKind::Payout, payout.id.to_i64()).to_string();
            let declined = evidence.declines.contains(&(payment, ProviderStep::Payout.name()));
            let is_decline = payout.failure.as_ref().is_some_and(|it| it.code == FailureCode::PayoutFailed);
            if is_decline && !declined {
                say("I7", "is reported as refused by the bank and was not");
            }
        }
        PayoutStatus::Processing => say("I9", "never ended"),
        PayoutStatus::Parked => {}
    }
}

/// For each payout: the number of commits at its request, and the index of its commit.
pub(super) fn begun(evidence: &Evidence) -> Vec<(usize, usize, &Payout)> {
    let asked: BTreeMap<Ulid, usize> =
        evidence.calls.iter().enumerate().map(|(place, call)| (request_id(place), call.commits)).collect();
    let mut begun = Vec::new();
    for (place, applied) in evidence.history.iter().enumerate() {
        let request =
            applied.rows().find_map(|row| if let Row::Claim(it) = row { Some(it.request) } else { None });
        for (before, row) in applied.changes() {
            if let (None, Some(Row::Payout(payout)), Some(since)) =
                (before, row, request.and_then(|request| asked.get(&request)))
            {
                begun.push((*since, place, payout));
            }
        }
    }
    begun
}

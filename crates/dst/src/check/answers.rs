//! Clients' answers, compared with each other and with the stored claims.

use super::{Evidence, Violation};
use crate::client::{
    ClientCall, Response, charge_amount, fingerprint, operation, payout_amount, request, request_id,
};
use crate::script::Ask;
use crate::store::START;
use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Resource, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::service::Submitted;
use counterfoil_store::{Row, RowKey};
use std::collections::BTreeMap;

/// A committed version of a claim.
struct Version<'a> {
    at: Time,
    claim: &'a Claim,
    /// Whether the version replaces an older claim.
    replaces: bool,
}

/// One write and its answer.
struct Said<'a> {
    call: &'a ClientCall,
    fingerprint: Fingerprint,
    submitted: &'a Submitted,
    invoked: Time,
    returned: Time,
}

type Key = (&'static str, u64, u64);

/// Checks answers.
pub fn check(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut versions: BTreeMap<ClaimId, Vec<Version<'_>>> = BTreeMap::new();
    for applied in &evidence.history {
        for (before, row) in applied.changes() {
            if let Some(Row::Claim(claim)) = row {
                let at = applied.committed.receipt.at;
                versions.entry(claim.id).or_default().push(Version { at, claim, replaces: before.is_some() });
            }
        }
    }
    let mut by_key: BTreeMap<Key, Vec<Said<'_>>> = BTreeMap::new();
    for call in &evidence.calls {
        look(call, found);
        let (key, body) = match call.ask {
            Ask::Charge { tenant, key, body } => (("charge", tenant, key), body),
            Ask::Operate { tenant, key, body } => (("operate", tenant, key), body),
            Ask::Payout { tenant, key, body } => (("payout", tenant, key), body),
            Ask::Ledger { key, body } => (("keep", 1, key), body),
            Ask::Look { .. } | Ask::Resolve { .. } => continue,
        };
        let said = by_key.entry(key).or_default();
        if let (Some(Response::Submitted(submitted)), Some(returned)) = (&call.response, call.returned) {
            let fingerprint = fingerprint(key.0, key.2, body);
            let (invoked, returned) = (time(call.invoked), time(returned));
            said.push(Said { call, fingerprint, submitted, invoked, returned });
        }
    }
    closed(evidence, &versions, found);
    let mut made: BTreeMap<Payment, Time> = BTreeMap::new();
    for applied in &evidence.history {
        for key in &applied.committed.touched {
            let payment = match key {
                RowKey::Charge(_, charge) => Payment::Charge(*charge),
                RowKey::Payout(_, payout) => Payment::Payout(*payout),
                _ => continue,
            };
            made.entry(payment).or_insert(applied.committed.receipt.at);
        }
    }
    for ((kind, tenant, key), said) in &by_key {
        let Some(request) = request(*tenant, kind, *key, 0, Ulid::from_bytes([0; 16])) else { continue };
        let versions = versions.get(&request.claim).map_or(&[][..], Vec::as_slice);
        let name = format!("{kind} {key} of tenant {tenant}");
        let mut say = |invariant, what: String| {
            found.push(Violation::new("answers", invariant, format!("{name}: {what}")));
        };
        for one in said {
            against_store(one, versions, &mut say);
            for other in said.iter().filter(|other| !is_doubtful(&made, other)) {
                against_other(one, other, &mut say);
            }
        }
        reuse(versions, &mut say);
        match *kind {
            "charge" => executed(evidence, (*tenant, *key), versions, &mut say),
            "operate" => operated(evidence, *key, versions, &mut say),
            "payout" => paid_out(evidence, (*tenant, *key), versions, &mut say),
            _ => {}
        }
    }
}

/// A request that was refused because the store was away has executed nothing.
fn closed(evidence: &Evidence, versions: &BTreeMap<ClaimId, Vec<Version<'_>>>, found: &mut Vec<Violation>) {
    let mut by_request: BTreeMap<Ulid, Vec<&Claim>> = BTreeMap::new();
    for version in versions.values().flatten() {
        by_request.entry(version.claim.request).or_default().push(version.claim);
    }
    for (place, call) in evidence.calls.iter().enumerate() {
        let away = matches!(call.response, Some(Response::Submitted(Submitted::StoreUnavailable)));
        if !away || !matches!(call.ask, Ask::Charge { .. } | Ask::Operate { .. } | Ask::Payout { .. }) {
            continue;
        }
        let id = request_id(place);
        // A stored refusal is allowed, because it executes nothing.
        let executed = |claim: &&Claim| {
            let made = [
                RowKey::Charge(claim.tenant, claim.subject.into()),
                RowKey::Operation(claim.tenant, claim.subject.into()),
                RowKey::Payout(claim.tenant, claim.subject.into()),
            ];
            made.iter().any(|key| evidence.rows.contains_key(key))
        };
        if by_request.get(&id).is_some_and(|claims| claims.iter().any(executed)) {
            let what = format!("{:?} got `store unavailable` and was executed", call.ask);
            found.push(Violation::new("fail-closed", "I5", what));
        }
    }
}

fn time(ms: u64) -> Time {
    START.plus(Span::from_ms(ms))
}

fn look(call: &ClientCall, found: &mut Vec<Violation>) {
    if let Some(Response::Payment { own, shown }) = call.response
        && own != shown
    {
        let what =
            if own { "a tenant does not see its own payment" } else { "a tenant sees another's payment" };
        found.push(Violation::new("answers", "I17", what.to_owned()));
    }
}

/// An answer must be the stored one of the same request.
fn against_store(one: &Said<'_>, versions: &[Version<'_>], say: &mut impl FnMut(&'static str, String)) {
    let stored = |settled: &Settled| {
        versions.iter().any(|version| {
            version.at <= one.returned
                && version.claim.fingerprint == one.fingerprint
                && version.claim.state.settled() == Some(settled)
        })
    };
    match one.submitted {
        Submitted::Answer { settled, .. } if !stored(settled) => {
            let body = String::from_utf8_lossy(&settled.reply.body).into_owned();
            say("I19", format!("the answer {} {body} was never stored for it", settled.reply.status));
        }
        Submitted::Mismatch
            if versions.iter().all(|version| version.claim.fingerprint == one.fingerprint) =>
        {
            say("I13", "got `mismatch`, and there is no other request".to_owned());
        }
        Submitted::Expired { .. } => {
            let over = versions.iter().any(|version| {
                version.claim.state.settled().is_some_and(|it| it.windows.replay_until <= one.returned)
            });
            if !over {
                say("I13", "got `expired` before its window ended".to_owned());
            }
        }
        _ => {}
    }
}

/// Whether the answer is `pending` because of a commit in doubt. Such an answer names a payment
/// that was not stored by then. Operations never get such an answer: the payment exists, and the
/// key is read first.
fn is_doubtful(made: &BTreeMap<Payment, Time>, said: &Said<'_>) -> bool {
    let Submitted::Pending { payment, .. } = said.submitted else { return false };
    made.get(payment).is_none_or(|at| *at > said.returned)
}

/// After the first answer, every retry gets the same one until its window ends. Another request
/// under the key never gets it.
fn against_other(first: &Said<'_>, later: &Said<'_>, say: &mut impl FnMut(&'static str, String)) {
    let Submitted::Answer { settled, .. } = first.submitted else { return };
    if later.invoked < first.returned || later.returned >= settled.windows.replay_until {
        return;
    }
    let same = first.fingerprint == later.fingerprint;
    match later.submitted {
        Submitted::StoreUnavailable | Submitted::Draining => {}
        Submitted::Answer { settled: again, .. } if same && again == settled => {}
        // An invalid body is refused before the key is read.
        Submitted::Mismatch | Submitted::Invalid(_) if !same => {}
        other => {
            let which = if same { "the same request" } else { "another request" };
            let what = format!(
                "after the answer {} at {}, {which} at {} got {}",
                settled.reply.status,
                first.call.returned.unwrap_or(0),
                later.call.invoked,
                word(other)
            );
            say(if same { "I2" } else { "I13" }, what);
        }
    }
}

fn word(submitted: &Submitted) -> String {
    match submitted {
        Submitted::Answer { settled, .. } => {
            format!("{} {}", settled.reply.status, String::from_utf8_lossy(&settled.reply.body))
        }
        other => format!("{other:?}"),
    }
}

/// A key may be claimed again only after its tombstone has ended.
fn reuse(versions: &[Version<'_>], say: &mut impl FnMut(&'static str, String)) {
    for (old, new) in versions.iter().zip(versions.iter().skip(1)) {
        // If the old claim was removed before, the key was free.
        if old.claim.subject == new.claim.subject || !new.replaces {
            continue;
        }
        let free_at = match &old.claim.state {
            ClaimState::Completed(settled) | ClaimState::FailedTerminal(settled) => {
                settled.windows.tombstone_until
            }
            ClaimState::Expired { tombstone_until } => *tombstone_until,
            ClaimState::InFlight(_) | ClaimState::FailedRetry { .. } | ClaimState::Uncertain(_) => Time::MAX,
        };
        // The decision used the store's clock a moment before the commit.
        if new.claim.created_at < free_at {
            say("I13", "the key was claimed again before it was free".to_owned());
        }
    }
}

/// Every charge of a key matches the request of the claim.
fn executed(
    evidence: &Evidence,
    (tenant, key): (u64, u64),
    versions: &[Version<'_>],
    say: &mut impl FnMut(&'static str, String),
) {
    for version in versions.iter().filter(|version| version.claim.makes == Resource::Charge) {
        let Some(body) = (0..2).find(|body| version.claim.fingerprint == fingerprint("charge", key, *body))
        else {
            say("I13", "the claim's request was never sent".to_owned());
            continue;
        };
        let charge = evidence.find_row(|tenant| RowKey::Charge(tenant, version.claim.subject.into()));
        match charge {
            Some(Row::Charge(charge)) if charge.order.amount.minor() == charge_amount(tenant, key, body) => {}
            Some(Row::Charge(charge)) => {
                say("I13", format!("another amount was charged: {}", charge.order.amount.minor()));
            }
            _ => say("I19", "its charge is not there".to_owned()),
        }
    }
}

/// Every payout of a key matches the request of the claim.
fn paid_out(
    evidence: &Evidence,
    (tenant, key): (u64, u64),
    versions: &[Version<'_>],
    say: &mut impl FnMut(&'static str, String),
) {
    for version in versions {
        let Some(body) = (0..2).find(|body| version.claim.fingerprint == fingerprint("payout", key, *body))
        else {
            say("I13", "the claim's request was never sent".to_owned());
            continue;
        };
        match evidence.find_row(|tenant| RowKey::Payout(tenant, version.claim.subject.into())) {
            Some(Row::Payout(made)) if made.order.amount.minor() == payout_amount(tenant, key, body) => {}
            Some(_) => say("I13", "another amount was paid out".to_owned()),
            // The request was refused.
            None if matches!(
                version.claim.state,
                ClaimState::FailedTerminal(_) | ClaimState::Expired { .. }
            ) => {}
            None => say("I19", "its payout is not there".to_owned()),
        }
    }
}

/// Every operation of a key matches the request of the claim.
fn operated(
    evidence: &Evidence,
    key: u64,
    versions: &[Version<'_>],
    say: &mut impl FnMut(&'static str, String),
) {
    for version in versions {
        let Some(body) = (0..2).find(|body| version.claim.fingerprint == fingerprint("operate", key, *body))
        else {
            say("I13", "the claim's request was never sent".to_owned());
            continue;
        };
        let (kind, amount) = operation(key, body);
        match evidence.find_row(|tenant| RowKey::Operation(tenant, version.claim.subject.into())) {
            Some(Row::Operation(made))
                if made.kind == kind && amount.is_none_or(|amount| amount == made.amount.minor()) => {}
            Some(_) => say("I13", "another operation was done".to_owned()),
            // The request was refused.
            None if matches!(
                version.claim.state,
                ClaimState::FailedTerminal(_) | ClaimState::Expired { .. }
            ) => {}
            None => say("I19", "its operation is not there".to_owned()),
        }
    }
}

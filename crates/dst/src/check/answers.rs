//! What clients heard, held against each other and against what was stored.

use super::{Evidence, Violation};
use crate::client::{
    ProviderReply, Response, charge_amount, fingerprint, operation, payout_amount, request, request_id,
};
use crate::script::Ask;
use crate::store::START;
use counterfoil_core::idempotency::claim::{Claim, ClaimId, ClaimState, Resource, Settled};
use counterfoil_core::idempotency::fingerprint::Fingerprint;
use counterfoil_core::outbox::Payment;
use counterfoil_core::types::time::{Span, Time};
use counterfoil_core::types::ulid::Ulid;
use counterfoil_engine::service::Submitted;
use counterfoil_store::{Row, RowKey, UNTOLD};
use std::collections::BTreeMap;

/// A claim as it was committed.
struct Version<'a> {
    at: Time,
    claim: &'a Claim,
    /// Whether it stands in the place of another.
    replaces: bool,
}

/// One write and what was heard of it.
struct Said<'a> {
    reply: &'a ProviderReply,
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
    for reply in &evidence.reply {
        look(reply, found);
        let (key, body) = match reply.ask {
            Ask::Charge { tenant, key, body } => (("charge", tenant, key), body),
            Ask::Operate { tenant, key, body } => (("operate", tenant, key), body),
            Ask::Payout { tenant, key, body } => (("payout", tenant, key), body),
            Ask::Keep { key, body } => (("keep", 1, key), body),
            Ask::Look { .. } | Ask::Resolve { .. } => continue,
        };
        let said = by_key.entry(key).or_default();
        if let (Some(Response::Submitted(submitted)), Some(returned)) = (&reply.response, reply.returned) {
            let fingerprint = fingerprint(key.0, key.2, body);
            let (invoked, returned) = (time(reply.invoked), time(returned));
            said.push(Said { reply, fingerprint, submitted, invoked, returned });
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

/// A charge or a payout that was refused because the store was away was not claimed, so the provider was never called for it.
fn closed(evidence: &Evidence, versions: &BTreeMap<ClaimId, Vec<Version<'_>>>, found: &mut Vec<Violation>) {
    let mut by_request: BTreeMap<Ulid, Vec<&Claim>> = BTreeMap::new();
    for version in versions.values().flatten() {
        by_request.entry(version.claim.request).or_default().push(version.claim);
    }
    for (place, reply) in evidence.reply.iter().enumerate() {
        let away = matches!(reply.response, Some(Response::Submitted(Submitted::StoreUnavailable)));
        if !away || !matches!(reply.ask, Ask::Charge { .. } | Ask::Operate { .. } | Ask::Payout { .. }) {
            continue;
        }
        let id = request_id(place);
        // A refusal may have been stored all the same: nothing was executed for it.
        let executed = |claim: &&Claim| {
            let made = [
                RowKey::Charge(claim.tenant, claim.subject.into()),
                RowKey::Operation(claim.tenant, claim.subject.into()),
                RowKey::Payout(claim.tenant, claim.subject.into()),
            ];
            made.iter().any(|key| evidence.rows.contains_key(key))
        };
        if by_request.get(&id).is_some_and(|claims| claims.iter().any(executed)) {
            let what = format!("{:?} was told that the store is away, and was executed", reply.ask);
            found.push(Violation::new("fail-closed", "I5", what));
        }
    }
}

fn time(ms: u64) -> Time {
    START.plus(Span::from_ms(ms))
}

fn look(reply: &ProviderReply, found: &mut Vec<Violation>) {
    if let Some(Response::Payment { own, shown }) = reply.response
        && own != shown
    {
        let what =
            if own { "a tenant does not see its own payment" } else { "a tenant sees another's payment" };
        found.push(Violation::new("answers", "I17", what.to_owned()));
    }
}

/// An answer must be the stored one, of this very request.
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
            say("I13", "is told to be another request, and there is no other".to_owned());
        }
        Submitted::Expired { .. } => {
            let over = versions.iter().any(|version| {
                version.claim.state.settled().is_some_and(|it| it.windows.replay_until <= one.returned)
            });
            if !over {
                say("I13", "is told to have expired before its window was over".to_owned());
            }
        }
        _ => {}
    }
}

/// A claim whose commit is in doubt is told as pending, under the id its payment would have had. If it was not stored by
/// then there is no such payment yet: the store could not be asked, which may happen at any time. Operations have
/// no such excuse: the payment they are about is there, and their key is read before they are opened.
fn is_doubtful(made: &BTreeMap<Payment, Time>, said: &Said<'_>) -> bool {
    let Submitted::Pending { payment, .. } = said.submitted else { return false };
    made.get(payment).is_none_or(|at| *at > said.returned)
}

/// Once there is an answer, every retry gets it until its window is over; another request never does.
fn against_other(first: &Said<'_>, later: &Said<'_>, say: &mut impl FnMut(&'static str, String)) {
    let Submitted::Answer { settled, .. } = first.submitted else { return };
    if later.invoked < first.returned || later.returned >= settled.windows.replay_until {
        return;
    }
    let same = first.fingerprint == later.fingerprint;
    match later.submitted {
        Submitted::StoreUnavailable | Submitted::Draining => {}
        Submitted::Answer { settled: again, .. } if same && again == settled => {}
        // A body that is wrong in itself is told so before its key is looked at.
        Submitted::Mismatch | Submitted::Invalid(_) if !same => {}
        other => {
            let which = if same { "the same request" } else { "another request" };
            let what = format!(
                "after the answer {} at {}, {which} at {} got {}",
                settled.reply.status,
                first.reply.returned.unwrap_or(0),
                later.reply.invoked,
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

/// A key is claimed anew only when its tombstone is over.
fn reuse(versions: &[Version<'_>], say: &mut impl FnMut(&'static str, String)) {
    for (old, new) in versions.iter().zip(versions.iter().skip(1)) {
        // Where nothing is left of the old one, the key was free whenever the new one was decided.
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
        // The decision rests on the store's clock a moment before its commit.
        if new.claim.created_at < free_at {
            say("I13", "the key was claimed anew before it was free".to_owned());
        }
    }
}

/// Every charge made under a key is the one its claim was made for.
fn executed(
    evidence: &Evidence,
    (tenant, key): (u64, u64),
    versions: &[Version<'_>],
    say: &mut impl FnMut(&'static str, String),
) {
    for version in versions.iter().filter(|version| version.claim.makes == Resource::Charge) {
        let Some(body) = (0..2).find(|body| version.claim.fingerprint == fingerprint("charge", key, *body))
        else {
            say("I13", "the claim is of a request nobody made".to_owned());
            continue;
        };
        let charge = evidence.whose(&RowKey::Charge(UNTOLD, version.claim.subject.into()));
        match charge {
            Some(Row::Charge(charge)) if charge.order.amount.minor() == charge_amount(tenant, key, body) => {}
            Some(Row::Charge(charge)) => {
                say("I13", format!("another amount was charged: {}", charge.order.amount.minor()));
            }
            _ => say("I19", "its charge is not there".to_owned()),
        }
    }
}

/// Every payout made under a key is the one its claim was made for.
fn paid_out(
    evidence: &Evidence,
    (tenant, key): (u64, u64),
    versions: &[Version<'_>],
    say: &mut impl FnMut(&'static str, String),
) {
    for version in versions {
        let Some(body) = (0..2).find(|body| version.claim.fingerprint == fingerprint("payout", key, *body))
        else {
            say("I13", "the claim is of a request nobody made".to_owned());
            continue;
        };
        match evidence.whose(&RowKey::Payout(UNTOLD, version.claim.subject.into())) {
            Some(Row::Payout(made)) if made.order.amount.minor() == payout_amount(tenant, key, body) => {}
            Some(_) => say("I13", "another amount was paid out".to_owned()),
            // It was refused.
            None if matches!(
                version.claim.state,
                ClaimState::FailedTerminal(_) | ClaimState::Expired { .. }
            ) => {}
            None => say("I19", "its payout is not there".to_owned()),
        }
    }
}

/// Every operation made under a key is the one its claim was made for.
fn operated(
    evidence: &Evidence,
    key: u64,
    versions: &[Version<'_>],
    say: &mut impl FnMut(&'static str, String),
) {
    for version in versions {
        let Some(body) = (0..2).find(|body| version.claim.fingerprint == fingerprint("operate", key, *body))
        else {
            say("I13", "the claim is of a request nobody made".to_owned());
            continue;
        };
        let (kind, amount) = operation(key, body);
        match evidence.whose(&RowKey::Operation(UNTOLD, version.claim.subject.into())) {
            Some(Row::Operation(made))
                if made.kind == kind && amount.is_none_or(|amount| amount == made.amount.minor()) => {}
            Some(_) => say("I13", "another operation was done".to_owned()),
            // It was refused.
            None if matches!(
                version.claim.state,
                ClaimState::FailedTerminal(_) | ClaimState::Expired { .. }
            ) => {}
            None => say("I19", "its operation is not there".to_owned()),
        }
    }
}

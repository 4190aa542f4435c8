//! Stored answers: readable, about their claim's subject, and with windows in order.

use super::report::VerifyReport;
use counterfoil_core::idempotency::claim::{Claim, Settled};
use counterfoil_core::payments::charge::Charge;
use counterfoil_core::payments::payout::Payout;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::json::Json;

/// The expected contents of an answer.
#[derive(Clone, Copy)]
pub(super) struct Expected<'a> {
    /// The reference of the charge, refund or payout.
    pub(super) id: &'a str,
    /// The member and the reference that a refusal must have: its charge or payout.
    pub(super) about: (&'static str, &'a str),
    pub(super) amount: i64,
    /// `None` for refunds, whose currency is their charge's.
    pub(super) asset: Option<Asset>,
}

impl<'a> Expected<'a> {
    pub(super) fn charge(name: &'a str, charge: &Charge) -> Expected<'a> {
        let amount = charge.order.amount;
        Expected { id: name, about: ("charge", name), amount: amount.minor(), asset: Some(amount.asset()) }
    }

    pub(super) fn payout(name: &'a str, payout: &Payout) -> Expected<'a> {
        let amount = payout.order.amount;
        Expected { id: name, about: ("payout", name), amount: amount.minor(), asset: Some(amount.asset()) }
    }
}

/// Checks a claim's answer, if any.
pub(super) fn check(claim: &Claim, expected: Expected<'_>, report: &mut VerifyReport) {
    let Some(settled) = claim.state.settled() else { return };
    let name = expected.id;
    report.note("answer_is_whole", damage(&expected, settled).map(|what| format!("{name}: {what}")));
    let ordered = settled.windows.replay_until <= settled.windows.tombstone_until
        && claim.created_at <= settled.windows.replay_until;
    report.note("windows_in_order", (!ordered).then(|| format!("{name} has its windows out of order")));
}

fn damage(expected: &Expected<'_>, settled: &Settled) -> Option<&'static str> {
    let Ok(Json::Object(body)) = Json::parse(&settled.reply.body) else {
        return Some("the stored answer cannot be read");
    };
    let says = |field: &str, text: &str| matches!(body.get(field), Some(Json::String(said)) if said == text);
    if settled.reply.status >= 400 {
        let (member, name) = expected.about;
        return (!says(member, name)).then_some("the stored refusal names another payment");
    }
    let amount = match body.get("amount") {
        Some(Json::Number(amount)) => amount.to_i64(),
        Some(_) | None => None,
    };
    let whole = says("id", expected.id)
        && expected.asset.is_none_or(|asset| says("currency", asset.code()))
        && amount == Some(expected.amount);
    (!whole).then_some("the stored answer names something else or another amount")
}

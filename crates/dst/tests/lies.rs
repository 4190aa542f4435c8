//! The checks find lies: a correct history is changed in a single place, and the right check
//! reports it.

#![expect(clippy::unwrap_used, reason = "a test panics when it cannot continue")]

use bytes::Bytes;
use counterfoil_core::ledger::hold::HoldState;
use counterfoil_core::payments::charge::ChargeStatus;
use counterfoil_core::payments::operation::OperationStatus;
use counterfoil_core::payments::payout::{Payout, PayoutStatus};
use counterfoil_core::payments::provider::ProviderStep;
use counterfoil_core::types::money::Money;
use counterfoil_dst::check::{Evidence, check};
use counterfoil_dst::client::{ClientCall, Response};
use counterfoil_dst::run::run_with_evidence;
use counterfoil_dst::script::{Ask, Script};
use counterfoil_engine::service::Submitted;
use counterfoil_store::{Row, RowKey};
use std::sync::Arc;

/// Two charges (one declined), a transfer, a hold and its end, a bulk request, a second body, and
/// reads.
const HONEST: &str = "
    set profile stripe
    set seed 5
    set end 20000
    at 0 charge 0 1 2 0
    at 0 charge 0 2 3 0
    at 100 keep 0 12 0
    at 100 keep 0 2 0
    at 800 keep 1 3 0
    at 900 keep 0 20 0
    at 2000 charge 1 1 2 0
    at 2500 charge 1 1 2 1
    at 3000 charge 0 1 0 0
    at 5000 look 0 0
    at 5000 look 0 3
    at 5000 look 1 1
    at 5000 look 1 2
    at 5000 look 1 4
    at 5000 look 1 5
";

fn honest() -> Evidence {
    let (outcome, evidence) = run_with_evidence(&Script::parse(HONEST).unwrap(), None);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    assert!(evidence.effects.len() >= 2 && evidence.calls.len() > 12, "{:?}", outcome.seen);
    evidence
}

fn written(evidence: &mut Evidence) -> impl Iterator<Item = &mut Row> {
    let after = evidence.history.iter_mut().flat_map(|applied| applied.after.iter_mut());
    after.flatten().map(Arc::make_mut)
}

/// Applies the lie and returns the violated invariants.
fn broken_by(lie: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    let mut evidence = honest();
    lie(&mut evidence);
    check(&evidence).into_iter().map(|violation| violation.invariant).collect()
}

fn charge(evidence: &mut Evidence, status: ChargeStatus) -> &mut counterfoil_core::payments::charge::Charge {
    let rows = evidence.rows.values_mut().map(Arc::make_mut);
    let charges = rows.filter_map(|row| if let Row::Charge(it) = row { Some(it) } else { None });
    charges.into_iter().find(|charge| charge.status == status).unwrap()
}

/// A hold that is partly captured and refunded twice, a voided hold, a split, and a failing split.
const LIVES: &str = "
    set profile stripe
    set seed 5
    set end 40000
    at 0 charge 0 1 100 0
    at 0 charge 0 1 104 0
    at 0 charge 0 1 102 0
    at 0 charge 0 1 106 0
    at 2000 operate 0 1 1601 0
    at 2000 operate 1 1 1666 0
    at 9000 operate 1 1 1607 0
    at 9000 operate 0 1 1612 0
";

fn operations_broken_by(lie: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    let (outcome, mut evidence) = run_with_evidence(&Script::parse(LIVES).unwrap(), None);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    assert_eq!(outcome.seen.operations, 4, "{:?}", outcome.seen);
    lie(&mut evidence);
    check(&evidence).into_iter().map(|violation| violation.invariant).collect()
}

fn effect(evidence: &Evidence, step: ProviderStep) -> usize {
    evidence.effects.iter().position(|effect| effect.step == step).unwrap()
}

#[test]
fn wrong_operations_are_found() {
    for step in [ProviderStep::Capture, ProviderStep::Void, ProviderStep::Refund] {
        let lost = |evidence: &mut Evidence| drop(evidence.effects.remove(effect(evidence, step)));
        assert!(operations_broken_by(lost).contains(&"I7"), "{step:?} is lost");
        let twice =
            |evidence: &mut Evidence| evidence.effects.push(evidence.effects[effect(evidence, step)].clone());
        let broken = operations_broken_by(twice);
        assert!(broken.contains(&"I1") || broken.contains(&"I7"), "{step:?} is done twice");
    }
    let more = |evidence: &mut Evidence| {
        let place = effect(evidence, ProviderStep::Refund);
        evidence.effects[place].amount += 1;
    };
    assert!(operations_broken_by(more).contains(&"I7"));
    let both = |evidence: &mut Evidence| {
        let mut void = evidence.effects[effect(evidence, ProviderStep::Capture)].clone();
        (void.step, void.captured) = (ProviderStep::Void, false);
        evidence.effects.push(void);
    };
    assert!(operations_broken_by(both).contains(&"I7"), "captured and voided");
    let failed = |evidence: &mut Evidence| {
        for row in evidence.rows.values_mut().map(Arc::make_mut) {
            if let Row::Operation(operation) = row {
                operation.status = OperationStatus::Failed;
            }
        }
    };
    assert!(operations_broken_by(failed).contains(&"I7"), "done but reported as failed");
    let open = |evidence: &mut Evidence| {
        for row in evidence.rows.values_mut().map(Arc::make_mut) {
            if let Row::Hold(hold) = row
                && hold.is_a_payments()
            {
                hold.state = HoldState::Pending;
            }
        }
    };
    assert!(operations_broken_by(open).contains(&"I7"), "a wallet that stays reserved");
    assert!(operations_broken_by(|evidence| evidence.misuses.push("twice".into())).contains(&"I1"));
}

fn answered(evidence: &Evidence, wanted: Ask) -> usize {
    let is = |reply: &ClientCall| {
        reply.ask == wanted && matches!(reply.response, Some(Response::Submitted(Submitted::Answer { .. })))
    };
    evidence.calls.iter().position(is).unwrap()
}

const FIRST: Ask = Ask::Charge { tenant: 1, key: 2, body: 0 };

#[test]
fn wrong_effects_are_found() {
    let twice = |evidence: &mut Evidence| evidence.effects.push(evidence.effects[0].clone());
    assert!(broken_by(twice).contains(&"I1"));
    assert!(broken_by(|evidence| drop(evidence.effects.remove(0))).contains(&"I7"));
    assert!(broken_by(|evidence| evidence.effects[0].amount += 1).contains(&"I7"));
    assert!(broken_by(|evidence| evidence.effects[0].captured ^= true).contains(&"I7"));
    assert!(broken_by(|evidence| evidence.effects[0].payment.push('x')).contains(&"I5"));
    assert!(broken_by(|evidence| evidence.sent[0].commits = 0).contains(&"I5"));
    assert!(broken_by(|evidence| evidence.sent[0].at += 60_000).contains(&"I5"));
    let failed =
        |evidence: &mut Evidence| charge(evidence, ChargeStatus::Succeeded).status = ChargeStatus::Failed;
    assert!(broken_by(failed).contains(&"I7"), "charged but reported as failed");
}

#[test]
fn wrong_answers_are_found() {
    let rewritten = |evidence: &mut Evidence| {
        let place = answered(evidence, FIRST);
        if let Some(Response::Submitted(Submitted::Answer { settled, .. })) =
            &mut evidence.calls[place].response
        {
            settled.reply.body = Bytes::from_static(b"{}");
        }
    };
    let broken = broken_by(rewritten);
    assert!(broken.contains(&"I19") && broken.contains(&"I2"), "{broken:?}");
    let forgotten = |evidence: &mut Evidence| {
        let mut reply = evidence.calls[answered(evidence, FIRST)].clone();
        (reply.invoked, reply.returned) = (19_000, Some(19_100));
        reply.response = Some(Response::Submitted(Submitted::InUse));
        evidence.calls.push(reply);
    };
    assert!(broken_by(forgotten).contains(&"I2"));
    let other = |evidence: &mut Evidence| {
        let mut reply = evidence.calls[answered(evidence, FIRST)].clone();
        reply.ask = Ask::Charge { tenant: 1, key: 2, body: 1 };
        (reply.invoked, reply.returned) = (19_000, Some(19_100));
        evidence.calls.push(reply);
    };
    assert!(broken_by(other).contains(&"I13"), "another request got the answer");
    let shown = |evidence: &mut Evidence| {
        let seen = evidence.calls.iter_mut().find_map(|reply| match &mut reply.response {
            Some(Response::Payment { own: false, shown }) => Some(shown),
            _ => None,
        });
        *seen.unwrap() = true;
    };
    assert!(broken_by(shown).contains(&"I17"));
}

#[test]
fn a_ledger_that_does_not_add_up_is_found() {
    let altered = |evidence: &mut Evidence| {
        let seen = evidence.calls.iter_mut().find_map(|reply| match &mut reply.response {
            Some(Response::Balance(_, view)) => Some(view),
            _ => None,
        });
        seen.unwrap().view.posted += 1;
    };
    assert!(broken_by(altered).contains(&"I8"));
    let lost = |evidence: &mut Evidence| {
        let key = evidence.rows.keys().find(|key| matches!(key, RowKey::Transaction(..))).cloned().unwrap();
        evidence.rows.remove(&key);
    };
    let broken = broken_by(lost);
    assert!(broken.contains(&"I19") && (broken.contains(&"I21") || broken.contains(&"I7")), "{broken:?}");
    let raised = |evidence: &mut Evidence| {
        for row in written(evidence) {
            if let Row::Account(account) = row
                && account.code.as_str() == "alice"
            {
                account.guard.cap = Some(10);
            }
        }
    };
    assert!(broken_by(raised).contains(&"I6"));
    let off = |evidence: &mut Evidence| {
        for row in written(evidence) {
            if let Row::Balance(balance) = row {
                balance.posted += 1;
            }
        }
    };
    assert!(broken_by(off).contains(&"I8"));
}

#[test]
fn wrong_histories_are_found() {
    assert!(broken_by(|evidence| evidence.history[7].committed.receipt.position.0 += 1).contains(&"I11"));
    let back = |evidence: &mut Evidence| {
        let first = evidence.history[0].committed.receipt.at;
        evidence.history[9].committed.receipt.at =
            first.minus(counterfoil_core::types::time::Span::from_ms(9));
    };
    assert!(broken_by(back).contains(&"I11"));
    let same_id =
        |evidence: &mut Evidence| evidence.history[5].committed.set = evidence.history[4].committed.set;
    assert!(broken_by(same_id).contains(&"I14"));
    let silent = |evidence: &mut Evidence| {
        for applied in &mut evidence.history {
            for row in &mut applied.after {
                if matches!(row.as_deref(), Some(Row::Audit(_))) {
                    *row = None;
                }
            }
        }
    };
    assert!(broken_by(silent).contains(&"I11"));
    let fence = |evidence: &mut Evidence| {
        for row in written(evidence) {
            if let Row::Claim(claim) = row {
                claim.revision = 1;
            }
        }
    };
    assert!(broken_by(fence).contains(&"I10"));
    let idle = |evidence: &mut Evidence| {
        for applied in &mut evidence.history {
            for (key, row) in applied.committed.touched.iter().zip(&mut applied.after) {
                if matches!(key, RowKey::Outbox(..)) {
                    *row = None;
                }
            }
        }
    };
    assert!(broken_by(idle).contains(&"I9"), "work that is lost");
    assert!(broken_by(|evidence| evidence.verified.push("said so".into())).contains(&"I10"));
}

/// Paid payouts, a payout that the bank refuses, and one without enough money.
const PAYOUTS: &str = "
    set profile stripe
    set seed 5
    set end 20000
    at 0 charge 0 1 4 0
    at 3000 payout 0 1 4 0
    at 5000 payout 1 1 28 0
    at 8000 payout 0 1 1 0
    at 9000 payout 1 1 13 0
    at 10000 payout 1 1 52 0
";

fn payouts_broken_by(lie: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    let (outcome, mut evidence) = run_with_evidence(&Script::parse(PAYOUTS).unwrap(), None);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    let status = |row: &Row| if let Row::Payout(payout) = row { Some(payout.status) } else { None };
    let mut ended: Vec<&str> = evidence.each().filter_map(status).map(PayoutStatus::name).collect();
    ended.sort_unstable();
    assert_eq!(ended, ["failed", "paid", "paid", "paid"], "and the last is refused by the ledger");
    lie(&mut evidence);
    check(&evidence).into_iter().map(|violation| violation.invariant).collect()
}

fn payouts(evidence: &mut Evidence) -> impl Iterator<Item = &mut Payout> {
    let rows = evidence.rows.values_mut().map(Arc::make_mut);
    rows.filter_map(|row| if let Row::Payout(payout) = row { Some(payout) } else { None })
}

#[test]
fn wrong_payouts_are_found() {
    let lost =
        |evidence: &mut Evidence| drop(evidence.effects.remove(effect(evidence, ProviderStep::Payout)));
    assert!(payouts_broken_by(lost).contains(&"I7"), "reported as paid and was not");
    let twice = |evidence: &mut Evidence| {
        evidence.effects.push(evidence.effects[effect(evidence, ProviderStep::Payout)].clone());
    };
    assert!(payouts_broken_by(twice).contains(&"I1"), "paid twice");
    let less = |evidence: &mut Evidence| {
        let place = effect(evidence, ProviderStep::Payout);
        evidence.effects[place].amount -= 1;
    };
    assert!(payouts_broken_by(less).contains(&"I7"), "another amount");
    let failed = |evidence: &mut Evidence| payouts(evidence).for_each(|it| it.status = PayoutStatus::Failed);
    assert!(payouts_broken_by(failed).contains(&"I7"), "reported as failed and was paid");
    let refused = |evidence: &mut Evidence| evidence.declines.clear();
    assert!(payouts_broken_by(refused).contains(&"I7"), "reported as refused and was not");
    let open =
        |evidence: &mut Evidence| payouts(evidence).for_each(|it| it.status = PayoutStatus::Processing);
    assert!(payouts_broken_by(open).contains(&"I9"), "never ended");
    let early = |evidence: &mut Evidence| {
        let place = evidence.sent.iter().position(|sent| sent.step == ProviderStep::Payout).unwrap();
        evidence.sent[place].commits = 3;
    };
    assert!(payouts_broken_by(early).contains(&"I5"), "sent before its claim was committed");
    let kept = |evidence: &mut Evidence| {
        for row in evidence.rows.values_mut().map(Arc::make_mut) {
            if let Row::Hold(hold) = row {
                hold.state = HoldState::Pending;
            }
        }
    };
    assert!(payouts_broken_by(kept).contains(&"I7"), "a reservation that did not end");
}

#[test]
fn a_payout_above_the_available_balance_is_found() {
    let more = |evidence: &mut Evidence| {
        for row in written(evidence) {
            if let Row::Payout(payout) = row {
                let asset = payout.order.amount.asset();
                std::sync::Arc::make_mut(&mut payout.order).amount = Money::new(1_000_000, asset).unwrap();
            }
        }
    };
    assert!(payouts_broken_by(more).contains(&"I6"));
}

#[test]
fn equal_waits_are_found() {
    let asks: Vec<String> = (0..20).map(|key| format!("at {key} charge 0 1 {} 0", key * 4)).collect();
    let cuts: Vec<String> = (0..20).map(|call| format!("fault call {call} cut-after")).collect();
    let script = format!("set profile ideal\n{}\n{}", asks.join("\n"), cuts.join("\n"));
    let (outcome, mut evidence) = run_with_evidence(&Script::parse(&script).unwrap(), None);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    for row in evidence.rows.values_mut().map(Arc::make_mut) {
        if let Row::Audit(record) = row
            && record.detail.starts_with("wait_ms=")
        {
            record.detail = "wait_ms=7".to_owned();
        }
    }
    assert!(check(&evidence).iter().any(|violation| violation.invariant == "R26"));
}

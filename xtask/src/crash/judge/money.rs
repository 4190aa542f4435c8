//! Compares balances with acknowledged requests and provider effects. A payout's reservation must
//! be posted if it was paid and released if it was not.

use super::super::ledger::{self, Balances, FUNDS, GUARDED};
use super::super::order::{Charge, Order, Tender, What};
use super::{Judged, Verdict, Wrong};
use std::collections::HashSet;

/// Judges the final answers of transfers, and the ledger entries of charges, by the resulting
/// balances.
pub(in super::super) fn judge_ledger(orders: &[Order], judged: &Judged, balances: &Balances) -> Verdict {
    let mut verdict = Verdict::default();
    // The last account is the source of the funds.
    let mut expected = vec![FUNDS; GUARDED.len()];
    expected.push(-FUNDS * i64::try_from(GUARDED.len()).unwrap_or(0));
    let mut seen = HashSet::new();
    for order in orders {
        match &order.what {
            What::Transfer { from, to, amount } if is_made(order, *amount, &mut seen, &mut verdict) => {
                expected[*from] -= signed(*amount);
                expected[*to] += signed(*amount);
            }
            What::Charge(Charge { tender: Tender::Split { place, wallet, .. }, .. })
                if order.first.as_ref().is_some_and(|answer| answer.status == 201) =>
            {
                expected[*place] -= signed(*wallet);
            }
            What::Transfer { .. } | What::Charge(_) | What::Operate(_) | What::Payout(_) => {}
        }
    }
    let (taken, wallets) = (signed(judged.cards) - signed(judged.paid_out), signed(judged.wallets));
    let found = balances.guarded.iter().chain([&balances.world, &balances.receivable, &balances.payable]);
    let names = (0..=GUARDED.len()).map(ledger::code).chain([ledger::RECEIVABLE, ledger::PAYABLE]);
    for ((found, expected), name) in found.zip(expected.iter().chain([&taken, &(taken + wallets)])).zip(names)
    {
        if found != expected {
            let text = format!("{name} holds {found}; acknowledged requests and effects make {expected}");
            verdict.note(Wrong::Balance, text);
        }
    }
    // Only parked and unanswered orders may hold a reservation.
    if balances.reserved != 0 && orders.iter().all(|order| order.first.is_some()) {
        let text =
            format!("{} of {} are reserved though everything has ended", balances.reserved, ledger::PAYABLE);
        verdict.note(Wrong::Balance, text);
    }
    for (place, found) in balances.guarded.iter().enumerate().filter(|(_, found)| **found < 0) {
        verdict.note(Wrong::Floor, format!("{} ended at {found}", ledger::code(place)));
    }
    // The receivable account has a debit balance, the others a credit balance.
    let sum = balances.guarded.iter().sum::<i64>() + balances.world + balances.payable - balances.receivable;
    if sum != 0 {
        verdict.note(Wrong::Balance, format!("all balances together are {sum}, not zero"));
    }
    verdict
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// Whether the transfer was acknowledged as made; records violations in its answer.
fn is_made(order: &Order, amount: u64, seen: &mut HashSet<String>, verdict: &mut Verdict) -> bool {
    let key = &order.key;
    let Some(first) = &order.first else {
        verdict.note(Wrong::Unanswered, format!("{key} has no final answer"));
        return false;
    };
    if first.status != 201 {
        if (first.status, first.error().as_deref()) != (400, Some("insufficient_funds")) {
            let error = first.error().unwrap_or_default();
            verdict.note(Wrong::Strange, format!("{key} was answered {} {error}", first.status));
        }
        return false;
    }
    match first.names() {
        Some(id) if !seen.insert(id.clone()) => {
            verdict.note(Wrong::Mistaken, format!("{key}: {id} is the transfer of another key"));
        }
        Some(_) => {}
        None => verdict.note(Wrong::Mistaken, format!("{key}: the answer names no transfer")),
    }
    if first.number("amount") != Some(amount) {
        verdict.note(Wrong::Amount, format!("{key} was answered with another amount"));
    }
    true
}

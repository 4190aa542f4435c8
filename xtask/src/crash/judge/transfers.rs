//! Transfers: what was acknowledged against what the books show.

use super::super::books::{self, Balances, FUNDS, GUARDED};
use super::super::order::{Order, What};
use super::{Verdict, Wrong};
use std::collections::HashSet;

/// Judges the final answers of transfers against the balances that they leave.
pub(in super::super) fn judge_transfers(orders: &[Order], balances: &Balances) -> Verdict {
    let mut verdict = Verdict::default();
    let mut expected = vec![FUNDS; GUARDED.len()];
    let mut seen = HashSet::new();
    for order in orders {
        if let What::Transfer { from, to, amount } = order.what
            && is_made(order, amount, &mut seen, &mut verdict)
        {
            let amount = i64::try_from(amount).unwrap_or(i64::MAX);
            expected[from] -= amount;
            expected[to] += amount;
        }
    }
    for (place, (found, expected)) in balances.guarded.iter().zip(&expected).enumerate() {
        let code = books::code(place);
        if found != expected {
            let told = format!("{code} holds {found}; the acknowledged transfers make {expected}");
            verdict.note(Wrong::Balance, told);
        }
        if *found < 0 {
            verdict.note(Wrong::Floor, format!("{code} ended at {found}"));
        }
    }
    let sum = balances.guarded.iter().sum::<i64>() + balances.world;
    if sum != 0 {
        verdict.note(Wrong::Balance, format!("all balances together are {sum}, not zero"));
    }
    verdict
}

/// Whether the transfer was acknowledged as made; notes what is wrong with its answer.
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
    if first.amount() != Some(amount) {
        verdict.note(Wrong::Amount, format!("{key} was answered with another amount"));
    }
    true
}

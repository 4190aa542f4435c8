//! Payouts: clients' answers against the provider's effects and the API. Each is paid once or not
//! at all.

use super::super::attempt::FinalAnswer;
use super::super::order::Payout;
use super::super::served::Shown;
use super::effects::Done;
use super::{Verdict, Wrong};

/// A payout with all observations.
pub(super) struct Case<'a> {
    pub(super) key: &'a str,
    pub(super) payout: Payout,
    pub(super) first: &'a FinalAnswer,
    pub(super) id: &'a str,
    pub(super) done: &'a Done,
}

impl Case<'_> {
    /// Judges the payout and returns the amount that left the account.
    pub(super) fn judge(&self, shown: Option<&Shown>, verdict: &mut Verdict) -> u64 {
        let Case { key, payout: Payout { amount, closed }, first, id, done } = self;
        let paid: u64 = done.payouts.iter().sum();
        if Done::default() != (Done { payouts: Vec::new(), ..(*done).clone() }) {
            verdict.note(Wrong::Unexplained, format!("{key}: {id} is a payout and was charged"));
        }
        if first.is_success() {
            if *closed {
                verdict.note(Wrong::Strange, format!("{key}: {id} was paid to an account that is closed"));
            }
            if first.number("amount") != Some(*amount) {
                verdict.note(Wrong::Amount, format!("{key}: {id} was answered with another amount"));
            }
            match done.payouts.first() {
                None => verdict.note(Wrong::Unpaid, format!("{key}: {id} was answered and never paid")),
                Some(paid) if paid != amount => {
                    verdict.note(Wrong::Amount, format!("{key}: {id} was paid {paid} for {amount}"));
                }
                // The check of effects reports several.
                Some(_) => {}
            }
        } else if paid > 0 {
            verdict.note(Wrong::PaidRefusal, format!("{key}: {id} was refused with {}", first.status));
        }
        let (status, captured) = if first.is_success() { ("paid", *amount) } else { ("failed", 0) };
        let expected = Shown { status: status.to_owned(), captured, refunded: 0 };
        match shown {
            None => verdict.note(Wrong::Shown, format!("{id} was acknowledged and is not shown")),
            Some(shown) if *shown != expected => {
                verdict.note(Wrong::Shown, format!("{id} is shown as {shown:?} and is {expected:?}"));
            }
            Some(_) => {}
        }
        paid
    }
}

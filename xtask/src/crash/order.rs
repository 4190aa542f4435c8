//! What a client asks for under one key: a charge, or a transfer between accounts of the books.

use super::books;
use super::told::Told;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A charge; `declined`: with a card that is.
    Charge { amount: u64, declined: bool },
    /// A transfer from one guarded account to another, by their places in [`books::GUARDED`].
    Transfer { from: usize, to: usize, amount: u64 },
}

/// An order as its client knows it.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) key: String,
    pub(super) what: What,
    /// The first final answer.
    pub(super) first: Option<Told>,
}

impl Order {
    pub(super) fn is_transfer(&self) -> bool {
        matches!(self.what, What::Transfer { .. })
    }

    /// Whether it is a transfer that was refused: there was too little to take.
    pub(super) fn is_refused_transfer(&self) -> bool {
        self.is_transfer() && self.first.as_ref().is_some_and(|told| told.status != 201)
    }

    /// Where it is sent to.
    pub(super) fn path(&self) -> &'static str {
        match self.what {
            What::Charge { .. } => "/v1/charges",
            What::Transfer { .. } => "/v1/transfers",
        }
    }

    pub(super) fn body(&self) -> String {
        match self.what {
            What::Charge { amount, declined } => {
                let method = if declined { "pm_card_chargeDeclined" } else { "pm_card_visa" };
                format!(r#"{{"amount":{amount},"currency":"USD","payment_method":"{method}"}}"#)
            }
            What::Transfer { from, to, amount } => {
                books::transfer(books::code(from), books::code(to), amount)
            }
        }
    }
}

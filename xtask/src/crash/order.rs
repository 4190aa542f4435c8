//! Orders: one request of a client under one key. A charge, an operation on a charge, a payout, or
//! a transfer between ledger accounts.

use super::attempt::FinalAnswer;
use super::ledger;
use std::sync::Arc;

/// The content of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Charge(Charge),
    /// An operation on an answered charge.
    Operate(Operate),
    Payout(Payout),
    /// A transfer between indices of [`ledger::GUARDED`]; the index after the last one is the
    /// source of funds.
    Transfer {
        from: usize,
        to: usize,
        amount: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    pub(super) amount: u64,
    /// Uses a declined card.
    pub(super) declined: bool,
    pub(super) tender: Tender,
}

/// The payer and the time of payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tender {
    /// The card, at once.
    Card,
    /// The card, at capture.
    Held,
    /// A guarded account, by index and id, pays `wallet`; the card pays the rest.
    Split { place: usize, account: Arc<str>, wallet: u64 },
}

impl Charge {
    /// The account's share.
    pub(super) fn wallet(&self) -> u64 {
        match self.tender {
            Tender::Card | Tender::Held => 0,
            Tender::Split { wallet, .. } => wallet,
        }
    }

    /// The card's share.
    pub(super) fn card(&self) -> u64 {
        self.amount.saturating_sub(self.wallet())
    }
}

/// A payout of the tenant's main account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payout {
    pub(super) amount: u64,
    /// Uses a closed bank account.
    pub(super) closed: bool,
}

/// An operation on a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operate {
    pub(super) action: SagaAction,
    /// The charge's id.
    pub(super) charge: Box<str>,
    /// `None` means the full amount.
    pub(super) amount: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SagaAction {
    Capture,
    Void,
    Refund,
}

/// An order as its client knows it.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) key: String,
    pub(super) what: What,
    /// The first final answer.
    pub(super) first: Option<FinalAnswer>,
}

/// The request of an order.
#[derive(Clone, Debug)]
pub(super) struct OrderRequest {
    pub(super) path: String,
    pub(super) key: String,
    pub(super) body: String,
}

impl Order {
    pub(super) fn is_charge(&self) -> bool {
        matches!(self.what, What::Charge(_))
    }

    pub(super) fn is_operation(&self) -> bool {
        matches!(self.what, What::Operate(_))
    }

    pub(super) fn is_payout(&self) -> bool {
        matches!(self.what, What::Payout(_))
    }

    pub(super) fn is_transfer(&self) -> bool {
        matches!(self.what, What::Transfer { .. })
    }

    pub(super) fn is_refused(&self) -> bool {
        self.first.as_ref().is_some_and(|answer| !answer.is_success())
    }

    pub(super) fn request(&self) -> OrderRequest {
        let (path, body) = match &self.what {
            What::Charge(charge) => ("/v1/charges".to_owned(), charge_body(charge)),
            What::Operate(Operate { action: SagaAction::Refund, charge, amount }) => {
                let amount = amount.map_or(String::new(), |amount| format!(r#","amount":{amount}"#));
                ("/v1/refunds".to_owned(), format!(r#"{{"charge":"{charge}"{amount}}}"#))
            }
            What::Operate(Operate { action: SagaAction::Capture, charge, amount }) => {
                let body = amount.map_or("{}".to_owned(), |amount| format!(r#"{{"amount":{amount}}}"#));
                (format!("/v1/charges/{charge}/capture"), body)
            }
            What::Operate(Operate { action: SagaAction::Void, charge, .. }) => {
                (format!("/v1/charges/{charge}/void"), "{}".to_owned())
            }
            What::Payout(payout) => ("/v1/payouts".to_owned(), payout_body(*payout)),
            What::Transfer { from, to, amount } => {
                let body = ledger::transfer(ledger::code(*from), ledger::code(*to), *amount);
                ("/v1/transfers".to_owned(), body)
            }
        };
        OrderRequest { path, key: self.key.clone(), body }
    }
}

fn charge_body(charge: &Charge) -> String {
    let method = if charge.declined { "pm_card_chargeDeclined" } else { "pm_card_visa" };
    let tender = match &charge.tender {
        Tender::Card => String::new(),
        Tender::Held => r#","capture":false"#.to_owned(),
        Tender::Split { account, wallet, .. } => {
            format!(r#","wallet":{{"account":"{account}","amount":{wallet}}}"#)
        }
    };
    format!(r#"{{"amount":{},"currency":"USD","payment_method":"{method}"{tender}}}"#, charge.amount)
}

fn payout_body(Payout { amount, closed }: Payout) -> String {
    let bank = if closed { "ba_account_closed" } else { "ba_campaign" };
    format!(r#"{{"amount":{amount},"currency":"USD","destination":"{bank}"}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(what: What) -> (String, String) {
        let OrderRequest { path, body, .. } = Order { key: "k".into(), what, first: None }.request();
        (path, body)
    }

    fn operate(action: SagaAction, amount: Option<u64>) -> (String, String) {
        request(What::Operate(Operate { action, charge: "ch_1".into(), amount }))
    }

    #[test]
    fn every_kind_has_its_path_and_body() {
        let charge = |declined, tender| request(What::Charge(Charge { amount: 700, declined, tender }));
        assert_eq!(
            charge(true, Tender::Card),
            (
                "/v1/charges".into(),
                r#"{"amount":700,"currency":"USD","payment_method":"pm_card_chargeDeclined"}"#.into()
            )
        );
        assert!(charge(false, Tender::Held).1.ends_with(r#""pm_card_visa","capture":false}"#));
        let split = charge(false, Tender::Split { place: 0, account: "ac_1".into(), wallet: 9 }).1;
        assert!(split.ends_with(r#","wallet":{"account":"ac_1","amount":9}}"#), "{split}");
        assert_eq!(
            operate(SagaAction::Refund, Some(3)),
            ("/v1/refunds".into(), r#"{"charge":"ch_1","amount":3}"#.into())
        );
        assert_eq!(operate(SagaAction::Refund, None).1, r#"{"charge":"ch_1"}"#);
        assert_eq!(
            operate(SagaAction::Capture, Some(3)),
            ("/v1/charges/ch_1/capture".into(), r#"{"amount":3}"#.into())
        );
        assert_eq!(operate(SagaAction::Capture, None).1, "{}");
        assert_eq!(operate(SagaAction::Void, None), ("/v1/charges/ch_1/void".into(), "{}".into()));
        let payout = |closed| request(What::Payout(Payout { amount: 7, closed }));
        let body = r#"{"amount":7,"currency":"USD","destination":"ba_campaign"}"#;
        assert_eq!(payout(false), ("/v1/payouts".into(), body.into()));
        assert!(payout(true).1.contains("ba_account_closed"));
    }
}

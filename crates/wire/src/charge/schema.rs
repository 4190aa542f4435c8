//! The schemas of a charge. They describe the form for OpenAPI only; a test compares them with the
//! written form.

use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A request to charge.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"amount": 1250, "currency": "USD", "payment_method": "pm_card_visa"}))]
pub struct CreateCharge {
    /// The amount, in the currency's minor unit: 1250 is 12.50 USD.
    #[schema(minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: i64,
    /// ISO 4217 code, upper or lower case.
    #[schema(min_length = 3, max_length = 3, pattern = "^[A-Za-z]*$")]
    pub currency: String,
    /// The provider's token of the payment method; never a card number.
    #[schema(min_length = 1, max_length = 255, pattern = "^[!-~]*$")]
    pub payment_method: String,
    /// Whether to capture at once (the default) or only to hold the amount.
    #[schema(required = false, nullable, default = true)]
    pub capture: Option<bool>,
    /// The ledger account to credit; your main account if absent.
    #[schema(required = false, nullable)]
    pub destination: Option<String>,
    /// The part paid from one of your ledger balances. The card pays the rest; if either payment
    /// fails, neither happens. Not allowed with `capture` false.
    #[schema(required = false, nullable)]
    pub wallet: Option<Wallet>,
    /// Your own description.
    #[schema(required = false, nullable, max_length = 1000)]
    pub description: Option<String>,
    /// Up to 50 pairs of your own: names of up to 40 bytes, values of up to 500.
    #[schema(required = false, nullable)]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// A charge.
#[derive(Debug, ToSchema)]
pub struct Charge {
    /// `ch_…`
    pub id: String,
    /// `charge`
    pub object: String,
    /// The amount, in the currency's minor unit.
    pub amount: i64,
    /// ISO 4217 code, upper case.
    pub currency: String,
    /// `processing`, `requires_capture`, `succeeded`, `failed`, `voided`, `refunded`,
    /// `partially_refunded` or `parked`.
    pub status: String,
    /// Whether the money was captured.
    pub captured: bool,
    /// The amount refunded so far.
    pub amount_refunded: i64,
    /// The amount captured, from card and wallet together.
    pub amount_captured: i64,
    /// The part paid from a ledger balance, if any.
    pub wallet: Option<Wallet>,
    /// The provider's token.
    pub payment_method: String,
    /// The credited ledger account, `ac_…`.
    pub destination: String,
    /// The executing provider.
    pub gateway: Gateway,
    /// The cause of a failed charge.
    pub failure: Option<Failure>,
    /// Your own description.
    pub description: Option<String>,
    /// Your own pairs.
    pub metadata: BTreeMap<String, String>,
    /// When the charge was created.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// The part of a charge that is paid from a ledger balance.
#[derive(Debug, ToSchema)]
pub struct Wallet {
    /// The account to debit, `ac_…`. Its asset must be the charge's currency.
    pub account: String,
    /// The wallet's part of the amount; less than the whole.
    #[schema(minimum = 1, maximum = 999_999_999_999_998_i64)]
    pub amount: i64,
}

/// A request to capture. The body may be left out.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"amount": 1000}))]
pub struct CaptureCharge {
    /// The part of the held amount to capture; the whole if absent. The rest is released.
    #[schema(required = false, nullable, minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: Option<i64>,
}

/// The provider of a payment.
#[derive(Debug, ToSchema)]
pub struct Gateway {
    /// The provider's name.
    pub name: String,
    /// The provider's own reference, once issued.
    pub reference: Option<String>,
}

/// Why a payment failed.
#[derive(Debug, ToSchema)]
pub struct Failure {
    /// `card_declined` (for payouts `payout_failed`), `gateway_rejected`, `gateway_unauthorized`,
    /// `gateway_unavailable` or `marked_failed`.
    pub code: String,
    /// The reason given by the issuer or the bank.
    pub decline_code: Option<String>,
    /// An explanation for people.
    pub message: String,
}

/// Charges, newest first.
#[derive(Debug, ToSchema)]
pub struct ChargeList {
    /// `list`
    pub object: String,
    /// The charges on the page.
    pub data: Vec<Charge>,
    /// Whether there are older charges.
    pub has_more: bool,
}

//! The forms of a charge as OpenAPI describes them. Nothing is read or written through these types; a test holds
//! them to what is written.

use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A request to charge.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"amount": 1250, "currency": "USD", "payment_method": "pm_card_visa"}))]
pub struct CreateCharge {
    /// How much, in the currency's minor unit: 1250 is 12.50 USD.
    #[schema(minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: i64,
    /// ISO 4217 code, in any case.
    #[schema(min_length = 3, max_length = 3, pattern = "^[A-Za-z]*$")]
    pub currency: String,
    /// The provider's token of the means of payment; never a card number.
    #[schema(min_length = 1, max_length = 255, pattern = "^[!-~]*$")]
    pub payment_method: String,
    /// Capture at once (the default), or only hold.
    #[schema(required = false, nullable, default = true)]
    pub capture: Option<bool>,
    /// The ledger account credited; your main one if absent.
    #[schema(required = false, nullable)]
    pub destination: Option<String>,
    /// The part that a balance of yours pays; the card pays the rest, or neither pays anything. Not with `capture`:
    /// false.
    #[schema(required = false, nullable)]
    pub wallet: Option<Wallet>,
    /// Your own words.
    #[schema(required = false, nullable, max_length = 1000)]
    pub description: Option<String>,
    /// Up to 50 pairs of your own: names of up to 40 bytes, texts of up to 500.
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
    /// How much, in the currency's minor unit.
    pub amount: i64,
    /// ISO 4217 code, upper case.
    pub currency: String,
    /// `processing`, `requires_capture`, `succeeded`, `failed`, `voided`, `refunded`, `partially_refunded` or
    /// `parked`.
    pub status: String,
    /// Whether the money was taken.
    pub captured: bool,
    /// How much of it was given back.
    pub amount_refunded: i64,
    /// How much was taken, from card and wallet together.
    pub amount_captured: i64,
    /// The part that a balance pays, if one does.
    pub wallet: Option<Wallet>,
    /// The provider's token.
    pub payment_method: String,
    /// The ledger account credited, `ac_…`.
    pub destination: String,
    /// Who executed it.
    pub gateway: Gateway,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// Your own words.
    pub description: Option<String>,
    /// Your own pairs.
    pub metadata: BTreeMap<String, String>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// The part of a charge that a balance pays.
#[derive(Debug, ToSchema)]
pub struct Wallet {
    /// The account debited, `ac_…`. It counts the charge's currency.
    pub account: String,
    /// How much of the charge, less than the whole.
    #[schema(minimum = 1, maximum = 999_999_999_999_998_i64)]
    pub amount: i64,
}

/// A request to capture. It may be left out.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"amount": 1000}))]
pub struct CaptureCharge {
    /// How much of what is held; all if absent. The rest is free again.
    #[schema(required = false, nullable, minimum = 1, maximum = 999_999_999_999_999_i64)]
    pub amount: Option<i64>,
}

/// Who executed a payment.
#[derive(Debug, ToSchema)]
pub struct Gateway {
    /// The provider.
    pub name: String,
    /// The provider's own reference, once it gave one.
    pub reference: Option<String>,
}

/// Why a payment failed.
#[derive(Debug, ToSchema)]
pub struct Failure {
    /// `card_declined`, `gateway_rejected`, `gateway_unauthorized`, `gateway_unavailable` or
    /// `marked_failed`; of a payout `payout_failed` instead of the first.
    pub code: String,
    /// The issuer's or the bank's reason, where given.
    pub decline_code: Option<String>,
    /// For people.
    pub message: String,
}

/// Charges, newest first.
#[derive(Debug, ToSchema)]
pub struct ChargeList {
    /// `list`
    pub object: String,
    /// The charges of this page.
    pub data: Vec<Charge>,
    /// Whether there are older ones.
    pub has_more: bool,
}

//! Reads requests to create, capture and void a charge. All problems are reported at once, each
//! with its place. After these checks, invalid input cannot exist.

use crate::fields::{self, Fields};
use crate::layout::{Layout, Shape};
use crate::metadata::{self, text_problem};
use counterfoil_core::payments::charge::Wallet;
use counterfoil_core::payments::charge::create::NewCharge;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::json::Json;
use counterfoil_core::types::limits::{DESCRIPTION_BYTES_MAX, PAYMENT_METHOD_BYTES_MAX};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::Money;
use counterfoil_core::types::reference::{ReferenceKind, References};

pub const LAYOUT: Layout = Layout {
    of: "a charge",
    like: "{\"amount\":…,\"currency\":…,\"payment_method\":…}",
    fields: &[
        ("amount", Shape::Number),
        ("currency", Shape::Text),
        ("payment_method", Shape::Text),
        ("capture", Shape::Truth),
        ("destination", Shape::Text),
        ("wallet", Shape::Object(&WALLET_LAYOUT)),
        ("description", Shape::Text),
        ("metadata", Shape::Text),
    ],
};

/// The part of a charge that a ledger balance pays.
const WALLET_LAYOUT: Layout = Layout {
    of: "a wallet",
    like: "{\"account\":…,\"amount\":…}",
    fields: &[("account", Shape::Text), ("amount", Shape::Number)],
};

pub const CAPTURE_LAYOUT: Layout =
    Layout { of: "this request", like: "{} or {\"amount\":…}", fields: &[("amount", Shape::Number)] };

pub const VOID_LAYOUT: Layout = Layout { of: "this request", like: "{}", fields: &[] };

/// An account that cannot exist, because ids are never negative.
const NOBODY: AccountId = AccountId::from_i64(-1);

/// Reads the body of a request to create a charge.
pub fn read(body: &Json, references: &References) -> Result<NewCharge, Vec<Flaw>> {
    fields::read(body, &LAYOUT, |fields| {
        let amount = fields.amount("amount");
        let asset = currency(fields);
        let payment_method = payment_method(fields);
        let capture = fields.truth("capture", true);
        let description = description(fields);
        let metadata = metadata::read(fields);
        let destination = destination(fields, references);
        let wallet = wallet(fields, amount, capture, references);
        Some(NewCharge {
            // The bounds of the amount were checked when it was read.
            amount: Money::new(amount?, asset?).ok()?,
            payment_method: payment_method?,
            capture,
            destination,
            wallet,
            description,
            metadata,
        })
    })
}

/// Reads the body of a request to capture; `None` means the whole held amount.
pub fn read_capture(body: &Json) -> Result<Option<i64>, Vec<Flaw>> {
    fields::read(body, &CAPTURE_LAYOUT, |fields| Some(fields.optional_amount("amount")))
}

/// Reads the body of a request to void, which has no fields.
pub fn read_void(body: &Json) -> Result<(), Vec<Flaw>> {
    fields::read(body, &VOID_LAYOUT, |_| Some(()))
}

pub(crate) fn currency(fields: &mut Fields<'_, '_>) -> Option<Asset> {
    const WHAT: &str = "an ISO 4217 code, like USD";
    let asset = Asset::currency(fields.text("currency", WHAT)?).ok();
    if asset.is_none() {
        fields.refuse("currency", format!("`currency` is not a known currency; send {WHAT}"));
    }
    asset
}

fn payment_method(fields: &mut Fields<'_, '_>) -> Option<Masked<String>> {
    const WHAT: &str = "the provider's token of the means of payment, like pm_card_visa";
    let text = fields.text("payment_method", WHAT)?;
    let fits = (1..=PAYMENT_METHOD_BYTES_MAX).contains(&text.len());
    let message = if is_card_number(text) {
        "`payment_method` looks like a card number; never send one here, send the provider's token for it, like pm_card_visa".to_owned()
    } else if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(Masked::new(text.to_owned()));
    } else {
        format!(
            "`payment_method` must be 1 to {PAYMENT_METHOD_BYTES_MAX} visible ASCII characters; send {WHAT}"
        )
    };
    fields.refuse("payment_method", message);
    None
}

pub(crate) fn description(fields: &mut Fields<'_, '_>) -> Option<Masked<String>> {
    match fields.optional("description")? {
        Json::String(text) => {
            if let Some(message) = text_problem(text, DESCRIPTION_BYTES_MAX) {
                fields.refuse("description", format!("`description` {message}"));
            }
            Some(Masked::new(text.clone()))
        }
        other => {
            fields.mistyped("description", "a text", other);
            None
        }
    }
}

fn destination(fields: &mut Fields<'_, '_>, references: &References) -> Option<AccountId> {
    match fields.optional("destination")? {
        Json::String(text) => {
            let id = account_id(text, references);
            if id.is_none() {
                fields.refuse(
                    "destination",
                    "no such account; send an account's id, or leave `destination` out to credit your main account",
                );
            }
            id
        }
        other => {
            fields.mistyped("destination", "an account's id, like ac_…", other);
            None
        }
    }
}

/// A text that looks like an account's id but was never issued is left to the engine. Its answer is
/// the same as for another tenant's account.
pub(crate) fn account_id(text: &str, references: &References) -> Option<AccountId> {
    let nobody = ReferenceKind::Account.is_form_of(text).then_some(NOBODY);
    references.open(ReferenceKind::Account, text).map(AccountId::from_i64).or(nobody)
}

/// Reads the part of `whole` that a wallet pays. The card must pay some part, and a split charge
/// cannot wait for a capture.
fn wallet(
    fields: &mut Fields<'_, '_>,
    whole: Option<i64>,
    capture: bool,
    references: &References,
) -> Option<Wallet> {
    if fields.has("wallet") && !capture {
        fields.refuse(
            "capture",
            "a charge with `wallet` is captured at once; leave `capture` out, or leave `wallet` out to hold the whole amount on the card",
        );
    }
    fields.object_if_any("wallet", &WALLET_LAYOUT, |wallet| {
        let account = wallet_account(wallet, references);
        let amount = wallet.amount("amount");
        if let (Some(part), Some(whole)) = (amount, whole)
            && part >= whole
        {
            wallet.refuse(
                "amount",
                format!("the wallet's `amount` must be less than the charge's {whole}; the card pays the rest. To move the whole amount from an account, make a transfer"),
            );
        }
        Some(Wallet { account: account?, amount: amount? })
    })
}

fn wallet_account(wallet: &mut Fields<'_, '_>, references: &References) -> Option<AccountId> {
    let text = wallet.text("account", "the id of the account that pays, like ac_…")?;
    let id = account_id(text, references);
    if id.is_none() {
        wallet.refuse("account", "no such account; send the id of one of your accounts, like ac_…");
    }
    id
}

/// Whether the text is 13 to 19 digits, grouped by hyphens or not, that pass the Luhn check of card
/// numbers.
pub(crate) fn is_card_number(text: &str) -> bool {
    let spaced = |c: &char| matches!(c, '-' | ' ');
    let mut count = 0_usize;
    let mut sum = 0;
    // Luhn counts from the last digit.
    for c in text.chars().rev().filter(|c| !spaced(c)) {
        let Some(digit) = c.to_digit(10).filter(|_| count < 19) else { return false };
        sum += match (count % 2, digit) {
            (0, digit) => digit,
            (_, digit @ 0..=4) => digit * 2,
            (_, digit) => digit * 2 - 9,
        };
        count += 1;
    }
    count >= 13 && sum.is_multiple_of(10)
}

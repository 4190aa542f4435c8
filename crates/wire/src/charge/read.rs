//! Reading a request to charge. Every problem is named at once, each with its place; after this, invalid input
//! cannot exist.

use crate::form::Shape;
use crate::names::{nearest, shown};
use crate::pointer;
use crate::problem::FieldError;
use counterfoil_core::payments::charge::Order;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::decimal::Decimal;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::json::{Json, Object};
use counterfoil_core::types::limits::{
    AMOUNT_MAX, DESCRIPTION_BYTES_MAX, METADATA_NAME_BYTES_MAX, METADATA_PAIRS_MAX, METADATA_VALUE_BYTES_MAX,
    PAYMENT_METHOD_BYTES_MAX,
};
use counterfoil_core::types::mask::Masked;
use counterfoil_core::types::money::{Money, MoneyError};
use counterfoil_core::types::reference::{Kind, References};
use std::collections::BTreeMap;

const FIELDS: [&str; 8] =
    ["amount", "currency", "payment_method", "capture", "destination", "wallet", "description", "metadata"];
/// Problems named in one answer: enough for any honest request.
const PROBLEMS_MAX: usize = 32;

/// What the fields of a form stand for.
pub fn shape(path: &[&str]) -> Shape {
    match path {
        ["amount"] | ["wallet", "amount"] => Shape::Number,
        ["capture"] => Shape::Truth,
        _ => Shape::Text,
    }
}

/// Reads the body of a request to charge for a tenant whose main account is `main_account`.
pub fn read(body: &Json, references: &References, main_account: AccountId) -> Result<Order, Vec<FieldError>> {
    let Json::Object(body) = body else {
        return Err(vec![FieldError::new(
            "",
            "the body must be an object; send {\"amount\":…,\"currency\":…,\"payment_method\":…}",
        )]);
    };
    let mut reader = Reader { body, problems: Vec::new() };
    reader.unknown_fields();
    let amount = reader.amount();
    let asset = reader.currency();
    let payment_method = reader.payment_method();
    let capture = reader.capture();
    let description = reader.description();
    let metadata = reader.metadata();
    reader.destination(references, main_account);
    reader.wallet();
    let money = match (amount, asset) {
        (Some(amount), Some(asset)) => reader.money(amount, asset),
        (Some(amount), None) => {
            // The bounds hold for every currency, so they are judged even if this one is unknown.
            reader.bounds(amount);
            None
        }
        (None, Some(_) | None) => None,
    };
    match (money, payment_method) {
        (Some(amount), Some(payment_method)) if reader.problems.is_empty() => {
            Ok(Order { amount, payment_method, capture, destination: main_account, description, metadata })
        }
        (Some(_) | None, Some(_) | None) => Err(reader.problems),
    }
}

struct Reader<'a> {
    body: &'a Object,
    problems: Vec<FieldError>,
}

impl<'a> Reader<'a> {
    /// The value of an optional field; `null` means absent.
    fn optional(&self, name: &str) -> Option<&'a Json> {
        self.body.get(name).filter(|value| **value != Json::Null)
    }

    fn required(&mut self, name: &str, what: &str) -> Option<&'a Json> {
        let value = self.optional(name);
        if value.is_none() {
            self.refuse(name, format!("`{name}` is missing; send {what}"));
        }
        value
    }

    fn refuse(&mut self, name: &str, message: impl Into<String>) {
        self.refuse_at(pointer::child("", name), message);
    }

    fn refuse_at(&mut self, pointer: String, message: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(FieldError::new(pointer, message));
        }
    }

    fn unknown_fields(&mut self) {
        for (name, _) in self.body.iter() {
            if FIELDS.contains(&name) {
                continue;
            }
            let name_shown = shown(name);
            let message = match nearest(name, &FIELDS) {
                Some(meant) => format!("`{name_shown}` is not a field of a charge; did you mean `{meant}`?"),
                None => {
                    format!("`{name_shown}` is not a field of a charge; leave it out or put it into metadata")
                }
            };
            self.refuse(name, message);
        }
    }

    fn amount(&mut self) -> Option<i64> {
        const WHAT: &str = "an integer of the currency's minor unit, like 1250 for 12.50 USD";
        match self.required("amount", WHAT)? {
            Json::Number(number) => self.integer(number),
            other => {
                self.refuse("amount", format!("`amount` must be {WHAT}, not {}", kind(other)));
                None
            }
        }
    }

    fn integer(&mut self, number: &Decimal) -> Option<i64> {
        if let Some(amount) = number.to_i64() {
            return Some(amount);
        }
        if number.is_integer() {
            self.out_of_bounds();
        } else {
            self.refuse(
                "amount",
                "`amount` has a fraction of a minor unit; send a whole number, like 1250 for 12.50 USD",
            );
        }
        None
    }

    fn money(&mut self, amount: i64, asset: Asset) -> Option<Money> {
        match Money::new(amount, asset) {
            Ok(money) => Some(money),
            Err(MoneyError::NotPositive | MoneyError::TooLarge) => {
                self.out_of_bounds();
                None
            }
        }
    }

    fn bounds(&mut self, amount: i64) {
        if !(1..=AMOUNT_MAX).contains(&amount) {
            self.out_of_bounds();
        }
    }

    fn out_of_bounds(&mut self) {
        self.refuse("amount", format!("`amount` must be between 1 and {AMOUNT_MAX}"));
    }

    fn currency(&mut self) -> Option<Asset> {
        const WHAT: &str = "an ISO 4217 code, like USD";
        match self.required("currency", WHAT)? {
            Json::String(code) => Asset::parse(code).map_or_else(
                |_| {
                    self.refuse("currency", format!("`currency` is not a known currency; send {WHAT}"));
                    None
                },
                Some,
            ),
            other => {
                self.refuse("currency", format!("`currency` must be {WHAT}, not {}", kind(other)));
                None
            }
        }
    }

    fn payment_method(&mut self) -> Option<Masked<String>> {
        const WHAT: &str = "the provider's token of the means of payment, like pm_card_visa";
        let message = match self.required("payment_method", WHAT)? {
            Json::String(text) if is_card_number(text) => {
                "`payment_method` looks like a card number; never send one here, send the provider's token for it, like pm_card_visa".to_owned()
            }
            Json::String(text)
                if (1..=PAYMENT_METHOD_BYTES_MAX).contains(&text.len())
                    && text.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                return Some(Masked::new(text.clone()));
            }
            Json::String(_) => {
                format!("`payment_method` must be 1 to {PAYMENT_METHOD_BYTES_MAX} visible ASCII characters; send {WHAT}")
            }
            other => format!("`payment_method` must be {WHAT}, not {}", kind(other)),
        };
        self.refuse("payment_method", message);
        None
    }

    fn capture(&mut self) -> bool {
        match self.optional("capture") {
            None => true,
            Some(Json::Bool(capture)) => *capture,
            Some(other) => {
                let found = kind(other);
                self.refuse("capture", format!("`capture` must be true or false, not {found}"));
                true
            }
        }
    }

    fn description(&mut self) -> Option<Masked<String>> {
        match self.optional("description")? {
            Json::String(text) => {
                if let Some(message) = unfit(text, DESCRIPTION_BYTES_MAX) {
                    self.refuse("description", format!("`description` {message}"));
                }
                Some(Masked::new(text.clone()))
            }
            other => {
                let found = kind(other);
                self.refuse("description", format!("`description` must be a text, not {found}"));
                None
            }
        }
    }

    fn metadata(&mut self) -> BTreeMap<String, Masked<String>> {
        let pairs = match self.optional("metadata") {
            None => return BTreeMap::new(),
            Some(Json::Object(pairs)) => pairs,
            Some(other) => {
                let found = kind(other);
                self.refuse("metadata", format!("`metadata` must be an object of texts, not {found}"));
                return BTreeMap::new();
            }
        };
        if pairs.len() > METADATA_PAIRS_MAX {
            self.refuse(
                "metadata",
                format!("`metadata` has too many pairs; send at most {METADATA_PAIRS_MAX}"),
            );
            return BTreeMap::new();
        }
        let mut metadata = BTreeMap::new();
        for (name, value) in pairs.iter() {
            let place = || pointer::child("/metadata", name);
            if name.is_empty() || name.contains(['[', ']']) || unfit(name, METADATA_NAME_BYTES_MAX).is_some()
            {
                self.refuse_at(
                    place(),
                    format!("a metadata name must be 1 to {METADATA_NAME_BYTES_MAX} bytes without control characters and square brackets"),
                );
            }
            match value {
                Json::String(text) => {
                    if let Some(message) = unfit(text, METADATA_VALUE_BYTES_MAX) {
                        self.refuse_at(place(), format!("the metadata value {message}"));
                    }
                    metadata.insert(name.to_owned(), Masked::new(text.clone()));
                }
                other => self.refuse_at(
                    place(),
                    format!("a metadata value must be a text, not {}; put it in double quotes", kind(other)),
                ),
            }
        }
        metadata
    }

    fn destination(&mut self, references: &References, main_account: AccountId) {
        match self.optional("destination") {
            None => {}
            Some(Json::String(text))
                if references.open(Kind::Account, text) == Some(main_account.to_i64()) => {}
            Some(Json::String(_)) => self.refuse(
                "destination",
                "no such account; leave `destination` out to credit your main account",
            ),
            Some(other) => {
                let found = kind(other);
                self.refuse(
                    "destination",
                    format!("`destination` must be an account's id, like ac_…, not {found}"),
                );
            }
        }
    }

    fn wallet(&mut self) {
        if self.optional("wallet").is_some() {
            self.refuse(
                "wallet",
                "split tender is not available in this version; leave `wallet` out and charge the whole amount",
            );
        }
    }
}

/// What is wrong with a text, if anything is.
fn unfit(text: &str, bytes_max: usize) -> Option<String> {
    if text.len() > bytes_max {
        return Some(format!("is longer than {bytes_max} bytes; shorten it"));
    }
    text.chars()
        .any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        .then(|| "has a control character other than a line break or tab; remove it".to_owned())
}

/// 13 to 19 digits, however grouped by hyphens, that pass the check of card numbers (Luhn).
fn is_card_number(text: &str) -> bool {
    let mut digits = Vec::with_capacity(20);
    for c in text.chars().filter(|c| !matches!(c, '-' | ' ')) {
        match c.to_digit(10) {
            Some(digit) if digits.len() < 19 => digits.push(digit),
            Some(_) | None => return false,
        }
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit) {
            (0, digit) => *digit,
            (_, digit @ 0..=4) => digit * 2,
            (_, digit) => digit * 2 - 9,
        })
        .sum();
    digits.len() >= 13 && sum.is_multiple_of(10)
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a truth value",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

//! A second JSON parser: recursive, on characters, slow and plain. It shares only the documented
//! bounds with the core's.

use counterfoil_core::types::decimal::{DIGITS_MAX, EXPONENT_MAX};
use counterfoil_core::types::json::{DEPTH_MAX, ITEMS_MAX, MEMBERS_MAX};
use std::collections::BTreeMap;

/// A value; two are equal if and only if they mean the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Value>),
    Map(BTreeMap<String, Value>),
}

/// An exact number: an integer without zeros at its ends, times a power of ten. Zero has no digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) negative: bool,
    pub(super) digits: String,
    pub(super) exponent: i128,
}

/// Parses a body that is exactly one value.
pub(super) fn read(input: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(input).ok()?;
    let mut reader = Reader { rest: text, items: 0 };
    let value = reader.value(0)?;
    reader.space();
    reader.rest.is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
    items: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn eat(&mut self, word: &str) -> bool {
        self.rest.strip_prefix(word).inspect(|rest| self.rest = rest).is_some()
    }

    /// Accepts a word after white space.
    fn token(&mut self, word: &str) -> bool {
        self.space();
        self.eat(word)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.space();
        if self.eat("null") {
            return Some(Value::Null);
        }
        if self.eat("true") {
            return Some(Value::Bool(true));
        }
        if self.eat("false") {
            return Some(Value::Bool(false));
        }
        if self.eat("\"") {
            return self.text().map(Value::Text);
        }
        let (list, map) = (self.rest.starts_with('['), self.rest.starts_with('{'));
        if (list || map) && depth >= DEPTH_MAX {
            return None;
        }
        if list {
            return self.list(depth + 1);
        }
        if map {
            return self.map(depth + 1);
        }
        let end = self.rest.find(|character: char| !"+-.0123456789eE".contains(character));
        let (number, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Number::read(number).map(Value::Number)
    }

    fn count(&mut self) -> Option<()> {
        self.items += 1;
        (self.items <= ITEMS_MAX).then_some(())
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.eat("[");
        let mut list = Vec::new();
        if self.token("]") {
            return Some(Value::List(list));
        }
        loop {
            self.count()?;
            list.push(self.value(depth)?);
            if self.token("]") {
                return Some(Value::List(list));
            }
            self.token(",").then_some(())?;
        }
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        self.eat("{");
        let mut map = BTreeMap::new();
        if self.token("}") {
            return Some(Value::Map(map));
        }
        loop {
            self.count()?;
            self.token("\"").then_some(())?;
            let name = self.text()?;
            self.token(":").then_some(())?;
            let value = self.value(depth)?;
            if map.insert(name, value).is_some() || map.len() > MEMBERS_MAX {
                return None;
            }
            if self.token("}") {
                return Some(Value::Map(map));
            }
            self.token(",").then_some(())?;
        }
    }

    /// Parses a string after its opening quote. Collects UTF-16 and pairs surrogates at the end.
    fn text(&mut self) -> Option<String> {
        let mut units = Vec::new();
        loop {
            let mut characters = self.rest.chars();
            let character = characters.next()?;
            self.rest = characters.as_str();
            match character {
                '"' => return String::from_utf16(&units).ok(),
                '\\' => units.push(self.escape()?),
                '\0'..='\u{1f}' => return None,
                plain => units.extend(plain.encode_utf16(&mut [0; 2]).iter()),
            }
        }
    }

    fn escape(&mut self) -> Option<u16> {
        for (letter, means) in [
            ("\"", '"'),
            ("\\", '\\'),
            ("/", '/'),
            ("b", '\u{8}'),
            ("f", '\u{c}'),
            ("n", '\n'),
            ("r", '\r'),
            ("t", '\t'),
        ] {
            if self.eat(letter) {
                return u16::try_from(u32::from(means)).ok();
            }
        }
        self.eat("u").then_some(())?;
        let (digits, rest) = self.rest.split_at_checked(4)?;
        self.rest = rest;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
        u16::from_str_radix(digits, 16).ok()
    }
}

impl Number {
    /// Parses a text that is exactly one number, within the bounds.
    pub(super) fn read(text: &str) -> Option<Number> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let power = exponent.map_or("0", |text| text.strip_prefix(['+', '-']).unwrap_or(text));
        let grammar = plain(whole)
            && (whole == "0" || !whole.starts_with('0'))
            && fraction.is_none_or(plain)
            && plain(power);
        if !grammar {
            return None;
        }
        let fraction = fraction.unwrap_or_default();
        let all = format!("{whole}{fraction}");
        let trimmed = all.trim_start_matches('0').trim_end_matches('0');
        if trimmed.is_empty() {
            return Some(Number { negative: false, digits: String::new(), exponent: 0 });
        }
        let power = power.trim_start_matches('0');
        // No input has enough digits to compensate a longer exponent.
        let power: i128 =
            if power.len() > 30 { 10_i128.pow(30) } else { format!("0{power}").parse().ok()? };
        let power = if exponent.is_some_and(|text| text.starts_with('-')) { -power } else { power };
        let zeros = all.len() - all.trim_end_matches('0').len();
        let exponent = power - i128::try_from(fraction.len()).ok()? + i128::try_from(zeros).ok()?;
        let lead = exponent + i128::try_from(trimmed.len()).ok()? - 1;
        let bounded = trimmed.len() <= DIGITS_MAX && lead.abs() <= i128::from(EXPONENT_MAX);
        bounded.then(|| Number { negative, digits: trimmed.to_owned(), exponent })
    }

    /// The number as digits, if it has no fraction and at most this length.
    pub(super) fn integer(&self, length_max: usize) -> Option<String> {
        let zeros = usize::try_from(self.exponent).ok()?;
        (self.digits.len() + zeros <= length_max).then_some(())?;
        let sign = if self.negative { "-" } else { "" };
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        Some(format!("{sign}{digits}{}", "0".repeat(zeros)))
    }
}

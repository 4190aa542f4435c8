//! Reads the fields of a request. Every problem is reported with its place; a value that was read
//! is valid.

use crate::layout::Layout;
use crate::names::{nearest, printable};
use crate::pointer;
use crate::time;
use counterfoil_core::ledger::account::AccountCode;
use counterfoil_core::payments::ledger::AccountSelector;
use counterfoil_core::types::asset::Asset;
use counterfoil_core::types::flaw::Flaw;
use counterfoil_core::types::id::AccountId;
use counterfoil_core::types::json::{Json, Object};
use counterfoil_core::types::limits::{AMOUNT_MAX, ASSET_CODE_BYTES_MAX};
use counterfoil_core::types::reference::{ReferenceKind, References};
use counterfoil_core::types::time::Time;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// Most problems reported per answer; enough for any honest request.
const PROBLEMS_MAX: usize = 32;

/// Reads a body laid out as `layout`; `fill` reports every problem before it gives up.
pub fn read<'a, T>(
    body: &'a Json,
    layout: &Layout,
    fill: impl FnOnce(&mut Fields<'a, '_>) -> Option<T>,
) -> Result<T, Vec<Flaw>> {
    let mut problems = Vec::new();
    let found = Fields::of(body, Place::Root, layout, &mut problems).and_then(|mut fields| fill(&mut fields));
    match found {
        Some(value) if problems.is_empty() => Ok(value),
        Some(_) | None => Err(problems),
    }
}

/// A place in a body. Its pointer is written only to report a problem there.
#[derive(Clone, Copy, Debug)]
enum Place<'p> {
    Root,
    Member(&'p Place<'p>, &'p str),
    Element(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn pointer(&self) -> String {
        match self {
            Place::Root => String::new(),
            Place::Member(parent, name) => pointer::child(&parent.pointer(), name),
            Place::Element(parent, index) => pointer::child(&parent.pointer(), &index.to_string()),
        }
    }
}

/// The fields of one object.
#[derive(Debug)]
pub struct Fields<'a, 'p> {
    object: &'a Object,
    place: Place<'p>,
    problems: &'p mut Vec<Flaw>,
}

impl<'a, 'p> Fields<'a, 'p> {
    fn of(
        value: &'a Json,
        place: Place<'p>,
        layout: &Layout,
        problems: &'p mut Vec<Flaw>,
    ) -> Option<Fields<'a, 'p>> {
        let Json::Object(object) = value else {
            let what = if matches!(place, Place::Root) { "the body" } else { layout.of };
            let message = format!("{what} must be an object, not {}; send {}", kind(value), layout.like);
            push(problems, &place, message);
            return None;
        };
        let mut fields = Fields { object, place, problems };
        fields.unknown(layout);
        Some(fields)
    }

    fn unknown(&mut self, layout: &Layout) {
        for (name, _) in self.object.iter().filter(|(name, _)| !layout.knows(name)) {
            let (name_shown, of) = (printable(name), layout.of);
            let advice = match nearest(name, &layout.names()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if layout.knows("metadata") => "leave it out or put it into metadata".to_owned(),
                None => "leave it out".to_owned(),
            };
            self.refuse(name, format!("`{name_shown}` is not a field of {of}; {advice}"));
        }
    }

    /// Whether the object has a non-null field `name`.
    pub fn has(&self, name: &str) -> bool {
        self.optional(name).is_some()
    }

    /// The value of an optional field; `null` means absent.
    pub fn optional(&self, name: &str) -> Option<&'a Json> {
        self.object.get(name).filter(|value| **value != Json::Null)
    }

    /// The value of a required field; `what` tells the client what to send.
    pub fn required(&mut self, name: &str, what: &str) -> Option<&'a Json> {
        let value = self.optional(name);
        if value.is_none() {
            self.refuse(name, format!("`{name}` is missing; send {what}"));
        }
        value
    }

    /// Reports a problem with a field.
    pub fn refuse(&mut self, name: &str, message: impl Into<String>) {
        push(self.problems, &Place::Member(&self.place, name), message);
    }

    /// Reports a problem with a member of a field.
    pub fn refuse_within(&mut self, name: &str, member: &str, message: impl Into<String>) {
        let field = Place::Member(&self.place, name);
        push(self.problems, &Place::Member(&field, member), message);
    }

    /// Reports a field of the wrong type.
    pub fn mistyped(&mut self, name: &str, what: &str, found: &Json) {
        self.refuse(name, format!("`{name}` must be {what}, not {}", kind(found)));
    }

    /// A required amount.
    pub fn amount(&mut self, name: &str) -> Option<i64> {
        let value = self.required(name, AMOUNT)?;
        self.whole(name, value, 1..=AMOUNT_MAX, AMOUNT)
    }

    /// An optional amount.
    pub fn optional_amount(&mut self, name: &str) -> Option<i64> {
        let value = self.optional(name)?;
        self.whole(name, value, 1..=AMOUNT_MAX, AMOUNT)
    }

    /// A whole number within bounds. `1e3` and `1000.0` are whole numbers too.
    pub fn whole(
        &mut self,
        name: &str,
        value: &Json,
        bounds: RangeInclusive<i64>,
        what: &str,
    ) -> Option<i64> {
        let Json::Number(number) = value else {
            self.mistyped(name, what, value);
            return None;
        };
        match number.to_i64() {
            Some(whole) if bounds.contains(&whole) => return Some(whole),
            None if !number.is_integer() => {
                self.refuse(name, format!("`{name}` has a fraction; send {what}"));
            }
            Some(_) | None => {
                self.refuse(
                    name,
                    format!("`{name}` must be between {} and {}", bounds.start(), bounds.end()),
                );
            }
        }
        None
    }

    /// A truth value, or `otherwise` if the field is absent.
    pub fn truth(&mut self, name: &str, otherwise: bool) -> bool {
        match self.optional(name) {
            None => otherwise,
            Some(Json::Bool(truth)) => *truth,
            Some(other) => {
                self.mistyped(name, "true or false", other);
                otherwise
            }
        }
    }

    /// A required text.
    pub fn text(&mut self, name: &str, what: &str) -> Option<&'a str> {
        match self.required(name, what)? {
            Json::String(text) => Some(text),
            other => {
                self.mistyped(name, what, other);
                None
            }
        }
    }

    /// An asset of any kind.
    pub fn asset(&mut self, name: &str) -> Option<Asset> {
        let text = self.text(name, ASSET)?;
        let asset = Asset::parse(text).ok();
        if asset.is_none() {
            self.refuse(
                name,
                format!(
                    "`{name}` must be {ASSET}: a letter, then letters, digits and `_`, at most {ASSET_CODE_BYTES_MAX}"
                ),
            );
        }
        asset
    }

    /// One of the listed words.
    pub fn word<T>(&mut self, name: &str, parse: fn(&str) -> Option<T>, words: &str) -> Option<T> {
        let text = self.text(name, words)?;
        let word = parse(text);
        if word.is_none() {
            self.refuse(name, format!("`{name}` must be {words}"));
        }
        word
    }

    /// An account, by its id or its code.
    pub fn account(&mut self, name: &str, accounts: &mut Accounts<'a>) -> Option<AccountSelector> {
        let named = accounts.named(self.text(name, ACCOUNT)?);
        if named.is_none() {
            self.refuse(name, format!("`{name}` is no account; send {ACCOUNT}"));
        }
        named
    }

    /// An optional time.
    pub fn optional_time(&mut self, name: &str) -> Option<Time> {
        const WHAT: &str = "an RFC 3339 time, like 2026-01-31T12:00:00Z";
        match self.optional(name)? {
            Json::String(text) => {
                let time = time::parse(text);
                if time.is_none() {
                    self.refuse(name, format!("`{name}` must be {WHAT}"));
                }
                time
            }
            other => {
                self.mistyped(name, WHAT, other);
                None
            }
        }
    }

    /// An optional object; `read` reads its fields.
    pub fn object_if_any<T>(
        &mut self,
        name: &str,
        layout: &Layout,
        read: impl FnOnce(&mut Fields<'a, '_>) -> Option<T>,
    ) -> Option<T> {
        let value = self.optional(name)?;
        let place = Place::Member(&self.place, name);
        Fields::of(value, place, layout, self.problems).and_then(|mut fields| read(&mut fields))
    }

    /// A required array of objects; `read` reads one of them. `None` if any element is invalid.
    pub fn list<T>(
        &mut self,
        name: &str,
        bounds: RangeInclusive<usize>,
        layout: &Layout,
        mut read: impl FnMut(&mut Fields<'a, '_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let what = || {
            let (least, most) = (bounds.start(), bounds.end());
            format!("an array of {least} to {most} objects like {}", layout.like)
        };
        let elements = match self.optional(name) {
            Some(Json::Array(elements)) if bounds.contains(&elements.len()) => elements,
            Some(Json::Array(elements)) => {
                self.refuse(name, format!("`{name}` has {} elements; send {}", elements.len(), what()));
                return None;
            }
            Some(other) => {
                self.mistyped(name, &what(), other);
                return None;
            }
            None => {
                self.required(name, &what())?;
                return None;
            }
        };
        let field = Place::Member(&self.place, name);
        let mut made = Vec::with_capacity(elements.len());
        for (index, value) in elements.iter().enumerate() {
            let place = Place::Element(&field, index);
            let fields = Fields::of(value, place, layout, self.problems);
            made.extend(fields.and_then(|mut fields| read(&mut fields)));
        }
        (made.len() == elements.len()).then_some(made)
    }
}

const AMOUNT: &str = "a whole number of minor units, like 1250 for 12.50 USD";
const ASSET: &str = "an asset's code, like USD or POINTS";
const ACCOUNT: &str = "an account's id, like ac_…, or its code";

/// Resolves the texts by which clients name accounts. Opening a reference computes four digests, so
/// each text is opened once, however often a bulk request repeats it.
#[derive(Debug)]
pub struct Accounts<'a> {
    references: &'a References,
    opened: HashMap<&'a str, Option<AccountId>>,
}

impl<'a> Accounts<'a> {
    pub fn new(references: &'a References) -> Accounts<'a> {
        Accounts { references, opened: HashMap::new() }
    }

    /// The account that `text` names: by its id, else by its code. `None` if the text can be
    /// neither.
    pub fn named(&mut self, text: &'a str) -> Option<AccountSelector> {
        let reference = text.starts_with(ReferenceKind::Account.prefix());
        let open = || self.references.open(ReferenceKind::Account, text).map(AccountId::from_i64);
        let id = if reference { *self.opened.entry(text).or_insert_with(open) } else { None };
        id.map(AccountSelector::Id).or_else(|| AccountCode::parse(text).ok().map(AccountSelector::Code))
    }
}

/// The JSON type of a value, for messages.
pub fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a truth value",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

fn push(problems: &mut Vec<Flaw>, place: &Place<'_>, message: impl Into<String>) {
    if problems.len() < PROBLEMS_MAX {
        problems.push(Flaw::new(place.pointer(), message));
    }
}

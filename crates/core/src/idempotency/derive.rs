//! Derives idempotency keys for commands without a key: from queues and batch files.
//!
//! A key is derived from the fields that the command's author declares stable, and from the time
//! bucket of the command. The tenant is not included, because keys are scoped to their tenant. The
//! amount is not included either. It belongs to the fingerprint, so a command with a changed amount
//! is refused under its key instead of executed under another.
//!
//! A retry across the edge of a bucket must still find the first key, without any lock. [`Search`]
//! follows one rule: **use the key of a bucket only after the key of the previous bucket was found
//! used, or was closed.** Closing a key means to spend it on a request that moves no money. A key
//! stands for one request forever. In a race between a command and a closing, exactly one wins, and
//! the loser is told. Therefore importers in equal or neighbouring buckets end at one key, in every
//! interleaving and with every delay.

use crate::types::digest::Digest;
use crate::types::json::{self, Json, Object};
use crate::types::time::{Span, Time};
use std::fmt;

/// The largest number of fields that a key may be derived from. No command has more, and an error
/// message can list them all.
pub const STABLE_FIELDS_MAX: usize = 16;

const DOMAIN: &str = "counterfoil/derived-key/1";
const PREFIX: &str = "dk_";
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The field that keys are never derived from.
const AMOUNT: &str = "amount";

/// The fields of a route's commands that stay the same when a command is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stable {
    route: String,
    /// Sorted, so the order of declaration does not matter.
    fields: Vec<String>,
}

/// Why fields cannot be declared stable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadStable {
    /// The list is empty.
    None,
    /// The list has more than [`STABLE_FIELDS_MAX`] fields.
    TooMany,
    /// A name, or a part of it between dots, is empty.
    EmptyName,
    /// A field is listed twice.
    Twice(String),
    /// A field is an amount.
    Amount(String),
}

/// Why a command has no derived key. Each variant names the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Underivable {
    /// The field is absent or null.
    Absent(String),
    /// The field is an empty string. Commands without a distinguishing value would share a key.
    Empty(String),
    /// The field is an object or an array.
    NotScalar(String),
}

/// The identity of a command: its route and the values of its stable fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    route: String,
    /// Names and canonical values.
    values: Vec<(String, Vec<u8>)>,
}

/// The time bucket of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bucket {
    /// One key forever.
    Forever,
    /// The bucket's number, counted from the Unix epoch.
    Number(i64),
}

/// The length of a bucket in milliseconds; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(i64);

impl Stable {
    /// Declares `fields` of the commands of `route`. A dot leads into an object.
    pub fn declare<'a>(route: &str, fields: impl IntoIterator<Item = &'a str>) -> Result<Stable, BadStable> {
        let mut fields: Vec<String> = fields.into_iter().map(str::to_owned).collect();
        fields.sort();
        if fields.is_empty() {
            return Err(BadStable::None);
        }
        if fields.len() > STABLE_FIELDS_MAX {
            return Err(BadStable::TooMany);
        }
        for (index, field) in fields.iter().enumerate() {
            if field.split('.').any(str::is_empty) {
                return Err(BadStable::EmptyName);
            }
            if field.split('.').next_back() == Some(AMOUNT) {
                return Err(BadStable::Amount(field.clone()));
            }
            if fields.get(index.saturating_add(1)) == Some(field) {
                return Err(BadStable::Twice(field.clone()));
            }
        }
        Ok(Stable { route: route.to_owned(), fields })
    }

    /// The declared fields, sorted.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(String::as_str)
    }

    /// The identity of `command`.
    pub fn identify(&self, command: &Object) -> Result<Identity, Underivable> {
        let values = self.fields.iter().map(|field| Ok((field.clone(), value(command, field)?)));
        Ok(Identity { route: self.route.clone(), values: values.collect::<Result<_, _>>()? })
    }
}

/// The member at a dotted path.
pub fn member<'a>(object: &'a Object, path: &str) -> Option<&'a Json> {
    let Some((first, rest)) = path.split_once('.') else { return object.get(path) };
    match object.get(first)? {
        Json::Object(inner) => member(inner, rest),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => None,
    }
}

fn value(command: &Object, field: &str) -> Result<Vec<u8>, Underivable> {
    match member(command, field) {
        None | Some(Json::Null) => Err(Underivable::Absent(field.to_owned())),
        Some(Json::String(text)) if text.is_empty() => Err(Underivable::Empty(field.to_owned())),
        Some(Json::Array(_) | Json::Object(_)) => Err(Underivable::NotScalar(field.to_owned())),
        Some(scalar @ (Json::Bool(_) | Json::Number(_) | Json::String(_))) => {
            let mut bytes = Vec::with_capacity(32);
            json::canonical(scalar, &mut bytes);
            Ok(bytes)
        }
    }
}

impl Identity {
    /// The key of the command in `bucket`: `dk_` and 52 digits of base 32. Satisfies every limit on
    /// keys.
    pub fn key(&self, bucket: Bucket) -> String {
        let number = match bucket {
            Bucket::Forever => Vec::new(),
            Bucket::Number(number) => number.to_be_bytes().to_vec(),
        };
        let mut parts: Vec<&[u8]> = vec![self.route.as_bytes(), &number];
        for (name, value) in &self.values {
            parts.extend([name.as_bytes(), value.as_slice()]);
        }
        format!("{PREFIX}{}", base32(&Digest::of(DOMAIN, &parts)))
    }
}

/// Five bits per digit, highest bits first; the last digit carries one bit.
fn base32(digest: &Digest) -> String {
    let bits: Vec<u8> =
        digest.as_bytes().iter().flat_map(|byte| (0..8_u32).rev().map(move |at| (byte >> at) & 1)).collect();
    let digit = |five: &[u8]| {
        let number = (0..5).fold(0_usize, |sum, at| {
            sum.saturating_mul(2).saturating_add(usize::from(five.get(at).copied().unwrap_or(0)))
        });
        char::from(ALPHABET.get(number).copied().unwrap_or(b'0'))
    };
    bits.chunks(5).map(digit).collect()
}

impl Width {
    /// `None` for zero and for lengths beyond the range of time.
    pub fn new(span: Span) -> Option<Width> {
        i64::try_from(span.ms()).ok().filter(|ms| *ms > 0).map(Width)
    }

    /// The number of the bucket that contains `time`.
    pub const fn number(self, time: Time) -> i64 {
        match time.ms().checked_div_euclid(self.0) {
            Some(number) => number,
            None => 0,
        }
    }
}

/// The search for a command's key, from the command's own bucket. The module's documentation states
/// the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Search(SearchState);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SearchState {
    /// There are no buckets.
    Only,
    /// Close the previous bucket's key, or learn of its use.
    Before(i64),
    /// The previous key was used: the command began there.
    Found(i64),
    /// The previous key is closed; use our own.
    Own(i64),
    /// Our own key belongs to a different request. A client with a faster clock may have closed it;
    /// check.
    Recheck(i64),
    /// Our own key is closed; use the next one.
    After(i64),
}

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Close the bucket's key, or learn of its use.
    Close(Bucket),
    /// Send the command under the bucket's key.
    Send(Bucket),
}

impl Search {
    /// Starts in a command's own bucket.
    pub const fn from(own: Bucket) -> Search {
        match own {
            Bucket::Forever => Search(SearchState::Only),
            Bucket::Number(number) => Search(SearchState::Before(number)),
        }
    }

    /// The next step of the search.
    pub const fn step(self) -> Step {
        match self.0 {
            SearchState::Only => Step::Send(Bucket::Forever),
            SearchState::Before(own) => Step::Close(Bucket::Number(own.saturating_sub(1))),
            SearchState::Found(own) => Step::Send(Bucket::Number(own.saturating_sub(1))),
            SearchState::Own(own) => Step::Send(Bucket::Number(own)),
            SearchState::Recheck(own) => Step::Close(Bucket::Number(own)),
            SearchState::After(own) => Step::Send(Bucket::Number(own.saturating_add(1))),
        }
    }

    /// Continues after the key to close was found closed, or was closed now. `None` if the last
    /// step closed nothing.
    pub const fn closed(self) -> Option<Search> {
        match self.0 {
            SearchState::Before(own) => Some(Search(SearchState::Own(own))),
            SearchState::Recheck(own) => Some(Search(SearchState::After(own))),
            SearchState::Only | SearchState::Found(_) | SearchState::Own(_) | SearchState::After(_) => None,
        }
    }

    /// Continues after the key was found to stand for another request. `None` if the command began
    /// under its own key with other contents.
    pub const fn used_by_another(self) -> Option<Search> {
        match self.0 {
            SearchState::Before(own) => Some(Search(SearchState::Found(own))),
            SearchState::Own(own) => Some(Search(SearchState::Recheck(own))),
            SearchState::Only | SearchState::Found(_) | SearchState::Recheck(_) | SearchState::After(_) => {
                None
            }
        }
    }
}

impl fmt::Display for BadStable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadStable::None => {
                f.write_str("no field is named; name what tells one command from another, like order_id")
            }
            BadStable::TooMany => {
                write!(f, "more than {STABLE_FIELDS_MAX} fields are named; name those that suffice")
            }
            BadStable::EmptyName => f.write_str("a field's name is empty; separate names by single commas"),
            BadStable::Twice(field) => write!(f, "`{field}` is named twice; name each field once"),
            BadStable::Amount(field) => write!(
                f,
                "`{field}` cannot be a stable field: the amount belongs to the fingerprint. In the key, a command sent again with another amount would be a new command instead of a refused one; leave it out"
            ),
        }
    }
}

impl fmt::Display for Underivable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Underivable::Absent(field) => write!(f, "the stable field `{field}` is missing"),
            Underivable::Empty(field) => write!(f, "the stable field `{field}` is empty"),
            Underivable::NotScalar(field) => {
                write!(f, "the stable field `{field}` is an object or an array; name a field within it")
            }
        }
    }
}

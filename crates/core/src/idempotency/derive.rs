//! Keys for commands that come without one: from queues, from batch files.
//!
//! A key is derived from the fields that a command's maker declares stable, and from the bucket of time the command
//! falls into. The tenant is not part of it, since keys are scoped to their tenant; neither is the amount: it belongs
//! to the fingerprint, so that a command whose amount has changed is refused under its key instead of executed
//! under another.
//!
//! A retry across the edge of a bucket must still find the first one, and nobody holds a lock. [`Search`] is how:
//! **the key of a bucket is used only after the key of the bucket before was found used, or was closed.** To close a
//! key is to spend it on a request that moves no money. A key stands for one request for good, so of a command and a
//! closing that race for it one wins, and the loser is told. It follows that of several importers whose buckets are
//! equal or neighbours all end at one key, however their steps interleave, stop or are delivered late.

use crate::types::digest::Digest;
use crate::types::json::{self, Json, Object};
use crate::types::time::{Span, Time};
use std::fmt;

/// Fields a key may be derived from: more than any command has, and a message can name them all.
pub const STABLE_FIELDS_MAX: usize = 16;

const DOMAIN: &str = "counterfoil/derived-key/1";
const PREFIX: &str = "dk_";
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// What no key is derived from.
const AMOUNT: &str = "amount";

/// The fields of a route's commands that stay the same when a command is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stable {
    route: String,
    /// Sorted: the order in which they are declared does not count.
    fields: Vec<String>,
}

/// Why fields cannot be declared stable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadStable {
    /// There are none.
    None,
    /// There are more than [`STABLE_FIELDS_MAX`].
    TooMany,
    /// A name, or a part of it between dots, is empty.
    EmptyName,
    /// The same field twice.
    Twice(String),
    /// An amount.
    Amount(String),
}

/// Why a command has no derived key. Each names the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Underivable {
    /// It is not there, or null.
    Absent(String),
    /// It is an empty text: commands that have nothing to tell them apart would share a key.
    Empty(String),
    /// It is an object or an array.
    NotScalar(String),
}

/// What a command is told apart by: its route and the values of its stable fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    route: String,
    /// Names and canonical values.
    values: Vec<(String, Vec<u8>)>,
}

/// The time a key is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bucket {
    /// One key for good.
    Forever,
    /// The bucket of that number, counted from the Unix epoch.
    Number(i64),
}

/// How long a bucket is; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(i64);

impl Stable {
    /// Declares `fields` of the commands of `route`; a dot leads into an object.
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

    /// What `command` is told apart by.
    pub fn identify(&self, command: &Object) -> Result<Identity, Underivable> {
        let values = self.fields.iter().map(|field| Ok((field.clone(), value(command, field)?)));
        Ok(Identity { route: self.route.clone(), values: values.collect::<Result<_, _>>()? })
    }
}

/// The member a dotted name leads to.
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
    /// The key of the command in `bucket`: `dk_` and 52 digits of base 32, so it fits wherever keys do.
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

/// Five bits a digit, the first bits first; the last digit carries one bit.
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
    /// Nothing for a length of zero, or one that no time has.
    pub fn new(span: Span) -> Option<Width> {
        i64::try_from(span.ms()).ok().filter(|ms| *ms > 0).map(Width)
    }

    /// The number of the bucket that `time` is in.
    pub const fn number(self, time: Time) -> i64 {
        match time.ms().checked_div_euclid(self.0) {
            Some(number) => number,
            None => 0,
        }
    }
}

/// The search for a command's key, from the command's own bucket. See the head of this file for the rule it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Search(Place);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// There are no buckets.
    Only,
    /// Is the key of the bucket before used?
    Before(i64),
    /// It is: the command was begun there.
    Found(i64),
    /// It is closed.
    Own(i64),
    /// The own key is not this command's: is it closed, by somebody whose clock is ahead?
    Recheck(i64),
    /// It is.
    After(i64),
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Close the key of that bucket, or learn that it is used.
    Close(Bucket),
    /// Send the command under the key of that bucket.
    Send(Bucket),
}

impl Search {
    /// From a command's own bucket.
    pub const fn from(own: Bucket) -> Search {
        match own {
            Bucket::Forever => Search(Place::Only),
            Bucket::Number(number) => Search(Place::Before(number)),
        }
    }

    /// What to do next.
    pub const fn step(self) -> Step {
        match self.0 {
            Place::Only => Step::Send(Bucket::Forever),
            Place::Before(own) => Step::Close(Bucket::Number(own.saturating_sub(1))),
            Place::Found(own) => Step::Send(Bucket::Number(own.saturating_sub(1))),
            Place::Own(own) => Step::Send(Bucket::Number(own)),
            Place::Recheck(own) => Step::Close(Bucket::Number(own)),
            Place::After(own) => Step::Send(Bucket::Number(own.saturating_add(1))),
        }
    }

    /// The key to close is closed, now or before. Nothing if there was none to close.
    pub const fn closed(self) -> Option<Search> {
        match self.0 {
            Place::Before(own) => Some(Search(Place::Own(own))),
            Place::Recheck(own) => Some(Search(Place::After(own))),
            Place::Only | Place::Found(_) | Place::Own(_) | Place::After(_) => None,
        }
    }

    /// The key stands for another request than the one sent. Nothing if the command's own key does: it was begun
    /// with other contents.
    pub const fn met_another(self) -> Option<Search> {
        match self.0 {
            Place::Before(own) => Some(Search(Place::Found(own))),
            Place::Own(own) => Some(Search(Place::Recheck(own))),
            Place::Only | Place::Found(_) | Place::Recheck(_) | Place::After(_) => None,
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

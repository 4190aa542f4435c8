//! JSON values: the form in which request bodies are read and fingerprinted.
//!
//! Promises: the parser takes RFC 8259 and nothing more, numbers stay exact ([`Decimal`]), keys are unique, every
//! dimension is bounded, and no input makes it recurse or take more than quasi-linear time. Leaves out: mapping
//! values to commands, and building replies.
//!
//! [`canonical`] gives the bytes that fingerprints are made of; its file documents the form.

mod canonical;
mod object;
mod parse;

pub use canonical::canonical;
pub use object::{DuplicateKey, Object};
pub use parse::{DEPTH_MAX, ITEMS_MAX, MEMBERS_MAX, POINTER_BYTES_MAX, ParseError};

use crate::types::decimal::Decimal;

/// A JSON value. Equality is by value: the order of an object's members does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, exactly as written.
    Number(Decimal),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Object),
}

impl Json {
    /// Reads a body that is exactly one JSON value.
    pub fn parse(input: &[u8]) -> Result<Json, ParseError> {
        parse::parse(input)
    }
}

#[cfg(test)]
mod tests;

//! JSON values: the form in which request bodies are read and fingerprinted.
//!
//! The parser accepts RFC 8259 and nothing more. Numbers stay exact ([`Decimal`]), keys are unique,
//! and every dimension is bounded. No input makes the parser recurse or take more than quasi-linear
//! time. Other modules map values to commands and build replies.
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
    Null,
    Bool(bool),
    /// A number, exactly as written.
    Number(Decimal),
    /// A string, unescaped.
    String(String),
    Array(Vec<Json>),
    Object(Object),
}

impl Json {
    /// Parses a body that is exactly one JSON value.
    pub fn parse(input: &[u8]) -> Result<Json, ParseError> {
        parse::parse(input)
    }
}

#[cfg(test)]
mod tests;

//! The public forms: reading requests, writing answers, errors and lists.
//!
//! Promises: a request that was read is valid, or every problem is reported with its place; golden
//! texts pin everything that is written. HTTP itself (methods, headers, routes) belongs to `api`.

pub mod account;
pub mod asset;
pub mod balance;
pub mod bulk;
pub mod charge;
pub mod conversion;
pub mod dead_letter;
pub mod entry;
pub mod fields;
#[cfg(test)]
mod fixtures;
pub mod form;
pub mod json;
pub mod key;
pub mod layout;
pub mod list;
pub mod metadata;
pub mod names;
pub mod payout;
pub mod pointer;
pub mod present;
pub mod problem;
pub mod refund;
pub mod time;
pub mod timeline;
pub mod transaction;
pub mod transfer;

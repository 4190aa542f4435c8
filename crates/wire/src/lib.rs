//! The public forms: how requests are read and how answers, errors and lists are written.
//!
//! Promises: what is read here is valid or every problem is named with its place; what is written here is pinned
//! by golden texts. Leaves out: HTTP itself (methods, headers, routes), which belongs to `api`.

pub mod account;
pub mod asset;
pub mod balance;
pub mod bulk;
pub mod charge;
pub mod conversion;
pub mod dead_letter;
pub mod entry;
pub mod fields;
pub mod form;
#[cfg(test)]
mod given;
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

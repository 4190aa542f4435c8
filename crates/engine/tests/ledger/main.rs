//! The ledger: every request alone and concurrent with others, with and without faults.

#![allow(clippy::unwrap_used, reason = "a test panics when it cannot continue")]

mod bulk;
mod charges;
mod doubt;
mod heat;
mod holds;
mod keys;
mod model;
mod projection;
mod races;
mod spread;
#[path = "../support/mod.rs"]
mod support;

//! The ledger: every request about them, alone and against others, while nothing breaks and while everything does.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

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

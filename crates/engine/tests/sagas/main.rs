//! Sagas: captures, voids, refunds, payouts, split tender and dead letters, each under the same proofs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

#[path = "../support/mod.rs"]
mod support;

mod fences;
mod hints;
mod letters;
mod operations;
mod payouts;
mod peers;
mod proofs;
mod words;

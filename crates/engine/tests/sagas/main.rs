//! Sagas: captures, voids, refunds, payouts, split tender and dead letters, all with the same
//! proofs.

#![allow(clippy::unwrap_used, reason = "a test panics when it cannot continue")]

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

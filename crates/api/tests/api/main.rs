//! The HTTP interface over real sockets, in front of a scripted engine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod answers;
mod canary;
mod client;
mod description;
mod fake;
mod fingerprints;
mod framing;
mod intake;
mod ledger;
mod limits;
mod payments;
mod reading;
mod server;
mod slow;
mod sockets;
mod webhooks;
mod writes;

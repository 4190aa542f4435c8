//! The HTTP face over real sockets, in front of a scripted engine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod answers;
mod canary;
mod client;
mod clothes;
mod description;
mod fake;
mod framing;
mod intake;
mod ledger;
mod ledger_routes;
mod limits;
mod payments;
mod reading;
mod server;
mod slow;
mod sockets;
mod webhooks;

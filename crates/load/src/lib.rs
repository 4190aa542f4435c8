//! Closed-loop load on the routes for charges and transfers, and the raw limits of the machine for
//! comparison.
//!
//! Owns the load generator ([`charge::run`], [`transfer::run`]), its [`Report`], and the three
//! yardsticks of [`limits`]: an echo server, a bare proxy, and an append + fsync loop. The
//! generator shares the machine with the server under test, so it must be cheap. It has a small
//! HTTP/1.1 client, prepares one request per connection, and allocates nothing per request. It runs
//! cheapest on a current-thread tokio runtime, and in a separate process ([`child`]).
//!
//! Starting processes, tables and progress bars belong to the command line and `cargo xtask bench`.
//! TLS and open-loop (fixed rate) load are not supported.

#![expect(clippy::disallowed_methods, reason = "measurements need the real clock, without a port")]

pub mod charge;
pub mod child;
mod client;
mod closed_loop;
pub mod cpu;
mod error;
pub mod histogram;
pub mod limits;
pub mod plan;
mod report;
mod request;
pub mod target;
pub mod transfer;

pub use client::Malformed;
pub use error::LoadError;
pub use plan::Plan;
pub use report::{Progress, Report};
pub use target::Target;
pub use transfer::Transfers;
